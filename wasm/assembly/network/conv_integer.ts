// Convolution of 8-bit codes less their zero points, exact in 32 bit.
//
//   conv_integer_weights: the weights as 16-bit differences, once a run
//   conv_integer:         the implicit GEMM: 32 places, of which runs of taps are packed, in pairs as in integer.ts
import { addressAt, chunksOf, i32At, min, nextChunk, thread, u32At } from "../machine/runtime";
import { integerTiles } from "../generated/integer_tiles";
import { codeAt, differences } from "./integer";
import {
  CONV_INTEGER_BATCH, CONV_INTEGER_BEGIN_D, CONV_INTEGER_BEGIN_H, CONV_INTEGER_BEGIN_W, CONV_INTEGER_CHANNELS, CONV_INTEGER_DEPTH, CONV_INTEGER_DILATION_D, CONV_INTEGER_DILATION_H,
  CONV_INTEGER_DILATION_W, CONV_INTEGER_FILTERS, CONV_INTEGER_GROUPS, CONV_INTEGER_HEIGHT, CONV_INTEGER_KERNEL_D,
  CONV_INTEGER_KERNEL_H, CONV_INTEGER_KERNEL_W, CONV_INTEGER_OUT_DEPTH, CONV_INTEGER_OUT_HEIGHT,
  CONV_INTEGER_OUT_WIDTH, CONV_INTEGER_SCRATCH, CONV_INTEGER_STRIDE_D, CONV_INTEGER_STRIDE_H, CONV_INTEGER_STRIDE_W, CONV_INTEGER_W, CONV_INTEGER_WEIGHTS_FILTERS,
  CONV_INTEGER_WEIGHTS_SIGNED, CONV_INTEGER_WEIGHTS_TAPS, CONV_INTEGER_WEIGHTS_W, CONV_INTEGER_WEIGHTS_Y,
  CONV_INTEGER_WEIGHTS_ZERO, CONV_INTEGER_WEIGHTS_ZEROS, CONV_INTEGER_WIDTH, CONV_INTEGER_X, CONV_INTEGER_X_SIGNED,
  CONV_INTEGER_X_ZERO, CONV_INTEGER_Y,
} from "../generated/opcodes";

const PLACES: u32 = 32;
/** Pairs of taps in a run, and bytes of eight places of them. */
const PAIRS: u32 = 128;
const PANEL_BYTES: usize = 128 * 32;
const STARTS_AT: usize = 4 * PANEL_BYTES;
const EDGE_AT: usize = STARTS_AT + 32 * 12;
/** See engine/run/wasm/lower/conv_integer.ts. */
const SCRATCH_BYTES: usize = (EDGE_AT + 4 * 32 + 63) & ~63;

export function conv_integer_weights(ip: usize): void {
  const filters = u32At(ip, CONV_INTEGER_WEIGHTS_FILTERS), taps = u32At(ip, CONV_INTEGER_WEIGHTS_TAPS);
  const signed = u32At(ip, CONV_INTEGER_WEIGHTS_SIGNED), zeros = u32At(ip, CONV_INTEGER_WEIGHTS_ZEROS);
  const rowBytes = <usize>((taps + 1) >> 1) << 2;
  for (let f = nextChunk(ip, filters); f >= 0; f = nextChunk(ip, filters)) {
    const zeroAt = addressAt(ip, CONV_INTEGER_WEIGHTS_ZERO) + (zeros > 1 ? <usize>f : 0);
    const zero = zeros ? codeAt(zeroAt, signed) : 0;
    const w = addressAt(ip, CONV_INTEGER_WEIGHTS_W) + <usize>f * taps;
    differences(w, taps, signed, zero, addressAt(ip, CONV_INTEGER_WEIGHTS_Y) + <usize>f * rowBytes);
  }
}

