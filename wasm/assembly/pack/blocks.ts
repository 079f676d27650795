// Packs a row of any format that is described by its block (quant/block.ts) into a tile.
//   for each block of a row: its scales to a header or cells (scales.ts)
//   for each cell of a row:  its codes as bytes (codes.ts), then as planes
// Formats that models come in most often have packers of their own (pack.ts, four.ts), ten times faster
// (bench/results/kernels.md).
import { blockColumns, cellBytes, codeBits, headerBytes, scaleBytes } from "../generated/layouts";
import { addressAt, min, u32At } from "../machine/runtime";
import {
  PACK_WEIGHT_BLOCK_BYTES, PACK_WEIGHT_BLOCK_SIZE, PACK_WEIGHT_CODES, PACK_WEIGHT_CODES_ABOVE, PACK_WEIGHT_LAYOUT,
} from "../generated/opcodes";
import { laneOf } from "./pack";
import { readCodes, storeCodes } from "./codes";
import { storeScales } from "./scales";

/**
 * Packs one row into its lane of a tile. The instruction at `ip` says what a block is like (wasm/format_layouts.ts);
 * `codes` are 32 bytes of scratch memory. Returns the number of scales that are not finite.
 */
export function packBlocks(ip: usize, source: usize, columns: u32, row: u32, tile: usize, codes: usize): u32 {
  const layout = u32At(ip, PACK_WEIGHT_LAYOUT), low = u32At(ip, PACK_WEIGHT_CODES), high = u32At(ip, PACK_WEIGHT_CODES_ABOVE);
  const blockSize = u32At(ip, PACK_WEIGHT_BLOCK_SIZE), blockBytes = addressAt(ip, PACK_WEIGHT_BLOCK_BYTES);
  const bits = codeBits(layout), lane = <usize>scaleBytes(layout) + laneOf(row);
  // Asked for once: each of these is a switch over all layouts.
  const header = <usize>headerBytes(layout), bytes = <usize>cellBytes(layout);
  // Columns of a block of the layout, 0: the row is one; a cell has 32.
  const span = blockColumns(layout), spanBytes = header + <usize>(span >> 5) * bytes;
  let bad: u32 = 0, start = tile, inside: u32 = 0, at = source;
  // Places are counted on: divisions would take longer than a block's scales.
  for (let k: u32 = 0; k < columns; k += blockSize, inside += blockSize, at += blockBytes) {
    for (; span && inside >= span; inside -= span) start += spanBytes;
    bad += storeScales(ip, at, header, bytes, start, start + header + <usize>(inside >> 5) * bytes, k, row);
  }
  const step = min(blockSize, 32);
  let cell = tile, left: u32 = 0, block = source, column: u32 = 0;
  for (let k: u32 = 0; k < columns; k += 32, cell += bytes, left -= 32) {
    if (left == 0) {
      cell += header;
      left = span ? span : columns + 32;
    }
    for (let j: u32 = 0; j < 32 && k + j < columns; j += step, column += step) {
      if (column >= blockSize) {
        column = 0;
        block += blockBytes;
      }
      readCodes(block, low, high, column, min(step, columns - k - j), codes + j);
    }
    storeCodes(bits, codes, cell + lane);
  }
  return bad;
}
