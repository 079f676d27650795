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
import { createPreparedPlaces, type PreparedPlaces } from "./prepared.ts";
import { type Plan, type PlanStep, rootOf } from "../../plan/plan.ts";
import { referenceStep, type StepMemory } from "../reference/reference_step.ts";
import { inOrder, type Lowered, phases, type Unit } from "./order.ts";
import type { WasmStates } from "./states.ts";
import type { ExpertUse } from "./expert_use.ts";
import type { WeightStream } from "./weight_stream.ts";

/** Where things lie. */
export interface LoweringContext {
  readonly profile: boolean;
  /** Workers stay asleep. */
  readonly alone: boolean;
  readonly prepare: Pick<
    PrepareOptions,
    "forceKernels" | "excludeKernels" | "preferKernels" | "hostSteps"
  >;
  readonly states: WasmStates;
  /** Threads of the machine. */
  readonly threads: number;
  addressOf(value: Value): number;
  weightOf(value: Value): Packed | undefined;
  /** Most bytes of weights that are laid out ahead. */
  readonly mostAhead: number;
  /** For steps of the host. */
  readonly memory: StepMemory;
  /** Weights that come and go. */
  readonly stream?: WeightStream | undefined;
}

/** By step, the kernel that runs it; undefined for a step of the host. */
export type ChosenKernels = readonly (WasmKernel | undefined)[];

/** Programs, and between them what the host computes. */
export type LoweredPart = Program | HostStep;

/** A plan as it is run. */
export interface LoweredPlan {
  readonly parts: readonly LoweredPart[];
  /** What makes constants ready, to be run once when weights are there. */
  readonly once: readonly ProgramInstruction[];
  /** Weights that come and go, in the order in which they are used. */
  readonly sequence: readonly Value[];
}

/** A node that has no kernel, or what has to be seen to between two programs. */
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
): LoweredPlan {
  const sequence: Value[] = [];
  const uses = new Map(plan.steps.flatMap(({ node }) => {
    const use = context.stream?.expertUse(node);
    return use ? [[node, use] as const] : [];
  }));
  const lowered = lowerSteps(plan, {
    ...{ kernels, context, uses },
    ...{ scratch: createScratch(machine), toOperand: operands() },
    placeOf: createPreparedPlaces(machine, { plan, most: context.mostAhead }),
  });
  const parts: LoweredPart[] = [];
  let pending: Unit[][] = [];
  const close = () => {
    if (pending.length === 0) return;
    parts.push(createProgram(machine, inOrder(pending), context));
    pending = [];
  };
  for (const units of phases(plan, lowered)) {
    const onHost = units.filter((unit) => unit.onHost);
    const chosen = units.filter(({ node }) => uses.has(node));
    const onMachine = units.filter((unit) => !unit.onHost && !uses.has(unit.node));
    const streamed = context.stream?.weightsOf(onMachine.map(({ node }) => node)) ?? [];
    if (streamed.length > 0) {
      close();
      parts.push({ name: "stream:wait", runOnHost: () => context.stream!.need(streamed) });
    }
    if (onMachine.length > 0) pending.push(onMachine);
    if (onHost.length > 0 || streamed.length > 0 || chosen.length > 0) close();
    if (streamed.length > 0) {
      parts.push({ name: "stream:next", runOnHost: () => context.stream!.release(streamed) });
      sequence.push(...streamed);
    }
    for (const unit of chosen) {
      parts.push(expertStep(machine, unit, { use: uses.get(unit.node)!, plan, context }));
    }
    for (const { node } of onHost) {
      const run = referenceStep(plan, { node, memory: context.memory });
      parts.push({ name: `host:${node.op}`, runOnHost: run });
    }
  }
  close();
  const once = lowered.flatMap(({ once }) => once.map((one) => ({ ...one, barrier: false })));
  return { parts, once, sequence };
}

