// Matrix products on 8-bit activations and weights that were rounded to 7 bit while loading.
//   few rows:  tiles are shared out as they lie in memory
//   many:      a block of rows that stays in the cache, times a few tiles, is one chunk
// Every output is computed by one thread in one order of float operations, so neither the number of rows nor
// that of threads changes a bit.
import { addressAt, min, nextChunk, thread, u32At } from "../machine/runtime";
import { firstRow, firstTile, lastRow, lastTile, nextBlock, nextTiles } from "./tile_ranges";
import {
  MATMUL_INT7_BIAS, MATMUL_INT7_BLOCK, MATMUL_INT7_CHUNK, MATMUL_INT7_COLUMNS, MATMUL_INT7_LARGE,
  MATMUL_INT7_OUTPUTS, MATMUL_INT7_ROWS, MATMUL_INT7_ROW_BYTES, MATMUL_INT7_SCRATCH, MATMUL_INT7_SCRATCH_BYTES,
  MATMUL_INT7_STYLE, MATMUL_INT7_THREADS, MATMUL_INT7_TILE_BYTES, MATMUL_INT7_W, MATMUL_INT7_X, MATMUL_INT7_Y,
} from "../generated/opcodes";
import { tiles_int7_dot_1, tiles_int7_dot_2 } from "../generated/tiles_int7_dot";
import { tiles_int7_pair_1, tiles_int7_pair_2 } from "../generated/tiles_int7_pair";
import { tiles_int7_plain_1, tiles_int7_plain_2 } from "../generated/tiles_int7_plain";
import { chooseStyle, copyEdge, usesDot } from "./q8";

/** Rows whose outputs fit into scratch memory at a ragged edge. */
const EDGE_ROWS: u32 = 64;
/** Up to so many rows the weights come out of memory faster than they are multiplied. */
const FEW_ROWS: u32 = 8;

/** What is added where there is no bias. */
const NO_BIAS: usize = memory.data<f32>([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 16);

/** Rows times one tile or two neighbours. */
function tiles(two: bool, rows: u32, x: usize, stride: usize, columns: usize, w: usize, tileBytes: usize,
    bias: usize, out: usize, outStride: usize): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    if (usesDot()) {
      if (two) tiles_int7_dot_2(rows, x, stride, columns, w, tileBytes, bias, out, outStride);
      else tiles_int7_dot_1(rows, x, stride, columns, w, tileBytes, bias, out, outStride);
    } else if (two) tiles_int7_pair_2(rows, x, stride, columns, w, tileBytes, bias, out, outStride);
    else tiles_int7_pair_1(rows, x, stride, columns, w, tileBytes, bias, out, outStride);
  } else if (two) tiles_int7_plain_2(rows, x, stride, columns, w, tileBytes, bias, out, outStride);
  else tiles_int7_plain_1(rows, x, stride, columns, w, tileBytes, bias, out, outStride);
}

/** Rows [from, to) times tiles [first, last). */
function multiply(ip: usize, from: u32, to: u32, first: u32, last: u32, edge: usize): void {
  const columns = <usize>u32At(ip, MATMUL_INT7_COLUMNS), outputs = u32At(ip, MATMUL_INT7_OUTPUTS);
  const stride = <usize>u32At(ip, MATMUL_INT7_ROW_BYTES), tileBytes = <usize>u32At(ip, MATMUL_INT7_TILE_BYTES);
  const x = addressAt(ip, MATMUL_INT7_X), w = addressAt(ip, MATMUL_INT7_W), y = addressAt(ip, MATMUL_INT7_Y);
  const bias = addressAt(ip, MATMUL_INT7_BIAS), outStride = <usize>outputs << 2;
  for (let t = first; t < last;) {
    const tile = w + <usize>t * tileBytes, tileBias = bias ? bias + 32 * t : 0;
    const left = outputs - (t << 3), out = y + 32 * t;
    if (left >= 8) {
      const two = left >= 16 && last - t >= 2;
      tiles(two, to - from, x + stride * from, stride, columns, tile, tileBytes, bias ? tileBias : NO_BIAS,
        out + outStride * from, outStride);
      t += two ? 2 : 1;
      continue;
    }
    for (let r = from; r < to; r += EDGE_ROWS) {
      const some = min(to - r, EDGE_ROWS);
      tiles(false, some, x + stride * r, stride, columns, tile, tileBytes, NO_BIAS, edge, 32);
      copyEdge(some, left, edge, 32, out + outStride * r, outStride, tileBias);
    }
    t++;
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
