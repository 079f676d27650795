// Matrix products on float32 activations and exactly the stored weights: the exact path, and the only one
// for formats without an integer kernel.
//   for each tile of eight weight rows: outputs = bias
//     for each run of columns: decode it once, add its products for all rows (generated/float_tiles)
//     or, for one row: decode and multiply in one (generated/gemv_float), to the same bits
// Many rows go in blocks, and a block takes a run of columns through some tiles before the next run: what every
// tile reads of x stays in the L2 cache however wide a row is, and the weights are read once a block.
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "../machine/runtime";
import { LAYOUT_F32 } from "../generated/layouts";
import { blockWeights, blocksOf, firstOf } from "../network/conv_blocks";
import { firstRow, firstTile, halfOf, lastRow, lastTile, nextBlock, nextTiles } from "./tile_ranges";
import {
  MATMUL_BIAS, MATMUL_BLOCK, MATMUL_CHUNK, MATMUL_COLUMNS, MATMUL_LARGE, MATMUL_LAYOUT, MATMUL_OUTPUTS, MATMUL_ROWS,
  MATMUL_SCRATCH, MATMUL_SCRATCH_BYTES, MATMUL_THREADS, MATMUL_TILE_BYTES, MATMUL_W, MATMUL_X, MATMUL_Y,
} from "../generated/opcodes";
import { DECODE_BYTES, RUN, decodeColumns } from "./decode_tile";
import { rowTiles } from "../generated/conv_tiles";
import { floatTiles } from "../generated/float_tiles";
import { gemvFloat } from "../generated/gemv_float";

/** Rows of activations whose outputs fit into scratch memory at a ragged edge. */
const EDGE_ROWS: u32 = 64;
const EDGE_BYTES: usize = 64 * 32;
/** Behind those: what decoding takes (wasm/matmul_scratch.ts). */
const FLOATS_AT: usize = DECODE_BYTES + 256 * 32;

/** Rows of blocks are a multiple: whole register tiles of six rows. */
const BLOCK_HEIGHT: u32 = 12;

/** Most float32 columns of a run: a panel of eight stays in the L1 cache beside six rows of x. */
const FLOAT_RUN: u32 = 384;

/** Sets eight outputs of each row to the bias, or to zero. */
function startRows(rows: u32, out: usize, stride: usize, bias: usize, width: u32): void {
  let low = f32x4.splat(0), high = low;
  if (bias && width == 8) { low = v128.load(bias); high = v128.load(bias, 16); }
  for (const end = out + <usize>rows * stride; out < end; out += stride) {
    v128.store(out, low);
    v128.store(out, high, 16);
    for (let c: u32 = 0; bias && c < (width & 7); c++) store<f32>(out + 4 * c, load<f32>(bias + 4 * c));
  }
}

/** Columns of a run: floats are read where they lie, in runs of one length; others are decoded. */
function runOf(layout: u32, columns: u32): u32 {
  if (layout != LAYOUT_F32 || columns == 0) return RUN;
  return (chunksOf(columns, chunksOf(columns, FLOAT_RUN)) + 3) & ~3;
}

function copyRows(rows: u32, width: u32, from: usize, to: usize, stride: usize): void {
  for (let r: u32 = 0; r < rows; r++, from += 32, to += stride) memory.copy(to, from, 4 * width);
}

/** Adds the products of some rows with a run of columns of one tile. */
function multiplyRun(layout: u32, tile: usize, k: u32, run: u32, rows: u32, x: usize, stride: usize,
    target: usize, targetStride: usize, scratch: usize): void {
  const decoded = decodeColumns(layout, tile, k, run, scratch + DECODE_BYTES, scratch);
  floatTiles(rows, x + 4 * k, stride, run, decoded, target, targetStride);
}

/** Adds the products of some rows with one tile. */
function multiply(layout: u32, tile: usize, columns: u32, rows: u32, x: usize, stride: usize,
    target: usize, targetStride: usize, scratch: usize): void {
  const most = runOf(layout, columns);
  for (let k: u32 = 0; k < columns; k += most) {
    multiplyRun(layout, tile, k, min(columns - k, most), rows, x, stride, target, targetStride, scratch);
  }
}

/** Rows [from, to) times tiles [first, last), all of which are whole: a run of columns through all tiles. */
function multiplyBlock(ip: usize, from: u32, to: u32, first: u32, last: u32): void {
  const columns = u32At(ip, MATMUL_COLUMNS), outputs = u32At(ip, MATMUL_OUTPUTS);
  const layout = u32At(ip, MATMUL_LAYOUT), tileBytes = <usize>u32At(ip, MATMUL_TILE_BYTES);
  const stride = <usize>columns << 2, outStride = <usize>outputs << 2, bias = addressAt(ip, MATMUL_BIAS);
  const x = addressAt(ip, MATMUL_X) + stride * from, y = addressAt(ip, MATMUL_Y) + outStride * from;
  const w = addressAt(ip, MATMUL_W), most = runOf(layout, columns);
  const scratch = addressAt(ip, MATMUL_SCRATCH) + <usize>thread * u32At(ip, MATMUL_SCRATCH_BYTES) + EDGE_BYTES;
  for (let t = first; t < last; t++) startRows(to - from, y + 32 * t, outStride, bias ? bias + 32 * t : 0, 8);
  for (let k: u32 = 0; k < columns; k += most) {
    const run = min(columns - k, most);
    for (let t = first; t < last; t++) {
      const tile = w + <usize>t * tileBytes;
      multiplyRun(layout, tile, k, run, to - from, x, stride, y + 32 * t, outStride, scratch);
    }
  }
}

