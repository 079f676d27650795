// Plan to program: chooses a kernel for every step and collects the instructions; order.ts puts them in
// order. Scratch memory is shared by everything that cannot run at the same time.

import type { Machine } from "../../../wasm/machine.ts";
import type { Packed } from "../../../wasm/place_weight.ts";
import {
  createProgram,
  type Program,
  type ProgramInstruction,
  type ProgramOperand,
} from "../../../wasm/program.ts";
import { UnsupportedError } from "../../errors.ts";
import { compile, type DimEnv } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { chooseKernel } from "../kernel_choice.ts";
import { WASM_KERNELS } from "./kernel_table.ts";
import type { Operand, WasmKernel, WasmLowering } from "./kernel.ts";
import type { PrepareOptions } from "../backend.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { referenceStep, type StepMemory } from "../reference/reference_step.ts";
import { inOrder, type Lowered, phases, type Unit } from "./order.ts";
import type { WasmStates } from "./states.ts";

/** Where things lie. */
export interface LoweringContext {
  readonly profile: boolean;
  /** Workers stay asleep. */
  readonly alone: boolean;
  readonly prepare: Pick<PrepareOptions, "forceKernels" | "excludeKernels" | "hostSteps">;
  readonly states: WasmStates;
  /** Threads of the machine. */
  readonly threads: number;
  addressOf(value: Value): number;
  weightOf(value: Value): Packed | undefined;
  /** For steps of the host. */
  readonly memory: StepMemory;
}

/** By step, the kernel that runs it; undefined for a step of the host. */
export type ChosenKernels = readonly (WasmKernel | undefined)[];

/** Programs, and between them what the host computes. */
export type LoweredPart = Program | HostStep;

/** A node that has no kernel. */
export interface HostStep {
  /** `host:` and the op, as profiles show it. */
  readonly name: string;
  runOnHost(bindings: DimEnv): void;
}

/**
 * Chooses a kernel for every step.
 *
 * @throws {UnsupportedError} If no kernel takes a node and steps of the host are not allowed.
 */
export function chooseKernels(
  machine: Machine,
  { plan: { steps }, prepare }: {
    readonly plan: Plan;
    readonly prepare: LoweringContext["prepare"];
  },
): ChosenKernels {
  return steps.map(({ node }) => kernelFor(machine, node, prepare));
}

/** Lowers a plan to programs, cut where the host has work to do. */
export function lowerPlan(
  machine: Machine,
  { plan, kernels, context }: {
    readonly plan: Plan;
    readonly kernels: ChosenKernels;
    readonly context: LoweringContext;
  },
): LoweredPart[] {
  const scratch = planScratch();
  // Once to learn how much scratch memory is asked for, once with its addresses.
  lowerSteps(plan, { kernels, context, scratch: scratch.measure, toOperand: () => 0 });
  const place = scratch.allocate(machine);
  const lowered = lowerSteps(plan, { kernels, context, scratch: place, toOperand: operands() });
  const parts: LoweredPart[] = [];
  let pending: Unit[][] = [];
  const close = () => {
    if (pending.length === 0) return;
    parts.push(createProgram(machine, inOrder(pending), context));
    pending = [];
  };
  for (const units of phases(plan, lowered)) {
    const onHost = units.filter((unit) => unit.onHost);
    const onMachine = units.filter((unit) => !unit.onHost);
    if (onMachine.length > 0) pending.push(onMachine);
    if (onHost.length > 0) close();
    for (const { node } of onHost) {
      const run = referenceStep(plan, { node, memory: context.memory });
      parts.push({ name: `host:${node.op}`, runOnHost: run });
    }
  }
  close();
  return parts;
}

function kernelFor(
  { capabilities, threads }: Machine,
  node: Node,
  { hostSteps = false, ...wish }: LoweringContext["prepare"],
): WasmKernel | undefined {
  const forced = wish.forceKernels?.[node.name];
  const kernel = chooseKernel(WASM_KERNELS, { node, simd: capabilities.simd, threads }, wish);
  if (kernel || (hostSteps && forced === undefined)) return kernel;
  const formats = node.inputs.flatMap((input) => input?.tensor?.format ?? []);
  const wanted = forced === undefined ? `no kernel for ${node.op}` : `no kernel ${forced}`;
  const detail = formats.length > 0 ? ` on ${formats.join(", ")}` : "";
  throw new UnsupportedError(`the WASM backend has ${wanted}${detail} with these shapes`, {
    place: node.name,
    remedy: "Use the reference device",
  });
}

/** Gives scratch memory: of one thread, of all threads together in a wave. */
interface Scratch {
  perThread(bytes: number): number;
  shared(bytes: number, wave: number): number;
  /** Memory with these words in it, for good. */
  words(data: Uint32Array): number;
}

function planScratch() {
  // By size: two kernels of a wave with different strides would reach into each other's threads.
  const perThread = new Map<number, number>();
  let shared = 0;
  const nowhere = () => 0;
  function counter(base: number, words: Scratch["words"]): Scratch {
    let wave = -1;
    let used = 0;
    return {
      words,
      perThread(bytes) {
        const size = align(bytes);
        if (!perThread.has(size)) perThread.set(size, 0);
        return perThread.get(size)!;
      },
      shared(bytes, at) {
        if (at !== wave) used = 0;
        wave = at;
        const address = base + used;
        used += align(bytes);
        shared = Math.max(shared, used);
        return address;
      },
    };
  }
  return {
    measure: counter(0, nowhere),
    allocate(machine: Machine): Scratch {
      for (const size of perThread.keys()) {
        perThread.set(size, machine.allocate(size * machine.threads));
      }
      return counter(machine.allocate(shared), (data) => {
        const address = machine.allocate(data.byteLength);
        machine.u32(address, data.length).set(data);
        return address;
      });
    },
  };
}

function align(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}

function lowerSteps(
  plan: Plan,
  { kernels, context, scratch, toOperand }: {
    readonly kernels: ChosenKernels;
    readonly context: LoweringContext;
    readonly scratch: Scratch;
    readonly toOperand: (operand: Operand) => ProgramOperand;
  },
): Lowered[] {
  return plan.steps.map(({ node, wave }, index) => {
    const instructions: Omit<ProgramInstruction, "barrier">[] = [];
    const kernel = kernels[index];
    if (!kernel) return { node, wave, instructions, onHost: true, inRowChunks: false };
    const lowering: WasmLowering = {
      node,
      address: context.addressOf,
      weight(value) {
        const packed = context.weightOf(value);
        if (packed) return packed;
        throw new TypeError(`${value.name} is not a weight matrix`);
      },
      state: (value) => context.states.placeOf(rootOf(plan, value)),
      slotCount: context.states.count,
      threads: context.threads,
      scratch: scratch.perThread,
      sharedScratch: (bytes) => scratch.shared(bytes, wave),
      words: scratch.words,
      emit: (opcode, operands) =>
        instructions.push({ name: kernel.name, opcode, operands: operands.map(toOperand) }),
    };
    kernel.lower(lowering);
    return { node, wave, instructions, onHost: false, inRowChunks: kernel.inRowChunks ?? false };
  });
}

/** Compiles dims, each once: a program has hundreds of operands and few dims. */
function operands(): (operand: Operand) => ProgramOperand {
  const known = new Map<Operand, ProgramOperand>();
  return (operand) => {
    if (typeof operand === "number") return operand;
    let compiled = known.get(operand);
    if (!compiled) known.set(operand, compiled = compile(operand));
    return compiled;
  };
}
