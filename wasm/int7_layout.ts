// How matrices rounded to 7 bit (quant/int7_groups.ts) lie in WASM memory. As in the layouts of files' formats
// (weight_layout.ts) a tile holds eight rows and a cell 64 turned columns of them: eight scales and eight minima as
// float32, then the codes as vectors v[q][h], q = 0..15, h = 0..1, byte 4r + i of which is column 4q + i of row
// 4h + r. That is what a register tile reads, so nothing is unpacked: 9 bits a weight. Of half a group at the end of a row
// the other half are codes of 0.

import { INT7_GROUP } from "../quant/int7_groups.ts";
import { lowColumns } from "../quant/q8_activation.ts";

/** Formats of files whose matrices may be rounded. */
export const ROUNDED_FORMATS: readonly string[] = ["F32", "F16", "BF16"];

/** Bytes of the scales and minima in front of the codes of a cell. */
export const INT7_SCALE_BYTES = 64;
/** Bytes of a cell. */
export const INT7_CELL_BYTES: number = INT7_SCALE_BYTES + 512;

/** Bytes of one tile of eight rows; `columns` is a multiple of 32. */
export function int7TileBytes(columns: number): number {
  return lowColumns(columns) / INT7_GROUP * INT7_CELL_BYTES;
}