export function conv_integer(ip: usize): void {
  const groups = u32At(ip, CONV_INTEGER_GROUPS), filters = u32At(ip, CONV_INTEGER_FILTERS) / groups;
  const places = u32At(ip, CONV_INTEGER_OUT_DEPTH) * u32At(ip, CONV_INTEGER_OUT_HEIGHT) * u32At(ip, CONV_INTEGER_OUT_WIDTH);
  const inside = u32At(ip, CONV_INTEGER_DEPTH) * u32At(ip, CONV_INTEGER_HEIGHT) * u32At(ip, CONV_INTEGER_WIDTH);
  const channels = u32At(ip, CONV_INTEGER_CHANNELS) / groups;
  const kernel = u32At(ip, CONV_INTEGER_KERNEL_D) * u32At(ip, CONV_INTEGER_KERNEL_H) * u32At(ip, CONV_INTEGER_KERNEL_W);
  const taps = channels * kernel;
  const tiles = chunksOf(places, PLACES), total = u32At(ip, CONV_INTEGER_BATCH) * groups * tiles;
  const scratch = addressAt(ip, CONV_INTEGER_SCRATCH) + <usize>thread * SCRATCH_BYTES;
  const rowBytes = <usize>((taps + 1) >> 1) << 2, outStride = <usize>places << 2;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = (<u32>c % tiles) * PLACES, plane = <u32>c / tiles, group = plane % groups;
    const count = min(PLACES, places - first);
    const x = addressAt(ip, CONV_INTEGER_X) + <usize>plane * channels * inside;
    const w = addressAt(ip, CONV_INTEGER_W) + <usize>group * filters * rowBytes;
    const y = addressAt(ip, CONV_INTEGER_Y) + ((<usize>plane * filters * places + first) << 2);
    const inRow = windowStarts(ip, first, count, scratch + STARTS_AT);
    for (let f: u32 = 0; f < filters; f++) memory.fill(y + <usize>f * outStride, 0, <usize>count << 2);
    for (let k: u32 = 0; k < taps; k += 2 * PAIRS) {
      const run = min(2 * PAIRS, taps - k), pairs = (run + 1) >> 1;
      packTaps(ip, x, count, inRow, k, run, scratch);
      for (let p: u32 = 0; p < count; p += 8) {
        const panel = scratch + <usize>(p >> 3) * PANEL_BYTES;
        const rows = w + (<usize>k << 1), out = y + (<usize>p << 2);
        addProducts(rows, rowBytes, pairs, filters, panel, out, outStride, min(8, count - p), scratch + EDGE_AT);
      }
    }
  }
}

/** Taps `k` to `k + run` of all windows, in pairs: (tap, next tap) of lanes 0 to 3, then of 4 to 7. */
function packTaps(ip: usize, x: usize, count: u32, inRow: bool, k: u32, run: u32, scratch: usize): void {
  const kd = u32At(ip, CONV_INTEGER_KERNEL_D), kh = u32At(ip, CONV_INTEGER_KERNEL_H);
  const kw = u32At(ip, CONV_INTEGER_KERNEL_W);
  const signed = u32At(ip, CONV_INTEGER_X_SIGNED), zeroAt = u32At(ip, CONV_INTEGER_X_ZERO);
  const zero = zeroAt ? codeAt(<usize>zeroAt, signed) : 0;
  for (let i: u32 = 0; i < run; i += 2) {
    for (let p: u32 = 0; p < count; p += 8) {
      const starts = scratch + STARTS_AT + <usize>p * 12, lanes = min(8, count - p);
      const top = tapOf(ip, x, k + i, kd, kh, kw, starts, lanes, inRow, signed, zero);
      let bottom = i16x8.splat(0);
      if (i + 1 < run) bottom = tapOf(ip, x, k + i + 1, kd, kh, kw, starts, lanes, inRow, signed, zero);
      const out = scratch + <usize>(p >> 3) * PANEL_BYTES + (<usize>(i >> 1) << 5);
      v128.store(out, i8x16.shuffle(top, bottom, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23));
      v128.store(out, i8x16.shuffle(top, bottom, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31), 16);
    }
  }
}

