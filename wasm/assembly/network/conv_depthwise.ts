// Depthwise convolution of float32 planes: one channel a filter, two spatial dims.
//
// A chunk is some rows of one plane of the output. For 256 columns of them, the lines under their windows
// are packed (conv_lines.ts); then sixteen places at a time keep their sums in registers while a table
// (engine/run/wasm/lower/conv_setup.ts) leads from tap to tap, or, in windows three or five wide, from row to row
// (gen/depthwise_tiles.ts). The last sixteen of a row overlap with those before.
//
// Measured and not kept: reading planes where they lie, with single places at borders. These were a tenth
// of 40 × 40 planes, and 5 × 5 windows took nine times as long there.
import { addressAt, chunksOf, i32At, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import { depthwise_3, depthwise_5 } from "../generated/depthwise_tiles";
import { packLine, zeroLine } from "./conv_lines";
import { activateRun } from "./epilogue";
import { madd } from "../simd";
import {
  CONV_DEPTHWISE_ACTIVATION, CONV_DEPTHWISE_B, CONV_DEPTHWISE_BATCH, CONV_DEPTHWISE_BEGIN_H, CONV_DEPTHWISE_BEGIN_W,
  CONV_DEPTHWISE_CHANNELS, CONV_DEPTHWISE_DILATION_H, CONV_DEPTHWISE_DILATION_W, CONV_DEPTHWISE_FILTERS, CONV_DEPTHWISE_HEIGHT,
  CONV_DEPTHWISE_KERNEL_H, CONV_DEPTHWISE_KERNEL_W, CONV_DEPTHWISE_OUT_HEIGHT, CONV_DEPTHWISE_OUT_WIDTH,
  CONV_DEPTHWISE_SETUP, CONV_DEPTHWISE_STRIDE_H, CONV_DEPTHWISE_STRIDE_W, CONV_DEPTHWISE_W, CONV_DEPTHWISE_WIDTH,
  CONV_DEPTHWISE_X, CONV_DEPTHWISE_Y,
} from "../generated/opcodes";

const COLUMNS: u32 = 256;
/** Bytes of sixteen places that are not all wanted. */
const EDGE: usize = 64;

/** Words of `setup`, see engine/run/wasm/lower/conv_setup.ts. */
const SCRATCH: usize = 0, SCRATCH_BYTES: usize = 4, PITCH: usize = 8, LINES: usize = 12, EXTRA: usize = 16;
const ROWS: usize = 20, TABLE: usize = 24;

export function conv_depthwise(ip: usize): void {
  const filters = u32At(ip, CONV_DEPTHWISE_FILTERS), outHeight = u32At(ip, CONV_DEPTHWISE_OUT_HEIGHT);
  const setup = addressAt(ip, CONV_DEPTHWISE_SETUP), rows = load<u32>(setup, ROWS);
  const blocks = chunksOf(outHeight, rows), total = u32At(ip, CONV_DEPTHWISE_BATCH) * filters * blocks;
  const outWidth = u32At(ip, CONV_DEPTHWISE_OUT_WIDTH);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const plane = <u32>c / blocks, first = (<u32>c % blocks) * rows, count = min(rows, outHeight - first);
    for (let column: u32 = 0; column < outWidth; column += COLUMNS) {
      block(ip, setup, plane, first, count, column, min(COLUMNS, outWidth - column));
    }
  }
}

