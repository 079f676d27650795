// The scalar reference as a backend: interprets a Plan node by node with the ops' references. It is slow
// on purpose and is the definition by which the other backends are judged. It keeps activations at the
// planned offsets of one arena, so a plan that lets two live tensors overlap gives wrong numbers here
// too. Weights are decoded to float32; f16 states are stored as f16, which defines how they round.

import { compile, type DimEnv, product } from "../graph/dim.ts";
import type { Node, Value } from "../graph/graph.ts";
import {
  elementCount,
  hostArray,
  type HostData,
  hostElementBytes,
  type HostTensor,
} from "../graph/host_tensor.ts";
import { errorAt } from "../graph/node_error.ts";
import type { OpRecord } from "../graph/op.ts";
import { getOp } from "../graph/ops/mod.ts";
import type { Backend, Executable, PrepareOptions } from "./backend.ts";
import { checkBindings } from "./bindings.ts";
import { createHostStates, type HostStates } from "./host_states.ts";
import { loadHostWeights } from "./host_weights.ts";
import { type Plan, rootOf } from "./plan.ts";
import { maximumOf } from "./sizes.ts";

/** Makes the reference backend. */
export function createReferenceBackend(): Backend {
  return { name: "reference", prepare };
}

async function prepare(plan: Plan, options: PrepareOptions): Promise<Executable> {
  const { graph } = plan;
  const weights = await loadHostWeights(plan, options);
  const states = createHostStates(graph, options.slots);
  const storage = new Map<number, HostData>([...weights, ...givenData(plan), ...arenaData(plan)]);
  const steps = plan.steps.map(({ node }) => prepareStep(plan, node, storage, states));
  let disposed = false;

  function checkAlive(): void {
    if (disposed) throw new TypeError(`Cannot use graph ${graph.name}: it has been disposed`);
  }

  function dataNamed(list: readonly Value[], kind: string, name: string): HostData {
    checkAlive();
    const value = list.find((candidate) => candidate.name === name);
    if (value) return storage.get(rootOf(plan, value).id)!;
    const known = list.map((candidate) => candidate.name).join(", ");
    throw new RangeError(`Graph ${graph.name} has no ${kind} "${name}": it has ${known}`);
  }

  return {
    plan,
    memory: {
      weights: bytesOf(weights.values()),
      arena: plan.arenaBytes,
      statePerSlot: states.bytesPerSlot,
      other: bytesOf(graph.inputs.map(({ id }) => storage.get(id)!)),
    },
    openSlot: states.open,
    closeSlot: states.close,
    readState: states.read,
    writeState: states.write,
    input: (name) => dataNamed(graph.inputs, "input", name),
    output: (name) => dataNamed(graph.outputs, "output", name),
    run(bindings) {
      checkAlive();
      checkBindings(plan, bindings);
      for (const step of steps) step(bindings);
    },
    dispose() {
      disposed = true;
      storage.clear();
    },
  };
}

function bytesOf(data: Iterable<HostData>): number {
  return [...data].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

// Elements at the maximum binding.
function mostElements({ limits }: Plan, { shape }: Value): number {
  return maximumOf(product(shape), limits);
}

/** Inputs, at their maximum, and constants. */
function givenData(plan: Plan): [number, HostData][] {
  const { inputs, nodes } = plan.graph;
  const constants = nodes.flatMap((node) => node.inputs).filter((value) => value?.data);
  return [
    ...inputs.map((value): [number, HostData] => [
      value.id,
      hostArray(value.dtype, mostElements(plan, value)),
    ]),
    ...constants.map((value): [number, HostData] => [value!.id, value!.data as HostData]),
  ];
}

function arenaData(plan: Plan): [number, HostData][] {
  const arena = new ArrayBuffer(plan.arenaBytes);
  return [...plan.placements.values()].map(({ value, offset }) => {
    const { id, dtype } = value;
    const count = mostElements(plan, value);
    // A q8 value is held as the floats it stands for, which are larger than its planned bytes.
    const fits = dtype !== "q8" && offset % hostElementBytes(dtype) === 0;
    return [id, fits ? hostArray(dtype, count, arena, offset) : hostArray(dtype, count)];
  });
}

function prepareStep(
  plan: Plan,
  node: Node,
  storage: ReadonlyMap<number, HostData>,
  states: HostStates,
): (env: DimEnv) => void {
  const op = getOp(node.op);
  const inputs = node.inputs.map((value) => value && tensorAt(plan, value, storage));
  const outputs = node.outputs.map((value) => tensorAt(plan, value, storage));

  function stateOf(index: number, slot: number): HostTensor {
    const value = node.inputs[index]!;
    const data = states.data(rootOf(plan, value), slot);
    return { dtype: value.dtype, shape: value.shape as readonly number[], data };
  }

  return (env) => {
    try {
      const results = outputs.map((output) => output(env));
      clearNew(op, results);
      op.reference({
        inputs: inputs.map((input) => input?.(env)),
        outputs: results,
        attributes: node.attributes,
        env,
        stateOf,
      });
    } catch (error) {
      throw errorAt(error, `${node.op} at ${node.name}`);
    }
  };
}

// References may count on zeros; a state that is changed in place keeps its contents.
function clearNew(op: OpRecord, results: readonly HostTensor[]): void {
  results.forEach(({ data }, i) => {
    if (op.inPlace?.[i] !== undefined) return;
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength).fill(0);
  });
}

function tensorAt(
  plan: Plan,
  value: Value,
  storage: ReadonlyMap<number, HostData>,
): (env: DimEnv) => HostTensor {
  const { dtype } = value;
  const dims = value.shape.map(compile);
  // A state has no data of its own here: it comes by slot.
  const data = storage.get(rootOf(plan, value).id) ?? hostArray(dtype, 0);
  return (env) => {
    const shape = dims.map((dim) => dim(env));
    return { dtype, shape, data: data.subarray(0, elementCount(shape)) };
  };
}
