// Rows of the token table, out of the layout that the head's matrix product reads.
//   for each token: for each run of columns: decode the tile that holds it, copy its lane times scale
// Decoding eight rows for one costs microseconds a token and saves a second copy of the table.
import { nextChunk, addressAt, f32At, min, thread, u32At } from "../machine/runtime";
import {
  CONTROL_STATUS, EMBED_COLUMNS, EMBED_LAYOUT, EMBED_ROWS, EMBED_SCALE, EMBED_SCRATCH, EMBED_SCRATCH_BYTES, EMBED_TILE_BYTES,
  EMBED_TOKENS, EMBED_VOCABULARY, EMBED_W, EMBED_Y,
} from "../generated/opcodes";
import { DECODE_BYTES, RUN, decodeColumns } from "../matmul/decode_tile";

export function embed(ip: usize): void {
  const rows = u32At(ip, EMBED_ROWS), columns = u32At(ip, EMBED_COLUMNS), layout = u32At(ip, EMBED_LAYOUT);
  const vocabulary = u32At(ip, EMBED_VOCABULARY), tileBytes = <usize>u32At(ip, EMBED_TILE_BYTES);
  const tokens = addressAt(ip, EMBED_TOKENS), w = addressAt(ip, EMBED_W), y = addressAt(ip, EMBED_Y);
  const scale = f32At(ip, EMBED_SCALE);
  const scratch = addressAt(ip, EMBED_SCRATCH) + <usize>thread * u32At(ip, EMBED_SCRATCH_BYTES);
  const panel = scratch + DECODE_BYTES;
  for (let r = nextChunk(ip, rows); r >= 0; r = nextChunk(ip, rows)) {
    const token = load<u32>(tokens + 4 * r);
    if (token >= vocabulary) { atomic.or<u32>(CONTROL_STATUS, 2); continue; }
    const tile = w + <usize>(token >> 3) * tileBytes;
    let out = y + 4 * <usize>columns * r;
    for (let k: u32 = 0; k < columns; k += RUN) {
      const run = min(columns - k, RUN);
      let from = decodeColumns(layout, tile, k, run, panel, scratch) + 4 * <usize>(token & 7);
      for (const end = from + 32 * run; from < end; from += 32, out += 4) store<f32>(out, load<f32>(from) * scale);
    }
  }
}
