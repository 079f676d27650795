// Packs a run of rows of a weight while loading, shared out over the threads in chunks of whole tiles:
//   kind 0: rows in the order of bytes that their layout is named after    1: in another one    2: rows that are rounded
//   to 7 bit
//   3: bytes that stay as they are    4: nothing; the thread closes the file it has open
// Kinds 0 to 2 have `scratch_bytes` of scratch memory a thread.
// The rows lie at `source`, or in a file (`file` is not 0, see engine/io.ts) from `file_offset` on, a double. Then
// every thread reads the chunks it takes into `staging_bytes` of its own from `source` on, small enough to
// stay in its cache: no thread waits for another that reads, and the memory that is new to the process is
// touched for the first time by all of them.
// The number of scales or rows that cannot be used, and of chunks that cannot be read, is added to the word at
// `bad`; KiB that were read to the word at `loaded`.
import { packRows } from "./pack";
import { packInt7 } from "./int7";
import { addressAt, chunksOf, min, nextChunk, setThread, thread, u32At } from "../machine/runtime";
import {
  PACK_WEIGHT_BAD, PACK_WEIGHT_CHUNK, PACK_WEIGHT_COLUMNS, PACK_WEIGHT_FILE, PACK_WEIGHT_FILE_OFFSET, PACK_WEIGHT_KIND,
  PACK_WEIGHT_LAYOUT, PACK_WEIGHT_LOADED, PACK_WEIGHT_ROWS, PACK_WEIGHT_ROW_BYTES, PACK_WEIGHT_SCRATCH,
  PACK_WEIGHT_SCRATCH_BYTES, PACK_WEIGHT_SOURCE, PACK_WEIGHT_STAGING_BYTES, PACK_WEIGHT_TARGET, PACK_WEIGHT_TILE_BYTES,
} from "../generated/opcodes";

/** Reads from a file that is described at `file`; 0 if not all could be read. Without bytes: closes what is open. */
@external("env", "read") declare function read(file: usize, offset: f64, target: usize, bytes: u32): u32;

export function pack_weight(ip: usize): void {
  const rows = u32At(ip, PACK_WEIGHT_ROWS), kind = u32At(ip, PACK_WEIGHT_KIND);
  if (kind == 4) { nextChunk(ip, 0); read(0, 0, 0, 0); return; }
  const step = 8 * u32At(ip, PACK_WEIGHT_CHUNK);
  const total = step ? chunksOf(rows, step) : 0;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const bad = pack(ip, kind, <u32>c * step, min(rows, (<u32>c + 1) * step));
    if (bad) atomic.add<u32>(addressAt(ip, PACK_WEIGHT_BAD), bad);
  }
}

/**
 * The whole instruction on the calling thread, which is no thread of a run: one that loads weights while others compute
 * (wasm/loaders.ts). `number` says which staging and scratch memory is its own. Returns what would be added at `bad`.
 */
export function packAlone(ip: usize, number: u32): u32 {
  setThread(number);
  const rows = u32At(ip, PACK_WEIGHT_ROWS), step = 8 * u32At(ip, PACK_WEIGHT_CHUNK), kind = u32At(ip, PACK_WEIGHT_KIND);
  let bad: u32 = 0;
  for (let row: u32 = 0; row < rows; row += step) bad += pack(ip, kind, row, min(rows, row + step));
  return bad;
}

/** Rows [row, end), `row` a multiple of 8. */
function pack(ip: usize, kind: u32, row: u32, end: u32): u32 {
  const layout = u32At(ip, PACK_WEIGHT_LAYOUT), columns = u32At(ip, PACK_WEIGHT_COLUMNS), count = end - row;
  const rowBytes = addressAt(ip, PACK_WEIGHT_ROW_BYTES), tileBytes = addressAt(ip, PACK_WEIGHT_TILE_BYTES);
  const target = addressAt(ip, PACK_WEIGHT_TARGET) + <usize>(row >> 3) * tileBytes;
  const file = addressAt(ip, PACK_WEIGHT_FILE);
  let source = addressAt(ip, PACK_WEIGHT_SOURCE);
  if (file) {
    // The two words of a double, which has an exact place for every byte of a file.
    const offset = load<f64>(ip + PACK_WEIGHT_FILE_OFFSET) + <f64>row * <f64>rowBytes;
    source = kind == 3 ? target : source + <usize>thread * addressAt(ip, PACK_WEIGHT_STAGING_BYTES);
    const bytes = count * <u32>rowBytes;
    if (!read(file, offset, source, bytes)) return 1;
    atomic.add<u32>(addressAt(ip, PACK_WEIGHT_LOADED), (bytes + 1023) >> 10);
  } else source += row * rowBytes;
  if (kind == 3) return 0;
  const scratch = addressAt(ip, PACK_WEIGHT_SCRATCH) + <usize>thread * addressAt(ip, PACK_WEIGHT_SCRATCH_BYTES);
  if (kind < 2) return packRows(ip, source, count, rowBytes, columns, target, tileBytes, scratch);
  return packInt7(layout, source, count, rowBytes, columns, target, tileBytes, scratch);
}
