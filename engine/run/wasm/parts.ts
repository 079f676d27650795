// A model over several WASM memories (memories.ts): each part is an executable with a machine of its own,
// and a step runs them one behind the other; what a part reads of an earlier one is copied between the
// memories before it runs. Every machine has all threads: those of the others sleep meanwhile. Slots are the
// same in all parts; a saved session is that of the whole graph, so it does not depend on how it was cut.

import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import type { PrepareOptions } from "../backend.ts";
import { checkBindings } from "../bindings.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf, sizeOf } from "../../plan/sizes.ts";
import { distinctWeights } from "./estimate.ts";
import type { WasmPlan } from "./wasm_plan.ts";

/** Makes one part ready. */
export type PreparePart = (plan: Plan, options: PrepareOptions) => Promise<WasmPlan>;

/** A part and what it takes from others. */
interface ReadyPart {
  readonly executable: WasmPlan;
  readonly symbols: readonly string[];
  readonly feeds: readonly ((bindings: DimEnv) => void)[];
}

/** Makes the parts of a plan ready, in order. */
export async function prepareWasmParts(
  plan: Plan,
  parts: readonly Plan[],
  options: PrepareOptions,
  prepare: PreparePart,
): Promise<WasmPlan> {
  const sources = new Map<number, HostData>(
    plan.graph.inputs.map((value) => [
      value.id,
      hostArray(value.dtype, maximumOf(product(value.shape), plan.limits)),
    ]),
  );
  const ready: ReadyPart[] = [];
  const { meanwhile = async () => {}, ...rest } = options;
  const progress = joinProgress(parts, options);
  try {
    for (const [i, part] of parts.entries()) {
      const executable = await prepare(part, {
        ...rest,
        ...i === 0 && { meanwhile },
        ...progress(i),
      });
      const { inputs, outputs } = part.graph;
      const feeds = inputs.map((value) =>
        feed(sources.get(value.id)!, executable.input(value.name), value)
      );
      ready.push({ executable, feeds, symbols: Object.keys(part.limits) });
      for (const { id, name } of outputs) sources.set(id, executable.output(name));
    }
  } catch (error) {
    for (const { executable } of ready) executable.dispose();
    throw error;
  }
  return assemble(plan, ready, sources);
}

/** Progress of all parts as that of one. */
function joinProgress(parts: readonly Plan[], { onProgress }: PrepareOptions) {
  const bytes = parts.map((part) =>
    [...distinctWeights(part).values()].reduce((sum, { tensor }) => sum + tensor!.byteLength, 0)
  );
  const totalBytes = bytes.reduce((sum, part) => sum + part, 0);
  return (index: number): Pick<PrepareOptions, "onProgress"> => {
    if (!onProgress) return {};
    const before = bytes.slice(0, index).reduce((sum, part) => sum + part, 0);
    return {
      onProgress: ({ loadedBytes }) =>
        onProgress({ loadedBytes: before + loadedBytes, totalBytes }),
    };
  };
}

function feed(source: HostData, target: HostData, { shape }: Value): (bindings: DimEnv) => void {
  const count = compile(product(shape));
  return (bindings) =>
    (target as Uint8Array).set(source.subarray(0, count(bindings)) as Uint8Array);
}

