// What the ops of a plan cost, summed by op: how often each runs and where, the bytes that it writes, and
// the multiply-adds of products and convolutions. Counted from shapes alone, so it serves before anything
// is loaded. What is not a product has no count of multiply-adds: its bytes say more.

import { nameOf } from "../plan/passes/match.ts";
import { type DimEnv, evaluate, product } from "../graph/dim/mod.ts";
import type { Node, Value } from "../graph/graph.ts";
import { chooseKernel } from "./kernel_choice.ts";
import { LEAST_WASM, WASM_KERNELS } from "./wasm/kernel_table.ts";
import type { Plan } from "../plan/plan.ts";
import { byteSize } from "../plan/sizes.ts";

/** One op of a plan. */
export interface OpRow {
  /** Name of the engine's op. */
  readonly op: string;
  /** Steps in all. */
  readonly count: number;
  /** Steps that a kernel of the device runs. */
  readonly onDevice: number;
  /** Steps that the host computes by the op's reference. */
  readonly onHost: number;
  /** Bytes of all results. */
  readonly outputBytes: number;
  /** Multiply-adds; 0 for ops that are no product. */
  readonly multiplyAdds: number;
}

/**
 * The ops of a plan as WASM runs them, most bytes first, at values of its symbols. Views are no steps and cost nothing.
 */
export function opTable({ steps }: Plan, bindings: DimEnv): OpRow[] {
  const rows = new Map<string, { -readonly [Key in keyof OpRow]: OpRow[Key] }>();
  for (const { node } of steps) {
    const op = nameOf(node);
    const row = rows.get(op) ??
      { op, count: 0, onDevice: 0, onHost: 0, outputBytes: 0, multiplyAdds: 0 };
    rows.set(op, row);
    row.count++;
    const context = { node, ...LEAST_WASM };
    if (chooseKernel(WASM_KERNELS, context)) row.onDevice++;
    else row.onHost++;
    for (const value of node.outputs) row.outputBytes += evaluate(byteSize(value), bindings);
    row.multiplyAdds += multiplyAdds(node, bindings);
  }
  return [...rows.values()].sort((a, b) =>
    b.outputBytes - a.outputBytes || b.count - a.count || (a.op < b.op ? -1 : 1)
  );
}

/** Multiply-adds by op. */
const COUNTS: Readonly<Record<string, (node: Node, env: DimEnv) => number>> = {
  conv: countOfFilter,
  conv_integer: countOfFilter,
  matmul: ({ inputs: [x, weight] }, env) => elementsOf(x!, env) * evaluate(weight!.shape[0]!, env),
  matmul_integer: countOfRows,
  matmul_nd: ({ inputs: [a], outputs: [out], attributes }, env) => {
    const inner = attributes.transpose_a === true && a!.shape.length > 1 ? -2 : -1;
    return elementsOf(out!, env) * evaluate(a!.shape.at(inner)!, env);
  },
  // Every element of q meets every key, and every element of the result is a sum over all keys.
  attention: ({ inputs: [q, k, , , , , newK], outputs: [out], attributes }, env) => {
    if (attributes.q_heads === 0) return 0;
    const rows = (value: Value | undefined) => value ? evaluate(value.shape.at(-2)!, env) : 0;
    return (elementsOf(k ? q! : out!, env) + elementsOf(out!, env)) * (rows(k ?? q) + rows(newK));
  },
};

/** Multiply-adds of a node, masked ones included; 0 where it is no product that this table knows. */
export function multiplyAdds(node: Node, env: DimEnv): number {
  return Object.hasOwn(COUNTS, node.op) ? COUNTS[node.op]!(node, env) : 0;
}

function countOfRows({ inputs: [x], outputs: [out] }: Node, env: DimEnv): number {
  return elementsOf(out!, env) * evaluate(x!.shape.at(-1)!, env);
}

function countOfFilter({ inputs: [, filter], outputs: [out] }: Node, env: DimEnv): number {
  return elementsOf(out!, env) * elementsOf(filter!, env) / evaluate(filter!.shape[0]!, env);
}

function elementsOf({ shape }: Value, env: DimEnv): number {
  return evaluate(product(shape), env);
}