/** The product of one node with experts of a cache, in as many passes as that takes. */
function expertStep(
  machine: Machine,
  unit: Unit,
  { use, plan, context }: {
    readonly use: ExpertUse;
    readonly plan: Plan;
    readonly context: LoweringContext;
  },
): HostStep {
  const { inputs } = unit.node, program = createProgram(machine, inOrder([[unit]]));
  const data = {
    chosen: context.memory.data(rootOf(plan, inputs[2]!))!,
    bias: inputs[3] && context.memory.data(rootOf(plan, inputs[3])),
  };
  return {
    name: "stream:experts",
    runOnHost: (bindings) => use.run(bindings, data, () => program.run(bindings)),
  };
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

/** Gives scratch memory. */
interface Scratch {
  /** Of each thread. */
  perThread(bytes: number): number;
  /** Of all threads together in a wave: counted from 0 until `place`. */
  shared(bytes: number, wave: number): number;
  /** Gives shared memory its place, since all have asked for theirs; who did asks again, in the same order. */
  place(): void;
  /** Memory with these words in it, for good; `at`: where words of the same number lie already. */
  words(data: Uint32Array, at: number | undefined): number;
}

function createScratch(machine: Machine): Scratch {
  // By size: two kernels of a wave with different strides would reach into each other's threads.
  const perThread = new Map<number, number>();
  let base = 0, most = 0, used = 0, last = -1;
  return {
    perThread(bytes) {
      const size = align(bytes);
      const known = perThread.get(size) ?? machine.allocate(size * machine.threads);
      perThread.set(size, known);
      return known;
    },
    shared(bytes, wave) {
      if (wave !== last) used = 0;
      last = wave;
      const address = base + used;
      used += align(bytes);
      most = Math.max(most, used);
      return address;
    },
    place() {
      base = machine.allocate(most);
      last = -1;
    },
    words(data, at = machine.allocate(data.byteLength)) {
      machine.u32(at, data.length).set(data);
      return at;
    },
  };
}

function align(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}

function lowerSteps(
  plan: Plan,
  { kernels, context, uses, scratch, toOperand, placeOf }: {
    readonly kernels: ChosenKernels;
    readonly context: LoweringContext;
    /** Nodes whose experts come and go. */
    readonly uses: ReadonlyMap<Node, ExpertUse>;
    readonly scratch: Scratch;
    readonly toOperand: (operand: Operand) => ProgramOperand;
    readonly placeOf: PreparedPlaces;
  },
): Lowered[] {
  const sharing = new Set<number>();
  const lowerStep = ({ node, wave }: PlanStep, index: number, words: number[]): Lowered => {
    const instructions: Omit<ProgramInstruction, "barrier">[] = [];
    const once: Omit<ProgramInstruction, "barrier">[] = [];
    let target = instructions;
    const kernel = kernels[index];
    if (!kernel) return { node, wave, instructions, once, onHost: true, inRowChunks: false };
    const use = uses.get(node), [, , chosen, bias] = node.inputs;
    let wordsAsked = 0;
    const lowering: WasmLowering = {
      node,
      address: (value) => {
        if (use && value === chosen) return use.chosen;
        return use && value === bias ? use.bias : context.addressOf(value);
      },
      weight(value) {
        const packed = context.weightOf(value);
        if (packed) return packed;
        throw new TypeError(`${value.name} is not a weight matrix`);
      },
      state: (value) => context.states.placeOf(rootOf(plan, value)),
      slotCount: context.states.count,
      threads: context.threads,
      scratch: scratch.perThread,
      sharedScratch(bytes) {
        sharing.add(index);
        return scratch.shared(bytes, wave);
      },
      prepared(value, { bytes, inPlace = false, emit }) {
        const address = context.addressOf(value);
        const place = placeOf(value, { address, layout: kernel.name, bytes, inPlace });
        if (place !== undefined) target = once;
        const to = place ?? lowering.sharedScratch(bytes);
        emit(address, to);
        target = instructions;
        return to;
      },
      words(data) {
        const number = wordsAsked++;
        return words[number] = scratch.words(data, words[number]);
      },
      emit: (opcode, operands) =>
        target.push({ name: kernel.name, opcode, operands: operands.map(toOperand) }),
    };
    kernel.lower(lowering);
    const inRowChunks = kernel.inRowChunks ?? false;
    return { node, wave, instructions, once, onHost: false, inRowChunks };
  };
  const words = plan.steps.map((): number[] => []);
  const lowered = plan.steps.map((step, index) => lowerStep(step, index, words[index]!));
  // How much is shared is known now, and where it lies.
  scratch.place();
  for (const index of [...sharing]) {
    lowered[index] = lowerStep(plan.steps[index]!, index, words[index]!);
  }
  return lowered;
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
