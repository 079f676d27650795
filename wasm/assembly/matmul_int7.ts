// Matrix products on 8-bit activations and weights that were rounded to 7 bit while loading.
//   few rows:  tiles are shared out as they lie in memory
//   many:      a block of rows that stays in the cache, times a few tiles, is one chunk
// Every output is computed by one thread in one order of float operations, so neither the number of rows nor
// that of threads changes a bit.
import { addressAt, min, nextChunk, thread, u32At } from "./runtime";
import { firstRow, firstTile, lastRow, lastTile, nextBlock, nextTiles } from "./tile_ranges";
import {
  MATMUL_INT7_BIAS, MATMUL_INT7_BLOCK, MATMUL_INT7_CHUNK, MATMUL_INT7_COLUMNS, MATMUL_INT7_LARGE,
  MATMUL_INT7_OUTPUTS, MATMUL_INT7_ROWS, MATMUL_INT7_ROW_BYTES, MATMUL_INT7_SCRATCH, MATMUL_INT7_SCRATCH_BYTES,
  MATMUL_INT7_STYLE, MATMUL_INT7_THREADS, MATMUL_INT7_TILE_BYTES, MATMUL_INT7_W, MATMUL_INT7_X, MATMUL_INT7_Y,
} from "./generated/opcodes";
import { tiles_int7_dot } from "./generated/tiles_int7_dot";
import { tiles_int7_pair } from "./generated/tiles_int7_pair";
import { tiles_int7_plain } from "./generated/tiles_int7_plain";
import { addBias, chooseStyle, copyEdge, usesDot } from "./matmul_q8";

/** Rows whose outputs fit into scratch memory at a ragged edge. */
const EDGE_ROWS: u32 = 64;
/** Up to so many rows the weights come out of memory faster than they are multiplied. */
const FEW_ROWS: u32 = 8;

function tiles(rows: u32, x: usize, stride: usize, columns: usize, w: usize, out: usize,
    outStride: usize): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    if (usesDot()) tiles_int7_dot(rows, x, stride, columns, w, out, outStride);
    else tiles_int7_pair(rows, x, stride, columns, w, out, outStride);
  } else tiles_int7_plain(rows, x, stride, columns, w, out, outStride);
}

/** Rows [from, to) times tiles [first, last). */
function multiply(ip: usize, from: u32, to: u32, first: u32, last: u32, edge: usize): void {
  const columns = <usize>u32At(ip, MATMUL_INT7_COLUMNS), outputs = u32At(ip, MATMUL_INT7_OUTPUTS);
  const stride = <usize>u32At(ip, MATMUL_INT7_ROW_BYTES), tileBytes = <usize>u32At(ip, MATMUL_INT7_TILE_BYTES);
  const x = addressAt(ip, MATMUL_INT7_X), w = addressAt(ip, MATMUL_INT7_W), y = addressAt(ip, MATMUL_INT7_Y);
  const bias = addressAt(ip, MATMUL_INT7_BIAS), outStride = <usize>outputs << 2;
  for (let t = first; t < last; t++) {
    const tile = w + <usize>t * tileBytes;
    const out = y + 32 * t, tileBias = bias ? bias + 32 * t : 0;
    if (outputs - (t << 3) >= 8) {
      const target = out + outStride * from;
      tiles(to - from, x + stride * from, stride, columns, tile, target, outStride);
      if (bias) addBias(to - from, 2, target, outStride, tileBias);
      continue;
    }
    for (let r = from; r < to; r += EDGE_ROWS) {
      const some = min(to - r, EDGE_ROWS);
      tiles(some, x + stride * r, stride, columns, tile, edge, 32);
      copyEdge(some, outputs - 8 * t, edge, 32, out + outStride * r, outStride, tileBias);
    }
  }
}

export function matmul_int7(ip: usize): void {
  const rows = u32At(ip, MATMUL_INT7_ROWS), count = (u32At(ip, MATMUL_INT7_OUTPUTS) + 7) >> 3;
  const edge = addressAt(ip, MATMUL_INT7_SCRATCH) + <usize>thread * u32At(ip, MATMUL_INT7_SCRATCH_BYTES);
  chooseStyle(u32At(ip, MATMUL_INT7_STYLE));
  if (rows == 0) { nextChunk(ip, 0); return; }
  if (rows <= FEW_ROWS) {
    const large = u32At(ip, MATMUL_INT7_LARGE), chunk = u32At(ip, MATMUL_INT7_CHUNK);
    const threads = u32At(ip, MATMUL_INT7_THREADS);
    while (nextTiles(ip, count, large, threads, chunk)) multiply(ip, 0, rows, firstTile, lastTile, edge);
    return;
  }
  const block = u32At(ip, MATMUL_INT7_BLOCK);
  while (nextBlock(ip, rows, block, count)) multiply(ip, firstRow, lastRow, firstTile, lastTile, edge);
}
