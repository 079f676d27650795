// Lowering of products of computed float32 matrices. Batch dims that repeat alike on each side are
// merged; two groups of them are what the kernel walks over.

import type { WasmKernel } from "../kernel.ts";
import { type Dim, equal, mul, product } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { roundUp64 } from "./conv.ts";
import { emit, inputAddress, outputAddress } from "./lower.ts";

/** Bytes of scratch memory: panels of b, rows of a, a ragged edge (wasm/assembly/matmul/nd.ts). */
const SCRATCH_BYTES = 4 * 256 * 32 + 96 * 256 * 4 + 96 * 32;

/** A batch dim, and whether each side has it. */
export interface BatchDim {
  readonly size: Dim;
  readonly a: boolean;
  readonly b: boolean;
}

/** Batch dims of the product, outermost first, neighbours that repeat alike merged. */
export function batchDims(node: Node): BatchDim[] {
  const [a, b] = node.inputs.map((input) => input!.shape.slice(0, -2)) as [Dim[], Dim[]];
  const rank = Math.max(a.length, b.length);
  const merged: BatchDim[] = [];
  for (let i = rank; i > 0; i--) {
    const left = a.at(-i) ?? 1, right = b.at(-i) ?? 1;
    const size = equal(left, 1) ? right : left;
    if (equal(size, 1)) continue;
    const dim = { size, a: equal(left, size), b: equal(right, size) };
    const last = merged.at(-1);
    if (last && last.a === dim.a && last.b === dim.b) {
      merged[merged.length - 1] = { ...dim, size: mul(last.size, size) };
    } else merged.push(dim);
  }
  return merged;
}

/** Float32 matrices of two or more dims. */
export const matmulNdKernel: WasmKernel = {
  name: "matmul_nd_f32",
  when({ node }) {
    const [a, b] = node.inputs;
    return a!.dtype === "f32" && a!.shape.length >= 2 && b!.shape.length >= 2 &&
      batchDims(node).length <= 2;
  },
  lower(lowering) {
    const { inputs: [a, b], attributes } = lowering.node;
    const transpose_a = attributes.transpose_a ? 1 : 0,
      transpose_b = attributes.transpose_b ? 1 : 0;
    const [first, second] = a!.shape.slice(-2) as [Dim, Dim];
    const [rows, inner] = transpose_a ? [second, first] : [first, second];
    const columns = transpose_b ? b!.shape.at(-2)! : b!.shape.at(-1)!;
    const dims = batchDims(lowering.node);
    const [outer, batch] = dims.length === 2 ? dims : [undefined, dims[0]];
    const step = (side: "a" | "b", matrix: Dim) => ({
      outer: outer?.[side] ? mul(matrix, batch?.[side] ? batch.size : 1) : 0,
      batch: batch?.[side] ? matrix : 0,
    });
    const left = step("a", product([rows, inner])), right = step("b", product([inner, columns]));
    emit(lowering, {
      name: "matmul_nd",
      operands: {
        a: inputAddress(lowering, 0),
        b: inputAddress(lowering, 1),
        y: outputAddress(lowering),
        ...{ rows, inner, columns },
        outer: outer?.size ?? 1,
        batch: batch?.size ?? 1,
        ...{ a_outer: left.outer, a_batch: left.batch, b_outer: right.outer, b_batch: right.batch },
        ...{ transpose_a, transpose_b, alpha: attributes.alpha as number },
        scratch: lowering.scratch(SCRATCH_BYTES),
        scratch_bytes: roundUp64(SCRATCH_BYTES),
      },
    });
  },
};