function assemble(
  plan: Plan,
  parts: readonly ReadyPart[],
  sources: ReadonlyMap<number, HostData>,
): WasmPlan {
  const { graph } = plan;
  const executables = parts.map(({ executable }) => executable);
  const [first] = executables as [WasmPlan];
  const logits = graph.outputs.find(({ name }) => name === "logits");
  const head = executables.find(({ plan }) =>
    plan.graph.outputs.some(({ id }) => id === logits?.id)
  );
  const states = createPartStates(plan, executables);
  let disposed = false;

  function checkAlive(): void {
    if (disposed) throw new TypeError(`Cannot use graph ${graph.name}: it has been disposed`);
  }

  function named(list: readonly Value[], kind: string, name: string): HostData {
    checkAlive();
    const value = list.find((candidate) => candidate.name === name);
    if (value) return sources.get(value.id)!;
    const known = list.map((candidate) => candidate.name).join(", ");
    throw new RangeError(`Graph ${graph.name} has no ${kind} "${name}": it has ${known}`);
  }

  const sum = (of: (executable: WasmPlan) => number) =>
    executables.reduce((total, executable) => total + of(executable), 0);
  return {
    plan,
    threads: first.threads,
    simd: first.simd,
    notes: [
      `the model lies in ${parts.length} WASM memories, because one does not hold it`,
      ...new Set(executables.flatMap(({ notes }) => notes)),
    ],
    kernels: executables.flatMap(({ kernels }) => kernels),
    hostNodes: executables.flatMap(({ hostNodes }) => hostNodes),
    committedBytes: sum(({ committedBytes }) => committedBytes),
    memory: {
      weights: sum(({ memory }) => memory.weights),
      arena: sum(({ memory }) => memory.arena),
      statePerSlot: sum(({ memory }) => memory.statePerSlot),
      other: sum(({ memory }) => memory.other),
    },
    ...states,
    input: (name) => named(graph.inputs, "input", name),
    output: (name) => named(graph.outputs, "output", name),
    run(bindings, wish): void {
      checkAlive();
      checkBindings(plan, bindings);
      for (const { executable, feeds, symbols } of parts) {
        for (const feed of feeds) feed(bindings);
        const own = Object.fromEntries(symbols.map((name) => [name, bindings[name]!]));
        void executable.run(own, wish);
      }
    },
    bestLogits: () => head?.bestLogits?.(),
    readLogits: (step, target) => head?.readLogits?.(step, target) ?? false,
    isRowAtHand: true,
    profile: () => executables.flatMap((executable) => executable.profile?.() ?? []),
    dispose(): void {
      if (disposed) return;
      disposed = true;
      for (const executable of executables) executable.dispose();
    },
  };
}

/** Slots and states: those of the parts, in the order of the whole graph. */
function createPartStates(
  { graph }: Plan,
  parts: readonly WasmPlan[],
): Pick<WasmPlan, "openSlot" | "closeSlot" | "readState" | "writeState"> {
  const rowBytes = (state: Value): number => {
    const capacity = state.shape[0] as number;
    return capacity === 0 ? 0 : sizeOf(state, {}).bytes / capacity;
  };
  /** Where the rows of each state begin in the bytes of a part, and how long they are. */
  function places(states: readonly Value[], count: number): Map<number, [number, number]> {
    let at = 0;
    return new Map(states.map((state) => {
      const length = count * rowBytes(state);
      at += length;
      return [state.id, [at - length, length]];
    }));
  }

  return {
    openSlot() {
      // All have the same slots open, so all give the same.
      return parts.map((part) => part.openSlot())[0]!;
    },
    closeSlot(slot) {
      for (const part of parts) part.closeSlot(slot);
    },
    readState(slot, count) {
      const whole = places(graph.states, count);
      const bytes = new Uint8Array(
        [...whole.values()].reduce((sum, [, length]) => sum + length, 0),
      );
      for (const part of parts) {
        const own = part.readState(slot, count) as Uint8Array;
        for (const [id, [at, length]] of places(part.plan.graph.states, count)) {
          bytes.set(own.subarray(at, at + length), whole.get(id)![0]);
        }
      }
      return bytes;
    },
    writeState(slot, count, bytes) {
      const whole = places(graph.states, count);
      const expected = [...whole.values()].reduce((sum, [, length]) => sum + length, 0);
      if (bytes.length !== expected) {
        throw new RangeError(`Cannot write ${bytes.length} bytes of state: expected ${expected}`);
      }
      for (const part of parts) {
        const { states } = part.plan.graph;
        const own = states.map(({ id }) => {
          const [at, length] = whole.get(id)!;
          return bytes.subarray(at, at + length);
        });
        const joined = new Uint8Array(own.reduce((sum, { length }) => sum + length, 0));
        let at = 0;
        for (const piece of own) {
          joined.set(piece, at);
          at += piece.length;
        }
        void part.writeState(slot, count, joined);
      }
    },
  };
}
