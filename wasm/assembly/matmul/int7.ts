// Matrix products on 8-bit activations and weights that were rounded to 7 bit while loading.
//   few rows:  tiles are shared out as they lie in memory
//   many:      a block of rows that stays in the cache, times a few tiles, is one chunk; where pairs are summed, the block
//              lies interleaved in this thread's scratch memory, as far as it is whole fours, or eights where V8 joins (fours.ts)
// Every output is computed by one thread in one order of float operations, so neither the number of rows nor
// that of threads changes a bit.
import { joins } from "../machine/joining";
import { addressAt, min, nextChunk, thread, u32At } from "../machine/runtime";
import { foursBytes, interleave, interleaveEights } from "./fours";
import { firstRow, firstTile, lastRow, lastTile, nextBlock, nextTiles } from "./tile_ranges";
import {
  MATMUL_INT7_BIAS, MATMUL_INT7_BLOCK, MATMUL_INT7_CHUNK, MATMUL_INT7_COLUMNS, MATMUL_INT7_LARGE,
  MATMUL_INT7_OUTPUTS, MATMUL_INT7_ROWS, MATMUL_INT7_ROW_BYTES, MATMUL_INT7_SCRATCH, MATMUL_INT7_SCRATCH_BYTES,
  MATMUL_INT7_STYLE, MATMUL_INT7_THREADS, MATMUL_INT7_TILE_BYTES, MATMUL_INT7_W, MATMUL_INT7_X, MATMUL_INT7_Y,
} from "../generated/opcodes";
import { eight_int7 } from "../generated/eights_int7";
import { tiles_int7_dot_1, tiles_int7_dot_2 } from "../generated/tiles_int7_dot";
import { fours_int7, tiles_int7_pair_1, tiles_int7_pair_2 } from "../generated/tiles_int7_pair";
import { tiles_int7_plain_1, tiles_int7_plain_2 } from "../generated/tiles_int7_plain";
import { chooseStyle, copyEdge, usesDot } from "./q8";

/** Rows whose outputs fit into scratch memory at a ragged edge. */
const EDGE_ROWS: u32 = 64;
const EDGE_BYTES: usize = 32 * EDGE_ROWS;
/** Up to so many rows the weights come out of memory faster than they are multiplied. */
const FEW_ROWS: u32 = 8;

/** Rows of blocks are a multiple: eights, two fours, or a tile of `dot`. */
const EIGHT: u32 = 8, DOT_ROWS: u32 = 12;

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

/** How many of some rows lie in eights. */
@inline function eightsOf(rows: u32): u32 { return joins() ? rows & ~7 : 0; }

/** Rows [from, to), of which whole eights and fours lie interleaved at `fours`, times tiles [first, last). */
function multiplyFours(ip: usize, from: u32, to: u32, first: u32, last: u32, edge: usize, fours: usize): void {
  const columns = <usize>u32At(ip, MATMUL_INT7_COLUMNS), outputs = u32At(ip, MATMUL_INT7_OUTPUTS);
  const stride = <usize>u32At(ip, MATMUL_INT7_ROW_BYTES), outStride = <usize>outputs << 2;
  const tileBytes = <usize>u32At(ip, MATMUL_INT7_TILE_BYTES), bias = addressAt(ip, MATMUL_INT7_BIAS);
  const w = addressAt(ip, MATMUL_INT7_W), out = addressAt(ip, MATMUL_INT7_Y) + outStride * from;
  const rows = (to - from) & ~3, whole = min(last, outputs >> 3), eights = eightsOf(rows);
  for (let r: u32 = 0; r < rows; r = r < eights ? r + EIGHT : rows) {
    const x = fours + stride * r;
    for (let t = first; t < whole; t++) {
      const tile = w + <usize>t * tileBytes, tileBias = bias ? bias + 32 * t : NO_BIAS, y = out + 32 * t + outStride * r;
      if (r < eights) eight_int7(x, columns, tile, tileBias, y, outStride);
      else fours_int7(rows - r, foursBytes(columns, stride, false), x, columns, tile, tileBias, y, outStride);
    }
  }
  if (from + rows < to) multiply(ip, from + rows, to, first, last, edge);
  if (whole < last) multiply(ip, from, from + rows, whole > first ? whole : first, last, edge);
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
  const inFours = ASC_FEATURE_RELAXED_SIMD && !usesDot(), fours = edge + EDGE_BYTES;
  const columns = <usize>u32At(ip, MATMUL_INT7_COLUMNS), stride = <usize>u32At(ip, MATMUL_INT7_ROW_BYTES);
  let begun: u32 = -1;
  while (nextBlock(ip, rows, block, count, inFours ? EIGHT : DOT_ROWS)) {
    if (!inFours) { multiply(ip, firstRow, lastRow, firstTile, lastTile, edge); continue; }
    if (firstRow != begun) {
      const some = (lastRow - firstRow) & ~3, eights = eightsOf(some), x = addressAt(ip, MATMUL_INT7_X) + stride * firstRow;
      interleaveEights(eights, x, stride, columns, fours);
      interleave(some - eights, x + stride * eights, stride, columns, false, fours + stride * eights);
    }
    begun = firstRow;
    multiplyFours(ip, firstRow, lastRow, firstTile, lastTile, edge, fours);
  }
}
