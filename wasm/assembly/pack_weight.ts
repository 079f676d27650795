// Packs a run of rows of a weight while loading, shared out over the threads in chunks of whole tiles:
//   kind 0: rows as packRows takes them    1: as packBlocks does    2: rows that are rounded to 7 bit
// The last two have `scratch_bytes` of scratch memory a thread.
// The number of scales or rows that cannot be used is added to the word at `bad`.
import { packRows } from "./pack";
import { packBlocks } from "./pack_blocks";
import { packInt7 } from "./pack_int7";
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "./runtime";
import {
  PACK_WEIGHT_BAD, PACK_WEIGHT_BLOCK_BYTES, PACK_WEIGHT_BLOCK_SIZE, PACK_WEIGHT_CHUNK, PACK_WEIGHT_CODES_AT,
  PACK_WEIGHT_COLUMNS, PACK_WEIGHT_KIND, PACK_WEIGHT_LAYOUT, PACK_WEIGHT_ORDER, PACK_WEIGHT_ROWS,
  PACK_WEIGHT_ROW_BYTES, PACK_WEIGHT_SCALES, PACK_WEIGHT_SCALES_AT, PACK_WEIGHT_SCRATCH,
  PACK_WEIGHT_SCRATCH_BYTES, PACK_WEIGHT_SOURCE, PACK_WEIGHT_TARGET, PACK_WEIGHT_TILE_BYTES,
} from "./generated/opcodes";

export function pack_weight(ip: usize): void {
  const rows = u32At(ip, PACK_WEIGHT_ROWS), kind = u32At(ip, PACK_WEIGHT_KIND);
  const step = 8 * u32At(ip, PACK_WEIGHT_CHUNK);
  const total = step ? chunksOf(rows, step) : 0;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const bad = pack(ip, kind, <u32>c * step, min(rows, (<u32>c + 1) * step));
    if (bad) atomic.add<u32>(addressAt(ip, PACK_WEIGHT_BAD), bad);
  }
}

/** Rows [row, end), `row` a multiple of 8. */
function pack(ip: usize, kind: u32, row: u32, end: u32): u32 {
  const layout = u32At(ip, PACK_WEIGHT_LAYOUT), columns = u32At(ip, PACK_WEIGHT_COLUMNS), count = end - row;
  const rowBytes = addressAt(ip, PACK_WEIGHT_ROW_BYTES), tileBytes = addressAt(ip, PACK_WEIGHT_TILE_BYTES);
  const source = addressAt(ip, PACK_WEIGHT_SOURCE) + row * rowBytes;
  const target = addressAt(ip, PACK_WEIGHT_TARGET) + <usize>(row >> 3) * tileBytes;
  if (kind == 0) return packRows(layout, source, count, rowBytes, columns, target, tileBytes);
  const scratch = addressAt(ip, PACK_WEIGHT_SCRATCH) + <usize>thread * addressAt(ip, PACK_WEIGHT_SCRATCH_BYTES);
  if (kind == 1) {
    return packBlocks(
      layout, source, count, rowBytes, columns, target, tileBytes,
      u32At(ip, PACK_WEIGHT_ORDER), addressAt(ip, PACK_WEIGHT_CODES_AT), u32At(ip, PACK_WEIGHT_SCALES),
      addressAt(ip, PACK_WEIGHT_SCALES_AT), u32At(ip, PACK_WEIGHT_BLOCK_SIZE), addressAt(ip, PACK_WEIGHT_BLOCK_BYTES),
      scratch,
    );
  }
  return packInt7(layout, source, count, rowBytes, columns, target, tileBytes, scratch);
}