/** Rows [from, to) times tiles [first, last). */
function multiplyTiles(ip: usize, from: u32, to: u32, first: u32, last: u32): void {
  const columns = u32At(ip, MATMUL_COLUMNS), outputs = u32At(ip, MATMUL_OUTPUTS);
  const layout = u32At(ip, MATMUL_LAYOUT), tileBytes = <usize>u32At(ip, MATMUL_TILE_BYTES);
  const x = addressAt(ip, MATMUL_X), w = addressAt(ip, MATMUL_W), y = addressAt(ip, MATMUL_Y);
  const bias = addressAt(ip, MATMUL_BIAS);
  const edge = addressAt(ip, MATMUL_SCRATCH) + <usize>thread * u32At(ip, MATMUL_SCRATCH_BYTES);
  const scratch = edge + EDGE_BYTES;
  const stride = <usize>columns << 2, outStride = <usize>outputs << 2;
  const single = u32At(ip, MATMUL_ROWS) == 1, half = single ? halfOf(first, min(last, outputs >> 3)) : 0, middle = first + half;
  let t = first;
  // One row times two tiles at a time, from both halves.
  for (; t < middle; t++) {
    const tile = w + <usize>t * tileBytes, other = t + half, out = y + 32 * t;
    startRows(1, out, outStride, bias ? bias + 32 * t : 0, 8);
    startRows(1, out + 32 * half, outStride, bias ? bias + 32 * other : 0, 8);
    if (gemvFloat(layout, tile, half * tileBytes, x, columns, out, 32 * half)) continue;
    multiply(layout, tile, columns, 1, x, stride, out, outStride, scratch);
    multiply(layout, tile + half * tileBytes, columns, 1, x, stride, out + 32 * half, outStride, scratch);
  }
  for (t += half; t < last; t++) {
    const tile = w + <usize>t * tileBytes;
    const width = min(outputs - 8 * t, 8);
    const whole = width == 8;
    const strip = whole ? to - from : EDGE_ROWS;
    for (let r = from; r < to; r += strip) {
      const some = min(to - r, strip);
      const out = y + outStride * r + 32 * t;
      const target = whole ? out : edge;
      const targetStride = whole ? outStride : 32;
      startRows(some, target, targetStride, bias ? bias + 32 * t : 0, width);
      if (!single || !gemvFloat(layout, tile, 0, x, columns, target, 0)) {
        multiply(layout, tile, columns, some, x + stride * r, stride, target, targetStride, scratch);
      }
      if (!whole) copyRows(some, width, edge, out, outStride);
    }
  }
}

/** Fewest rows that are worth interleaving. */
const FEW: u32 = 4;

/** Weights that are floats: rows lie interleaved by fives (gen/conv_tiles.ts), made so once a block by each thread. */
function multiplyFloats(ip: usize, rows: u32, block: u32, count: u32): void {
  const columns = u32At(ip, MATMUL_COLUMNS), outputs = u32At(ip, MATMUL_OUTPUTS), whole = outputs >> 3;
  const stride = <usize>columns << 2, outStride = <usize>outputs << 2, tileBytes = <usize>u32At(ip, MATMUL_TILE_BYTES);
  const scratch = addressAt(ip, MATMUL_SCRATCH) + <usize>thread * u32At(ip, MATMUL_SCRATCH_BYTES) + EDGE_BYTES + FLOATS_AT;
  const x = addressAt(ip, MATMUL_X), bias = addressAt(ip, MATMUL_BIAS);
  let last: u32 = -1;
  while (nextBlock(ip, rows, block, count, BLOCK_HEIGHT)) {
    const some = lastRow - firstRow, blocks = blocksOf(some), ragged = min(lastTile, whole);
    for (let b: u32 = 0; b < blocks; b++) {
      const first = firstOf(b, some), height = firstOf(b + 1, some) - first, row = firstRow + first;
      const fives = scratch + stride * first;
      if (firstRow != last) blockWeights(x + stride * row, stride, columns, height, fives);
      if (ragged <= firstTile) continue;
      const w = addressAt(ip, MATMUL_W) + <usize>firstTile * tileBytes, y = addressAt(ip, MATMUL_Y) + outStride * row;
      const start = bias ? bias + (<usize>firstTile << 5) : 0;
      rowTiles(height, fives, columns, w, ragged - firstTile, start, y + (<usize>firstTile << 5), outStride);
    }
    last = firstRow;
    const from = ragged > firstTile ? ragged : firstTile;
    if (from < lastTile) multiplyTiles(ip, firstRow, lastRow, from, lastTile);
  }
}

export function matmul(ip: usize): void {
  const rows = u32At(ip, MATMUL_ROWS), block = u32At(ip, MATMUL_BLOCK);
  const count = (u32At(ip, MATMUL_OUTPUTS) + 7) >> 3;
  if (rows == 0) { nextChunk(ip, 0); return; }
  if (rows >= FEW && u32At(ip, MATMUL_LAYOUT) == LAYOUT_F32) {
    multiplyFloats(ip, rows, block, count);
    return;
  }
  if (rows > block) {
    const whole = u32At(ip, MATMUL_OUTPUTS) >> 3;
    while (nextBlock(ip, rows, block, count, BLOCK_HEIGHT)) {
      const ragged = min(lastTile, whole);
      multiplyBlock(ip, firstRow, lastRow, firstTile, ragged);
      if (ragged < lastTile) multiplyTiles(ip, firstRow, lastRow, ragged, lastTile);
    }
    return;
  }
  const large = u32At(ip, MATMUL_LARGE), threads = u32At(ip, MATMUL_THREADS), chunk = u32At(ip, MATMUL_CHUNK);
  while (nextTiles(ip, count, large, threads, chunk)) multiplyTiles(ip, 0, rows, firstTile, lastTile);
}
