// Matrix products on float32 activations and exactly the stored weights: the exact path, and the only one
// for formats without an integer kernel.
//   for each tile of eight weight rows: outputs = bias
//     for each run of columns: decode it once, add its products for all rows (generated/float_tiles)
//     or, for one row: decode and multiply in one (generated/gemv_float), to the same bits
// Many rows go in blocks that stay in the L2 cache: every tile reads all of x. Measured on a Zen 3 core, 512
// rows, 384 columns: 43 GFLOP/s with blocks, 25 without; 384 outputs, 1,536 columns: 41 and 16.
import { addressAt, min, nextChunk, thread, u32At } from "./runtime";
import { firstRow, firstTile, lastRow, lastTile, nextBlock, nextTiles } from "./tile_ranges";
import {
  MATMUL_BIAS, MATMUL_BLOCK, MATMUL_CHUNK, MATMUL_COLUMNS, MATMUL_LARGE, MATMUL_LAYOUT, MATMUL_OUTPUTS, MATMUL_ROWS,
  MATMUL_SCRATCH, MATMUL_SCRATCH_BYTES, MATMUL_THREADS, MATMUL_TILE_BYTES, MATMUL_W, MATMUL_X, MATMUL_Y,
} from "./generated/opcodes";
import { DECODE_BYTES, RUN, decodeColumns } from "./decode_tile";
import { floatTiles } from "./generated/float_tiles";
import { gemvFloat } from "./generated/gemv_float";

/** Rows of activations whose outputs fit into scratch memory at a ragged edge. */
const EDGE_ROWS: u32 = 64;
const EDGE_BYTES: usize = 64 * 32;

/** Sets eight outputs of each row to the bias, or to zero. */
function startRows(rows: u32, out: usize, stride: usize, bias: usize, width: u32): void {
  for (let r: u32 = 0; r < rows; r++, out += stride) {
    for (let c: u32 = 0; c < 8; c++) store<f32>(out + 4 * c, bias && c < width ? load<f32>(bias + 4 * c) : 0);
  }
}

function copyRows(rows: u32, width: u32, from: usize, to: usize, stride: usize): void {
  for (let r: u32 = 0; r < rows; r++, from += 32, to += stride) memory.copy(to, from, 4 * width);
}

/** Adds the products of some rows with one tile. */
function multiply(layout: u32, tile: usize, columns: u32, rows: u32, x: usize, stride: usize,
    target: usize, targetStride: usize, scratch: usize): void {
  const panel = scratch + DECODE_BYTES;
  for (let k: u32 = 0; k < columns; k += RUN) {
    const run = min(columns - k, RUN);
    const decoded = decodeColumns(layout, tile, k, run, panel, scratch);
    floatTiles(rows, x + 4 * k, stride, run, decoded, target, targetStride);
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
  const single = u32At(ip, MATMUL_ROWS) == 1;
  for (let t = first; t < last; t++) {
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
      if (!single || !gemvFloat(layout, tile, x, columns, target)) {
        multiply(layout, tile, columns, some, x + stride * r, stride, target, targetStride, scratch);
      }
      if (!whole) copyRows(some, width, edge, out, outStride);
    }
  }
}

export function matmul(ip: usize): void {
  const rows = u32At(ip, MATMUL_ROWS), block = u32At(ip, MATMUL_BLOCK);
  const count = (u32At(ip, MATMUL_OUTPUTS) + 7) >> 3;
  if (rows == 0) { nextChunk(ip, 0); return; }
  if (rows > block) {
    while (nextBlock(ip, rows, block, count)) multiplyTiles(ip, firstRow, lastRow, firstTile, lastTile);
    return;
  }
  const large = u32At(ip, MATMUL_LARGE), threads = u32At(ip, MATMUL_THREADS), chunk = u32At(ip, MATMUL_CHUNK);
  while (nextTiles(ip, count, large, threads, chunk)) multiplyTiles(ip, 0, rows, firstTile, lastTile);
}
