// Matrix products of floats that are rounded to 16 bit (quant/q16_activation.ts), on weights whose codes are signed bytes.
// Every thread rounds the rows itself: that is nothing beside the weights, and needs no barrier. Rows go in blocks that
// stay in a cache beside some tiles; every output is computed by one thread in one order of float operations.
import { joins } from "../machine/joining";
import { takesTurns } from "../machine/read_trial";
import { addressAt, min, nextChunk, thread, u32At } from "../machine/runtime";
import { gemv_joined_wide_one, hasJoinedWide } from "../generated/gemv_joined_one_pair";
import { tiles_q16 } from "../generated/tiles_q16";
import {
  MATMUL_Q16_BIAS, MATMUL_Q16_CHUNK, MATMUL_Q16_COLUMNS, MATMUL_Q16_LARGE, MATMUL_Q16_LAYOUT, MATMUL_Q16_OUTPUTS,
  MATMUL_Q16_ROWS, MATMUL_Q16_ROW_BYTES, MATMUL_Q16_SCRATCH, MATMUL_Q16_SCRATCH_BYTES, MATMUL_Q16_THREADS,
  MATMUL_Q16_TILE_BYTES, MATMUL_Q16_W, MATMUL_Q16_X, MATMUL_Q16_Y,
} from "../generated/opcodes";
import { addBias, copyEdge } from "./q8";
import { largestOf, roundedTo } from "./quantize";
import { firstTile, halfOf, lastTile, nextTiles } from "./tile_ranges";

/** Rows of a block: what scratch memory holds (wasm/matmul_scratch.ts). */
const BLOCK: u32 = 16;
/** Outputs of a block at a ragged edge. */
const EDGE_BYTES: usize = 16 * 32;

/** Rounds a row of floats. */
function roundRow(x: usize, row: usize, columns: usize): void {
  let scales = row + 2 * columns;
  for (const end = x + 4 * columns; x < end; x += 128, row += 64, scales += 4) {
    const scale = largestOf(x) / 32767;
    const divisor = f32x4.splat(scale == 0 ? 1 : scale);
    for (let i: usize = 0; i < 4; i++) {
      const at = x + 32 * i, codes = i16x8.narrow_i32x4_s(roundedTo(at, divisor), roundedTo(at + 16, divisor));
      v128.store(row + 16 * i, i16x8.max_s(codes, i16x8.splat(-32767)));
    }
    store<f32>(scales, scale);
  }
}

/** Rows times one tile, or, of one row, two. */
function someTiles(layout: u32, rows: u32, w: usize, apart: usize, x: usize, stride: usize, columns: usize, out: usize, outApart: usize, outStride: usize): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    if (rows == 1 && joins() && hasJoinedWide(layout)) {
      gemv_joined_wide_one(layout, w, apart, x + columns, columns, out, outApart, 0, x);
      return;
    }
  }
  tiles_q16(layout, rows, w, apart, x, stride, columns, out, outApart, outStride);
}

/** Some rows, of which `rounded` is the first, times tiles [first, last), of one row in order or two at a time from both halves. */
function multiply(ip: usize, from: u32, rows: u32, rounded: usize, first: u32, last: u32, edge: usize): void {
  const w = addressAt(ip, MATMUL_Q16_W), bias = addressAt(ip, MATMUL_Q16_BIAS), outputs = u32At(ip, MATMUL_Q16_OUTPUTS);
  const layout = u32At(ip, MATMUL_Q16_LAYOUT), tileBytes = <usize>u32At(ip, MATMUL_Q16_TILE_BYTES);
  const columns = <usize>u32At(ip, MATMUL_Q16_COLUMNS), stride = <usize>u32At(ip, MATMUL_Q16_ROW_BYTES);
  const outStride = <usize>outputs << 2, y = addressAt(ip, MATMUL_Q16_Y) + outStride * from;
  const half = rows == 1 && takesTurns(tileBytes) ? halfOf(first, min(last, outputs >> 3)) : 0, middle = first + half, apart = half * tileBytes;
  for (let t = first; t < middle; t++) {
    someTiles(layout, rows, w + <usize>t * tileBytes, apart, rounded, stride, columns, y + 32 * t, 32 * half, outStride);
  }
  for (let t = middle + half; t < last; t++) {
    const isWhole = outputs - 8 * t >= 8, out = isWhole ? y + 32 * t : edge;
    someTiles(layout, rows, w + <usize>t * tileBytes, 0, rounded, stride, columns, out, 0, isWhole ? outStride : 32);
    if (!isWhole) copyEdge(rows, outputs - 8 * t, edge, 32, y + 32 * t, outStride, bias ? bias + 32 * t : 0);
  }
  const whole = min(last, outputs >> 3);
  if (bias && whole > first) addBias(rows, 2 * (whole - first), y + 32 * first, outStride, bias + 32 * first);
}

export function matmul_q16(ip: usize): void {
  const rows = u32At(ip, MATMUL_Q16_ROWS), count = (u32At(ip, MATMUL_Q16_OUTPUTS) + 7) >> 3;
  if (rows == 0) { nextChunk(ip, 0); return; }
  const large = u32At(ip, MATMUL_Q16_LARGE), threads = u32At(ip, MATMUL_Q16_THREADS), chunk = u32At(ip, MATMUL_Q16_CHUNK);
  const x = addressAt(ip, MATMUL_Q16_X), columns = <usize>u32At(ip, MATMUL_Q16_COLUMNS);
  const edge = addressAt(ip, MATMUL_Q16_SCRATCH) + <usize>thread * u32At(ip, MATMUL_Q16_SCRATCH_BYTES);
  const rounded = edge + EDGE_BYTES, stride = <usize>u32At(ip, MATMUL_Q16_ROW_BYTES);
  let from: u32 = rows; // the first row of the block that lies rounded; at first none does
  while (nextTiles(ip, count, large, threads, chunk)) {
    for (let r: u32 = 0; r < rows; r += BLOCK) {
      const some = min(rows - r, BLOCK);
      if (from != r) for (let i: u32 = 0; i < some; i++) roundRow(x + 4 * columns * (r + i), rounded + stride * i, columns);
      from = r;
      multiply(ip, r, some, rounded, firstTile, lastTile, edge);
    }
  }
}
