// Packs rows of any format that is a line of wasm/format_layouts.ts into tiles.
//   for each block of a row: its scales to a header or cells (pack_scales.ts)
//   for each cell of a row:  its codes as bytes (pack_codes.ts), then as planes
// Formats that models come in most often have packers of their own (pack.ts), some times faster.
import { blockColumns, cellBytes, codeBits, headerBytes, scaleBytes } from "./generated/layouts";
import { laneOf } from "./pack";
import { readCodes, storeCodes } from "./pack_codes";
import { storeScales } from "./pack_scales";

/** Where the block of the layout is that column `k` is in; 0 columns: the row is one. */
@inline function headerAt(tile: usize, layout: u32, k: u32): usize {
  const columns = blockColumns(layout);
  return columns ? tile + <usize>(k / columns) * (headerBytes(layout) + (columns >> 5) * cellBytes(layout)) : tile;
}

@inline function cellAt(tile: usize, layout: u32, k: u32): usize {
  const columns = blockColumns(layout), inside = columns ? k % columns : k;
  return headerAt(tile, layout, k) + headerBytes(layout) + <usize>(inside >> 5) * cellBytes(layout);
}

/**
 * Packs `rows` rows of `rowBytes` bytes into whole tiles of `tileBytes` at `target`; lanes without a row become
 * zeros. What is between is as in wasm/format_layouts.ts; `codes` are 32 bytes of scratch memory. Returns the number
 * of scales that are not finite.
 */
export function packBlocks(
  layout: u32, source: usize, rows: u32, rowBytes: usize, columns: u32, target: usize, tileBytes: usize,
  order: u32, codesAt: usize, scales: u32, scalesAt: usize, blockSize: u32, blockBytes: usize,
  codes: usize,
): u32 {
  const bits = codeBits(layout), codeOffset = <usize>scaleBytes(layout);
  let bad: u32 = 0;
  for (let r: u32 = 0; r < rows; r++, source += rowBytes) {
    const row = r & 7, tile = target + <usize>(r >> 3) * tileBytes;
    if (row == 0 && (rows - r < 8 || columns & 31)) memory.fill(tile, 0, tileBytes);
    for (let k: u32 = 0; k < columns; k += blockSize) {
      const at = source + <usize>(k / blockSize) * blockBytes + scalesAt;
      bad += storeScales(scales, layout, at, headerAt(tile, layout, k), cellAt(tile, layout, k), k, row);
    }
    const step = min<u32>(blockSize, 32);
    for (let k: u32 = 0; k < columns; k += 32) {
      for (let j: u32 = 0; j < 32 && k + j < columns; j += step) {
        const block = (k + j) / blockSize, column = k + j - block * blockSize;
        const at = source + <usize>block * blockBytes + codesAt;
        readCodes(order, at, blockSize, column, min(step, columns - k - j), codes + j);
      }
      storeCodes(bits, codes, cellAt(tile, layout, k) + codeOffset + laneOf(row));
    }
  }
  return bad;
}
