// How ops that make each row of their result from the same rows of their inputs cut their work. Ops that cut
// alike can run as a chain: the thread that made some rows takes them through all of it, with no barrier
// between (plan/chains.ts, wasm/assembly/machine/program.ts).

import { type Dim, equal, product } from "../graph/dim/mod.ts";
import type { Node, Value } from "../graph/graph.ts";

/** Rows that are made one by one, and how many elements each has. */
export interface RowCut {
  readonly rows: Dim;
  readonly width: number;
}

/** An op that works row by row. */
export interface Rowwise extends RowCut {
  /** Inputs of which it reads the same rows as it writes; of all others it may read anything. */
  readonly inputs: readonly number[];
}

/** Elements of a chunk: one decode row is one chunk and needs no hand-over, and short prompts are still shared out. */
const CHUNK = 2048;

/** Longest row that is not cut further. */
const LONGEST = 16384;

/** Rows of a chunk. */
export function rowsPerChunk({ width }: RowCut): number {
  return Math.max(1, Math.floor(CHUNK / width));
}

/**
 * Rows of a tensor: everything behind the last symbolic dim is one row, so that all that is done to a token, in heads
 * or not, cuts alike. Undefined where rows have no fixed length.
 */
export function rowCut(shape: readonly Dim[]): RowCut | undefined {
  const inner = shape.findLastIndex((dim) => typeof dim !== "number") + 1;
  if (inner === shape.length) return undefined;
  const width = product(shape.slice(inner)) as number;
  if (width === 0) return undefined;
  if (inner > 0 && width <= LONGEST) return { rows: product(shape.slice(0, inner)), width };
  return { rows: product(shape.slice(0, -1)), width: shape.at(-1) as number };
}

/** For ops that make each row of their result from that row of input 0. */
export function rowByRow({ inputs: [x] }: Node): Rowwise | undefined {
  const cut = rowCut(x!.shape);
  return cut && { ...cut, inputs: [0] };
}

/** For ops on [M, H, D] that take a token's heads together; `inputs` as in Rowwise. */
export function rowsOfHeads(
  { shape: [rows, heads, width] }: Value,
  inputs: readonly number[],
): Rowwise | undefined {
  if (typeof heads !== "number" || typeof width !== "number" || heads * width === 0) return;
  return { rows: rows!, width: heads * width, inputs };
}

/** Whether the chunks of both are the same rows of the same memory. */
export function cutAlike(a: RowCut, b: RowCut): boolean {
  return a.width === b.width && equal(a.rows, b.rows);
}