/** Differences of one tap of eight windows; 0 outside the input. */
function tapOf(
  ip: usize, x: usize, tap: u32, kd: u32, kh: u32, kw: u32, starts: usize, lanes: u32, inRow: bool, signed: u32,
  zero: i32,
): v128 {
  const depth = u32At(ip, CONV_INTEGER_DEPTH), height = u32At(ip, CONV_INTEGER_HEIGHT);
  const width = u32At(ip, CONV_INTEGER_WIDTH);
  const tw = <i32>(tap % kw) * i32At(ip, CONV_INTEGER_DILATION_W), rest = tap / kw;
  const th = <i32>(rest % kh) * i32At(ip, CONV_INTEGER_DILATION_H), above = rest / kh;
  const td = <i32>(above % kd) * i32At(ip, CONV_INTEGER_DILATION_D);
  const source = x + <usize>(above / kd) * depth * height * width;
  const d = load<i32>(starts) + td, h = load<i32>(starts, 4) + th, left = load<i32>(starts, 8) + tw;
  if (inRow && lanes == 8 && u32At(ip, CONV_INTEGER_STRIDE_W) == 1) {
    if (<u32>d >= depth || <u32>h >= height) return i16x8.splat(0);
    if (left >= 0 && left + 8 <= <i32>width) {
      const at = source + <usize>((d * <i32>height + h) * <i32>width + left);
      return i16x8.sub(signed ? v128.load8x8_s(at) : v128.load8x8_u(at), i16x8.splat(<i16>zero));
    }
  }
  let low: u64 = 0, high: u64 = 0;
  for (let lane: u32 = 0; lane < lanes; lane++, starts += 12) {
    const ld = load<i32>(starts) + td, lh = load<i32>(starts, 4) + th, lw = load<i32>(starts, 8) + tw;
    if (<u32>ld >= depth || <u32>lh >= height || <u32>lw >= width) continue;
    const at = source + <usize>((ld * <i32>height + lh) * <i32>width + lw);
    const value = <u64>((codeAt(at, signed) - zero) & 0xffff) << <u64>(16 * (lane & 3));
    if (lane < 4) low |= value;
    else high |= value;
  }
  return i64x2.replace_lane(i64x2.splat(<i64>low), 1, <i64>high);
}

/** Adds filters times a panel to rows of the output; with fewer lanes through scratch memory. */
function addProducts(
  w: usize, stride: usize, pairs: u32, filters: u32, panel: usize, y: usize, outStride: usize, lanes: u32, edge: usize,
): void {
  if (lanes == 8) { integerTiles(filters, w, stride, pairs, panel, y, outStride); return; }
  const bytes = <usize>lanes << 2;
  for (let f: u32 = 0; f < filters; f++, w += stride, y += outStride) {
    memory.copy(edge, y, bytes);
    integerTiles(1, w, stride, pairs, panel, edge, 32);
    memory.copy(y, edge, bytes);
  }
}

/** Corners of the windows of `lanes` places; true if they lie in one row of the output. */
function windowStarts(ip: usize, first: u32, lanes: u32, starts: usize): bool {
  const outWidth = u32At(ip, CONV_INTEGER_OUT_WIDTH), outHeight = u32At(ip, CONV_INTEGER_OUT_HEIGHT);
  let w = first % outWidth, rest = first / outWidth;
  let h = rest % outHeight, d = rest / outHeight;
  const inRow = w + lanes <= outWidth;
  for (let lane: u32 = 0; lane < lanes; lane++, starts += 12) {
    store<i32>(starts, <i32>d * i32At(ip, CONV_INTEGER_STRIDE_D) - i32At(ip, CONV_INTEGER_BEGIN_D));
    store<i32>(starts, <i32>h * i32At(ip, CONV_INTEGER_STRIDE_H) - i32At(ip, CONV_INTEGER_BEGIN_H), 4);
    store<i32>(starts, <i32>w * i32At(ip, CONV_INTEGER_STRIDE_W) - i32At(ip, CONV_INTEGER_BEGIN_W), 8);
    if (++w == outWidth) {
      w = 0;
      if (++h == outHeight) { h = 0; d++; }
    }
  }
  return inRow;
}
