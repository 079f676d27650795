// The weights of a plan: which there are, which share their bytes, and which are read as whole matrices, that devices
// pack as their kernels want them.

import type { Node, Value } from "../graph/graph.ts";
import { elementCount } from "../ops/host_tensor.ts";
import { getOp } from "../ops/mod.ts";
import type { Plan } from "../plan/plan.ts";
import { roundedWeights } from "../plan/rounded_weights.ts";

/** The weights that a plan's nodes read, each once, in order of first use. */
export function weightsOf({ graph }: Plan): Value[] {
  return weightsOfNodes(graph.nodes);
}

/** The weights that nodes read, each once, in order of first use. */
export function weightsOfNodes(nodes: readonly Node[]): Value[] {
  const found = new Set<Value>();
  for (const { inputs } of nodes) {
    for (const value of inputs) if (value?.role === "weight") found.add(value);
  }
  return [...found];
}

/** Whether a weight is packed for matrix kernels, a stack of matrices as one; others stay plain. */
export function isMatrix({ shape, dtype }: Pick<Value, "shape" | "dtype">): boolean {
  return dtype === "f32" && (shape.length === 2 || shape.length === 3);
}

/** Rows, those of all matrices of a stack together, and columns. Filters of planes (more than three dims) are a row each. */
export function matrixSize({ shape }: Pick<Value, "shape">): [rows: number, columns: number] {
  const sizes = shape as readonly number[];
  if (sizes.length > 3) return [sizes[0]!, elementCount(sizes.slice(1))];
  return [elementCount(sizes.slice(0, -1)), sizes.at(-1)!];
}

/** Whether a node reads an input as a packed matrix. */
export function readsPacked({ op, inputs }: Node, index: number): boolean {
  const value = inputs[index];
  return getOp(op).packedInput === index && value !== undefined && isMatrix(value);
}

/** The weights to load: of values that share a tensor, the first. */
export function distinctWeights(plan: Plan): Map<string, Value> {
  const firsts = new Map<string, Value>();
  const rounded = roundedWeights(plan.graph.nodes);
  for (const value of weightsOf(plan)) {
    const key = weightKey(value, rounded.has(value.id));
    if (!firsts.has(key)) firsts.set(key, value);
  }
  return firsts;
}

/** Equal for values that share their bytes in memory. */
export function weightKey({ tensor, shape, dtype }: Value, rounded = false): string {
  const { source, offset, format } = tensor!;
  return [source.name, offset, format, dtype, shape.join("×"), rounded].join("\n");
}
