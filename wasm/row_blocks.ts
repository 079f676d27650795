// How many activation rows a matrix product takes at a time when there are many. Every tile of weights reads
// the whole block, so a block stays in the L2 cache; the weights are read once a block, which a block of some
// dozens of rows hides.

import { lowRowBytes } from "../quant/q8_activation.ts";
import { formatLayout } from "./format_layouts.ts";
import { floatScratchBytes, int7ScratchBytes } from "./matmul_scratch.ts";

/** Part of an L2 cache of 512 KiB that a block may fill. */
const BLOCK_BYTES = 208 * 1024;
/** Most columns that `matmul` takes through its tiles at once where weights are decoded (assembly/matmul/matmul.ts). */
const FLOAT_RUN = 384;
/** Rows of register tiles (gen) of floats and of integers, of which blocks are multiples; of integers tiles take eight rows or twelve. */
const FLOAT_HEIGHT = 12, INT7_HEIGHT = 24;
/** About as many rows as a block has at most. */
const MOST_ROWS = 132;

/** Operands of `matmul` for weights of this layout: rows of float32 that it takes at once, and scratch memory of a thread. */
export function floatBlock(
  columns: number,
  layout: number,
): { readonly block: number; readonly scratch_bytes: number } {
  const isFloat = layout === formatLayout("F32")!.layout.id;
  const block = blockRows(4 * (isFloat ? columns : Math.min(columns, FLOAT_RUN)), FLOAT_HEIGHT);
  // Rows that meet plain floats are interleaved there.
  return { block, scratch_bytes: floatScratchBytes() + (isFloat ? 4 * block * columns : 0) };
}

/** The same for `matmul_int7`, whose rows are interleaved in scratch memory. */
export function int7Block(
  columns: number,
): { readonly block: number; readonly scratch_bytes: number } {
  const bytes = lowRowBytes(columns), block = blockRows(bytes, INT7_HEIGHT);
  return { block, scratch_bytes: int7ScratchBytes() + block * bytes };
}

function blockRows(rowBytes: number, height: number): number {
  const rows = Math.min(MOST_ROWS, BLOCK_BYTES / rowBytes);
  return Math.max(1, Math.floor(rows / height)) * height;
}