/** Places [column, column + width) of `rows` rows of a plane. */
function block(ip: usize, setup: usize, plane: u32, first: u32, rows: u32, column: u32, width: u32): void {
  const edge = <usize>load<u32>(setup, SCRATCH) + <usize>thread * load<u32>(setup, SCRATCH_BYTES);
  const lines = edge + EDGE, height = u32At(ip, CONV_DEPTHWISE_HEIGHT), across = u32At(ip, CONV_DEPTHWISE_WIDTH);
  const filters = u32At(ip, CONV_DEPTHWISE_FILTERS), perChannel = filters / u32At(ip, CONV_DEPTHWISE_CHANNELS);
  const kernelH = u32At(ip, CONV_DEPTHWISE_KERNEL_H), kernelW = u32At(ip, CONV_DEPTHWISE_KERNEL_W);
  const taps = kernelH * kernelW;
  const strideH = u32At(ip, CONV_DEPTHWISE_STRIDE_H), filter = plane % filters;
  const rowBytes = <usize>load<u32>(setup, PITCH) * load<u32>(setup, LINES);
  // Filters of a channel are neighbours, so planes of x go on with the batch.
  const x = addressAt(ip, CONV_DEPTHWISE_X) + ((<usize>(plane / perChannel) * height * across) << 2);
  packRows(ip, setup, x, first, rows, column, width, lines);
  const bias = addressAt(ip, CONV_DEPTHWISE_B), w = addressAt(ip, CONV_DEPTHWISE_W) + ((<usize>filter * taps) << 2);
  const base = bias ? v128.load32_splat(bias + (<usize>filter << 2)) : f32x4.splat(0);
  const activation = u32At(ip, CONV_DEPTHWISE_ACTIVATION), outWidth = u32At(ip, CONV_DEPTHWISE_OUT_WIDTH);
  const table = setup + TABLE + (<usize>load<u32>(setup, LINES) << 2);
  const outHeight = u32At(ip, CONV_DEPTHWISE_OUT_HEIGHT);
  let y = addressAt(ip, CONV_DEPTHWISE_Y) + ((<usize>(plane * outHeight + first) * outWidth + column) << 2);
  // Taps of a row that are neighbours in a line.
  const apart = u32At(ip, CONV_DEPTHWISE_STRIDE_W) * u32At(ip, CONV_DEPTHWISE_DILATION_W), line = apart == 1 ? kernelW : 0;
  const next = rowBytes * u32At(ip, CONV_DEPTHWISE_DILATION_H);
  let at = lines;
  for (let row: u32 = 0; row < rows; row++, y += <usize>outWidth << 2, at += rowBytes * strideH) {
    let out: u32 = 0;
    for (; out + 16 <= width; out += 16) {
      places(line, at + (<usize>out << 2), w, kernelH, next, taps, table, base, y + (<usize>out << 2));
    }
    if (out < width) {
      const last = width < 16 ? 0 : <usize>(width - 16) << 2, target = width < 16 ? edge : y + last;
      places(line, at + last, w, kernelH, next, taps, table, base, target);
      if (width < 16) memory.copy(y, edge, <usize>width << 2);
    }
    activateRun(activation, y, width);
  }
}

function packRows(
  ip: usize, setup: usize, x: usize, first: u32, rows: u32, column: u32, width: u32, lines: usize,
): void {
  const height = u32At(ip, CONV_DEPTHWISE_HEIGHT), across = u32At(ip, CONV_DEPTHWISE_WIDTH);
  const strideH = u32At(ip, CONV_DEPTHWISE_STRIDE_H), stride = i32At(ip, CONV_DEPTHWISE_STRIDE_W);
  const top = <i32>(first * strideH) - i32At(ip, CONV_DEPTHWISE_BEGIN_H);
  const left = <i32>column * stride - i32At(ip, CONV_DEPTHWISE_BEGIN_W);
  const span = (u32At(ip, CONV_DEPTHWISE_KERNEL_H) - 1) * u32At(ip, CONV_DEPTHWISE_DILATION_H);
  const under = (rows - 1) * strideH + span + 1, pitch = <usize>load<u32>(setup, PITCH);
  const length = <i32>(((width + 15) & ~15) + load<u32>(setup, EXTRA)), count = load<u32>(setup, LINES);
  for (let i: u32 = 0; i < under; i++) {
    const h = top + <i32>i, outside = <u32>h >= height;
    const row = outside ? x : x + ((<usize>(<u32>h * across)) << 2);
    for (let line: u32 = 0; line < count; line++, lines += pitch) {
      if (outside) zeroLine(lines, length);
      else packLine(row, across, left + <i32>load<u32>(setup + TABLE + (<usize>line << 2)), stride, length, lines);
    }
  }
}

/** Sixteen places; `line`: how many taps of a row are neighbours in its line, whose next one is `next` bytes behind. */
function places(
  line: u32, x: usize, w: usize, rows: u32, next: usize, taps: u32, table: usize, base: v128, y: usize,
): void {
  if (line == 3) depthwise_3(x, next, rows, w, base, y);
  else if (line == 5) depthwise_5(x, next, rows, w, base, y);
  else sixteen(x, w, taps, table, base, y);
}

function sixteen(x: usize, w: usize, taps: u32, table: usize, base: v128, y: usize): void {
  let s0 = base, s1 = base, s2 = base, s3 = base;
  const end = table + (<usize>taps << 2);
  for (; table < end; table += 4, w += 4) {
    const at = x + <usize>load<u32>(table), factor = v128.load32_splat(w);
    s0 = madd(v128.load(at), factor, s0);
    s1 = madd(v128.load(at, 16), factor, s1);
    s2 = madd(v128.load(at, 32), factor, s2);
    s3 = madd(v128.load(at, 48), factor, s3);
  }
  v128.store(y, s0); v128.store(y, s1, 16); v128.store(y, s2, 32); v128.store(y, s3, 48);
}
