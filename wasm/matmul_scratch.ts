// Scratch memory of the matmul kernels, bytes a thread; what is in it is said in assembly/matmul/q8.ts
// and assembly/matmul/decode_tile.ts.

import { outlierRuns, OUTLIERS, q8RowBytes } from "../quant/q8_activation.ts";
import { q16RowBytes } from "../quant/q16_activation.ts";

/** Rows that a thread takes at once, if they fit, and the least. */
const BLOCK_ROWS = 128, FEW_ROWS = 24;
/** Most bytes of those rows. */
const BLOCK_BYTES = 2 ** 20;

/**
 * For matmul_q8: outputs at a ragged edge, codes of 16 weight rows as 16 bits, their scales for groups of 16, lists of
 * outliers, and rows of activations with codes as 16 bits.
 */
export function q8ScratchBytes(columns: number): number {
  const row = q8RowBytes(columns) + columns;
  const rows = Math.max(FEW_ROWS * row, Math.min(BLOCK_ROWS * row, BLOCK_BYTES));
  return 64 * BLOCK_ROWS + 32 * columns + 128 * (columns / 16) + outlierListsBytes(columns) + rows;
}

/** Unpacked codes and scales, a cell of floats, and a column. */
const UNPACKED_BYTES = 256 * 8 + 256 / 16 * 64 + 32 * 32 + 64;

/** Bytes of a row's list of outliers, 16 for each. */
function outlierListBytes(columns: number): number {
  return outlierRuns(columns) * OUTLIERS * 16;
}

/** Lists of the outliers of a block of rows (assembly/matmul/outliers.ts). */
function outlierListsBytes(columns: number): number {
  return UNPACKED_BYTES + 1024 * (16 + 64) + 2 * columns +
    BLOCK_ROWS * (4 + outlierListBytes(columns));
}

/** For matmul_q16: outputs at a ragged edge, and a block of rows. */
export function q16ScratchBytes(columns: number): number {
  return 16 * 32 + 16 * q16RowBytes(columns);
}

/** For expert_matmul_q8: what unpacking takes, and a row's list of outliers. */
export function expertScratchBytes(columns: number): number {
  return UNPACKED_BYTES + outlierListBytes(columns);
}

/** For matmul and embed: outputs at a ragged edge, unpacked codes and scales, a run of floats. */
export function floatScratchBytes(): number {
  return 64 * 32 + (256 * 8 + 256 / 16 * 64) + 256 * 32;
}

/** For matmul_int7: outputs at a ragged edge. */
export function int7ScratchBytes(): number {
  return 64 * 32;
}
