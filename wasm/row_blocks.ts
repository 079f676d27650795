// How many activation rows a matrix product takes at a time when there are many. Every tile of weights reads
// the whole block, so a block stays in the L2 cache; the weights are read once a block, which a block of some
// dozens of rows hides.

import { q8RowBytes } from "../quant/q8_activation.ts";

/** Part of an L2 cache of 512 KiB that a block may fill. */
const BLOCK_BYTES = 192 * 1024;
/** Rows of the largest register tiles (assembly/gen), of which a block is a multiple. */
const FLOAT_HEIGHT = 6, INT7_HEIGHT = 4;

/** Rows of float32 that `matmul` takes at once. */
export function floatBlock(columns: number): number {
  return blockRows(4 * columns, FLOAT_HEIGHT, 84);
}

/** Rows that `matmul_int7` takes at once. */
export function int7Block(columns: number): number {
  return blockRows(q8RowBytes(columns), INT7_HEIGHT, 128);
}

function blockRows(rowBytes: number, height: number, most: number): number {
  const rows = Math.min(most, Math.floor(BLOCK_BYTES / rowBytes));
  return Math.max(2, Math.floor(rows / height)) * height;
}
