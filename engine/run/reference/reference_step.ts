// One node by its op's reference, on data that lies anywhere: in host memory for the reference backend, in
// WASM memory for steps that have no kernel there. Which memory a value has is the caller's business;
// views and in-place results are followed to their root here.

import { compile, type DimEnv } from "../../graph/dim/mod.ts";
import type { HostData, Node, Value } from "../../graph/graph.ts";
import { elementCount, hostArray, type HostTensor } from "../../ops/host_tensor.ts";
import { errorAt } from "../../graph/node_error.ts";
import { getOp } from "../../ops/mod.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";

/** Where the data of values lies. */
export interface StepMemory {
  /** Data of a value with memory of its own, at its maximum size; undefined for a state. */
  data(root: Value): HostData | undefined;
  /** Rows of a state in a slot: a copy, that `store` puts back. */
  state(root: Value, slot: number): HostData;
  store(root: Value, slot: number, data: HostData): void;
}

/** A function that runs a node for given bindings. */
export function referenceStep(
  plan: Plan,
  { node, memory }: { readonly node: Node; readonly memory: StepMemory },
): (env: DimEnv) => void {
  const op = getOp(node.op);
  const inputs = node.inputs.map((value) => value && tensorAt(plan, value, memory));
  const outputs = node.outputs.map((value) => tensorAt(plan, value, memory));
  // References may count on zeros; a result in the memory of an input starts with that input.
  const roots = new Set(node.inputs.map((value) => value && rootOf(plan, value)));
  const isFresh = node.outputs.map((value) => !roots.has(rootOf(plan, value)));

  // Of the run at hand, by input and slot.
  const states = new Map<string, { readonly root: Value; slot: number; data: HostData }>();

  function stateOf(index: number, slot: number): HostTensor {
    const value = node.inputs[index]!, key = `${index} ${slot}`, root = rootOf(plan, value);
    const known = states.get(key) ?? { root, slot, data: memory.state(root, slot) };
    states.set(key, known);
    return { dtype: value.dtype, shape: value.shape as readonly number[], data: known.data };
  }

  return (env) => {
    try {
      const results = outputs.map((output) => output(env));
      results.forEach(({ data }, i) => isFresh[i] && clear(data));
      op.reference({
        inputs: inputs.map((input) => input?.(env)),
        outputs: results,
        attributes: node.attributes,
        env,
        stateOf,
      });
      for (const { root, slot, data } of states.values()) memory.store(root, slot, data);
    } catch (error) {
      throw errorAt(error, `${node.op} at ${node.name}`);
    } finally {
      states.clear();
    }
  };
}

function clear(data: HostData): void {
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength).fill(0);
}

function tensorAt(plan: Plan, value: Value, memory: StepMemory): (env: DimEnv) => HostTensor {
  const { dtype } = value;
  const dims = value.shape.map(compile);
  // A state has no data of its own here: it comes by slot.
  const data = memory.data(rootOf(plan, value)) ?? hostArray(dtype, { count: 0 });
  return (env) => {
    const shape = dims.map((dim) => dim(env));
    return { dtype, shape, data: data.subarray(0, elementCount(shape)) };
  };
}
