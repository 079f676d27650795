// Convolutions of float32 planes.
//
//   conv:            implicit GEMM. A chunk is 32 places of the output of one group; what lies under
//   their windows is
//                    packed by eight places, tap after tap, in runs of 256 taps, and multiplied with
//                    all filters.
//   conv_depthwise:  one channel a filter: sixteen places of a row at a time, their sums in registers.
//
// 1. Places in one row of the output whose tap lies inside the input, one or two elements apart, are
//    copied as vectors; others eight at a time, or element by element at the edges.
// 2. 24 filters pass over four panels before the next 24: weights and panels stay in the first cache.
import { addressAt, chunksOf, i32At, min, nextChunk, thread, u32At } from "./runtime";
import { floatTiles } from "./generated/float_tiles";
import { activateRun } from "./nn_epilogue";
import { madd } from "./simd";
import {
  CONV_B, CONV_BATCH, CONV_BEGIN_D, CONV_BEGIN_H, CONV_BEGIN_W, CONV_CHANNELS, CONV_DEPTH,
  CONV_DEPTHWISE_B, CONV_DEPTHWISE_BATCH, CONV_DEPTHWISE_BEGIN_H, CONV_DEPTHWISE_BEGIN_W, CONV_DEPTHWISE_CHANNELS,
  CONV_DEPTHWISE_DILATION_H, CONV_DEPTHWISE_DILATION_W, CONV_DEPTHWISE_FILTERS, CONV_DEPTHWISE_HEIGHT,
  CONV_DEPTHWISE_KERNEL_H, CONV_DEPTHWISE_KERNEL_W, CONV_DEPTHWISE_OUT_HEIGHT, CONV_DEPTHWISE_OUT_WIDTH,
  CONV_DEPTHWISE_STRIDE_H, CONV_DEPTHWISE_STRIDE_W, CONV_DEPTHWISE_W, CONV_DEPTHWISE_WIDTH, CONV_DEPTHWISE_X,
  CONV_DEPTHWISE_Y, CONV_DILATION_D, CONV_DILATION_H, CONV_DILATION_W, CONV_FILTERS, CONV_GROUPS, CONV_HEIGHT,
  CONV_KERNEL_D, CONV_KERNEL_H, CONV_KERNEL_W, CONV_OUT_DEPTH, CONV_OUT_HEIGHT, CONV_OUT_WIDTH, CONV_SCRATCH,
  CONV_ACTIVATION, CONV_DEPTHWISE_ACTIVATION, CONV_STRIDE_D, CONV_STRIDE_H, CONV_STRIDE_W, CONV_W, CONV_WIDTH, CONV_X, CONV_Y,
} from "./generated/opcodes";

const RUN: u32 = 256;
const PLACES: u32 = 32;
const FILTERS: u32 = 24;
const PANEL_BYTES: usize = 256 * 32;
/** Starts of the windows, as (depth, row, column) of 32 bit each; then a ragged edge of 24 filters. */
const STARTS_AT: usize = 4 * 256 * 32;
const EDGE_AT: usize = STARTS_AT + 32 * 12;
/** See engine/graph/lower_conv.ts. */
const SCRATCH_BYTES: usize = (EDGE_AT + 24 * 32 + 63) & ~63;

export function conv(ip: usize): void {
  const groups = u32At(ip, CONV_GROUPS);
  const places = u32At(ip, CONV_OUT_DEPTH) * u32At(ip, CONV_OUT_HEIGHT) * u32At(ip, CONV_OUT_WIDTH);
  const tiles = chunksOf(places, PLACES), total = u32At(ip, CONV_BATCH) * groups * tiles;
  const scratch = addressAt(ip, CONV_SCRATCH) + <usize>thread * SCRATCH_BYTES;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = (<u32>c % tiles) * PLACES, plane = <u32>c / tiles;
    convTile(ip, plane / groups, plane % groups, first, places, scratch);
  }
}

function convTile(ip: usize, item: u32, group: u32, first: u32, places: u32, scratch: usize): void {
  const groups = u32At(ip, CONV_GROUPS);
  const filters = u32At(ip, CONV_FILTERS) / groups, channels = u32At(ip, CONV_CHANNELS) / groups;
  const taps = channels * u32At(ip, CONV_KERNEL_D) * u32At(ip, CONV_KERNEL_H) * u32At(ip, CONV_KERNEL_W);
  const inside = u32At(ip, CONV_DEPTH) * u32At(ip, CONV_HEIGHT) * u32At(ip, CONV_WIDTH);
  const x = addressAt(ip, CONV_X) + ((<usize>(item * groups + group) * channels * inside) << 2);
  const w = addressAt(ip, CONV_W) + ((<usize>group * filters * taps) << 2);
  const outStride = <usize>places << 2, count = min(PLACES, places - first);
  const y = addressAt(ip, CONV_Y) + ((<usize>(item * groups + group) * filters * places + first) << 2);
  const inRow = windowStarts(ip, first, count, scratch + STARTS_AT);
  fillBias(addressAt(ip, CONV_B), group * filters, filters, y, outStride, count);
  for (let k: u32 = 0; k < taps; k += RUN) {
    const run = min(RUN, taps - k);
    packWindows(ip, x, count, inRow, k, run, scratch);
    for (let f: u32 = 0; f < filters; f += FILTERS) {
      const height = min(FILTERS, filters - f), rows = w + ((<usize>f * taps + k) << 2);
      for (let p: u32 = 0; p < count; p += 8) {
        const panel = scratch + <usize>(p >> 3) * PANEL_BYTES;
        const out = y + <usize>f * outStride + (<usize>p << 2);
        if (count - p >= 8) floatTiles(height, rows, <usize>taps << 2, run, panel, out, outStride);
        else {
          const edge = scratch + EDGE_AT, bytes = <usize>(count - p) << 2;
          for (let r: u32 = 0; r < height; r++) memory.copy(edge + (<usize>r << 5), out + <usize>r * outStride, bytes);
          floatTiles(height, rows, <usize>taps << 2, run, panel, edge, 32);
          for (let r: u32 = 0; r < height; r++) memory.copy(out + <usize>r * outStride, edge + (<usize>r << 5), bytes);
        }
      }
    }
  }
  const activation = u32At(ip, CONV_ACTIVATION);
  for (let f: u32 = 0; f < filters && activation; f++) activateRun(activation, y + <usize>f * outStride, count);
}

function fillBias(bias: usize, first: u32, filters: u32, y: usize, stride: usize, count: u32): void {
  for (let f: u32 = 0; f < filters; f++, y += stride) {
    const value = bias ? load<f32>(bias + (<usize>(first + f) << 2)) : 0;
    for (let i: u32 = 0; i < count; i++) store<f32>(y + (<usize>i << 2), value);
  }
}

/** Taps `k` to `k + run` of `count` windows, in panels of eight; `inRow`: all lie in one row of the output. */
function packWindows(ip: usize, x: usize, count: u32, inRow: bool, k: u32, run: u32, scratch: usize): void {
  const depth = u32At(ip, CONV_DEPTH), height = u32At(ip, CONV_HEIGHT), width = i32At(ip, CONV_WIDTH);
  const kd = u32At(ip, CONV_KERNEL_D), kh = u32At(ip, CONV_KERNEL_H), kw = u32At(ip, CONV_KERNEL_W);
  const dd = i32At(ip, CONV_DILATION_D), dh = i32At(ip, CONV_DILATION_H), dw = i32At(ip, CONV_DILATION_W);
  const stride = i32At(ip, CONV_STRIDE_W), starts = scratch + STARTS_AT;
  const d0 = load<i32>(starts), h0 = load<i32>(starts, 4), w0 = load<i32>(starts, 8);
  const plane = <usize>(depth * height * <u32>width) << 2, span = <i32>(count - 1) * stride;
  // Where tap k lies.
  let tw = k % kw, rest = k / kw;
  let th = rest % kh; rest /= kh;
  let td = rest % kd;
  let source = x + <usize>(rest / kd) * plane;
  const whole = inRow && !(count & 7) && stride <= 2;
  for (let i: u32 = 0; i < run; i++) {
    const td0 = <i32>td * dd, th0 = <i32>th * dh, tw0 = <i32>tw * dw;
    const panel = scratch + (<usize>i << 5), d = d0 + td0, h = h0 + th0, left = w0 + tw0;
    const outside = <u32>d >= depth || <u32>h >= height;
    if (whole && !outside && left >= 0 && left + span < width) {
      copyRow(source + ((<usize>((d * <i32>height + h) * width + left)) << 2), stride, count, panel);
    } else if (whole && outside) {
      for (let p: usize = 0; p < <usize>(count >> 3) * PANEL_BYTES; p += PANEL_BYTES) {
        v128.store(panel + p, f32x4.splat(0));
        v128.store(panel + p, f32x4.splat(0), 16);
      }
    } else {
      for (let p: u32 = 0; p < count; p += 8) {
        const at = panel + <usize>(p >> 3) * PANEL_BYTES;
        packPanel(ip, source, starts + <usize>p * 12, min(8, count - p), td0, th0, tw0, at);
      }
    }
    if (++tw == kw) {
      tw = 0;
      if (++th == kh) {
        th = 0;
        if (++td == kd) { td = 0; source += plane; }
      }
    }
  }
}

/** One tap of all panels, from neighbours or every second element. */
@inline function copyRow(at: usize, stride: i32, count: u32, panel: usize): void {
  const end = panel + <usize>(count >> 3) * PANEL_BYTES;
  if (stride == 1) {
    for (; panel < end; panel += PANEL_BYTES, at += 32) {
      v128.store(panel, v128.load(at));
      v128.store(panel, v128.load(at, 16), 16);
    }
  } else {
    for (; panel < end; panel += PANEL_BYTES, at += 64) {
      v128.store(panel, everySecond(at));
      v128.store(panel, everySecond(at + 32), 16);
    }
  }
}

/** One tap of one panel, wherever its windows lie. */
function packPanel(ip: usize, source: usize, starts: usize, lanes: u32, td: i32, th: i32, tw: i32, panel: usize): void {
  const depth = u32At(ip, CONV_DEPTH), height = u32At(ip, CONV_HEIGHT), width = i32At(ip, CONV_WIDTH);
  const stride = i32At(ip, CONV_STRIDE_W), last = starts + <usize>(lanes - 1) * 12;
  const d = load<i32>(starts) + td, h = load<i32>(starts, 4) + th, left = load<i32>(starts, 8) + tw;
  const oneRow = lanes == 8 && load<i32>(last) + td == d && load<i32>(last, 4) + th == h && stride <= 2;
  if (oneRow && (<u32>d >= depth || <u32>h >= height)) {
    v128.store(panel, f32x4.splat(0));
    v128.store(panel, f32x4.splat(0), 16);
    return;
  }
  if (oneRow && left >= 0 && left + 7 * stride < width) {
    copyRow(source + ((<usize>((d * <i32>height + h) * width + left)) << 2), stride, 8, panel);
    return;
  }
  for (let lane: u32 = 0; lane < 8; lane++, starts += 12) {
    let value: f32 = 0;
    if (lane < lanes) {
      const ld = load<i32>(starts) + td, lh = load<i32>(starts, 4) + th, lw = load<i32>(starts, 8) + tw;
      if (<u32>ld < depth && <u32>lh < height && <u32>lw < <u32>width) {
        value = load<f32>(source + ((<usize>((ld * <i32>height + lh) * width + lw)) << 2));
      }
    }
    store<f32>(panel + (<usize>lane << 2), value);
  }
}

/** Elements 0, 2, 4 and 6; nothing behind them is touched. */
@inline function everySecond(at: usize): v128 {
  return i8x16.shuffle(
    v128.load(at), v128.load(at, 12), 0, 1, 2, 3, 8, 9, 10, 11, 20, 21, 22, 23, 28, 29, 30, 31,
  );
}

/** Corners of the windows of `lanes` places; true if they lie in one row of the output. */
export function windowStarts(ip: usize, first: u32, lanes: u32, starts: usize): bool {
  const outWidth = u32At(ip, CONV_OUT_WIDTH), outHeight = u32At(ip, CONV_OUT_HEIGHT);
  let w = first % outWidth, rest = first / outWidth;
  let h = rest % outHeight, d = rest / outHeight;
  const inRow = w + lanes <= outWidth;
  for (let lane: u32 = 0; lane < lanes; lane++, starts += 12) {
    store<i32>(starts, <i32>d * i32At(ip, CONV_STRIDE_D) - i32At(ip, CONV_BEGIN_D));
    store<i32>(starts, <i32>h * i32At(ip, CONV_STRIDE_H) - i32At(ip, CONV_BEGIN_H), 4);
    store<i32>(starts, <i32>w * i32At(ip, CONV_STRIDE_W) - i32At(ip, CONV_BEGIN_W), 8);
    if (++w == outWidth) {
      w = 0;
      if (++h == outHeight) { h = 0; d++; }
    }
  }
  return inRow;
}

const DEPTHWISE_ROWS: u32 = 16;

export function conv_depthwise(ip: usize): void {
  const filters = u32At(ip, CONV_DEPTHWISE_FILTERS), outHeight = u32At(ip, CONV_DEPTHWISE_OUT_HEIGHT);
  const tiles = chunksOf(outHeight, DEPTHWISE_ROWS), total = u32At(ip, CONV_DEPTHWISE_BATCH) * filters * tiles;
  const perChannel = filters / u32At(ip, CONV_DEPTHWISE_CHANNELS);
  const inside = <usize>u32At(ip, CONV_DEPTHWISE_HEIGHT) * u32At(ip, CONV_DEPTHWISE_WIDTH);
  const outWidth = u32At(ip, CONV_DEPTHWISE_OUT_WIDTH);
  const taps = u32At(ip, CONV_DEPTHWISE_KERNEL_H) * u32At(ip, CONV_DEPTHWISE_KERNEL_W);
  const bias = addressAt(ip, CONV_DEPTHWISE_B);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const plane = <u32>c / tiles, filter = plane % filters, first = (<u32>c % tiles) * DEPTHWISE_ROWS;
    // Filters of a channel are neighbours, so planes of x go on with the batch.
    const x = addressAt(ip, CONV_DEPTHWISE_X) + ((<usize>(plane / perChannel) * inside) << 2);
    const w = addressAt(ip, CONV_DEPTHWISE_W) + ((<usize>filter * taps) << 2);
    const base = bias ? load<f32>(bias + (<usize>filter << 2)) : 0;
    const last = min(outHeight, first + DEPTHWISE_ROWS);
    for (let row = first; row < last; row++) {
      const y = addressAt(ip, CONV_DEPTHWISE_Y) + ((<usize>(plane * outHeight + row) * outWidth) << 2);
      depthwiseRow(ip, x, w, base, row, y);
      activateRun(u32At(ip, CONV_DEPTHWISE_ACTIVATION), y, outWidth);
    }
  }
}

function depthwiseRow(ip: usize, x: usize, w: usize, base: f32, row: u32, y: usize): void {
  const width = i32At(ip, CONV_DEPTHWISE_WIDTH), outWidth = i32At(ip, CONV_DEPTHWISE_OUT_WIDTH);
  const kh = u32At(ip, CONV_DEPTHWISE_KERNEL_H), kw = u32At(ip, CONV_DEPTHWISE_KERNEL_W);
  const stride = i32At(ip, CONV_DEPTHWISE_STRIDE_W), begin = i32At(ip, CONV_DEPTHWISE_BEGIN_W);
  const dw = i32At(ip, CONV_DEPTHWISE_DILATION_W), dh = i32At(ip, CONV_DEPTHWISE_DILATION_H);
  const height = u32At(ip, CONV_DEPTHWISE_HEIGHT);
  const top = <i32>row * i32At(ip, CONV_DEPTHWISE_STRIDE_H) - i32At(ip, CONV_DEPTHWISE_BEGIN_H);
  const span = <i32>(kw - 1) * dw;
  let out: i32 = 0;
  while (out < outWidth) {
    const left = out * stride - begin;
    if (stride <= 2 && out + 16 <= outWidth && left >= 0 && left + 15 * stride + span < width) {
      const step = <usize>stride << 4;
      let s0 = f32x4.splat(base), s1 = s0, s2 = s0, s3 = s0;
      for (let i: u32 = 0; i < kh; i++) {
        const h = top + <i32>i * dh;
        if (<u32>h >= height) continue;
        let at = x + ((<usize>(h * width + left)) << 2), tap = w + ((<usize>(i * kw)) << 2);
        for (let j: u32 = 0; j < kw; j++, at += <usize>dw << 2, tap += 4) {
          const factor = v128.load32_splat(tap);
          if (stride == 1) {
            s0 = madd(v128.load(at), factor, s0);
            s1 = madd(v128.load(at, 16), factor, s1);
            s2 = madd(v128.load(at, 32), factor, s2);
            s3 = madd(v128.load(at, 48), factor, s3);
          } else {
            s0 = madd(everySecond(at), factor, s0);
            s1 = madd(everySecond(at + step), factor, s1);
            s2 = madd(everySecond(at + 2 * step), factor, s2);
            s3 = madd(everySecond(at + 3 * step), factor, s3);
          }
        }
      }
      const target = y + (<usize>out << 2);
      v128.store(target, s0); v128.store(target, s1, 16);
      v128.store(target, s2, 32); v128.store(target, s3, 48);
      out += 16;
    } else if (stride <= 2 && out + 4 <= outWidth && left >= 0 && left + 3 * stride + span < width) {
      let sum = f32x4.splat(base);
      for (let i: u32 = 0; i < kh; i++) {
        const h = top + <i32>i * dh;
        if (<u32>h >= height) continue;
        let at = x + ((<usize>(h * width + left)) << 2), tap = w + ((<usize>(i * kw)) << 2);
        for (let j: u32 = 0; j < kw; j++, at += <usize>dw << 2, tap += 4) {
          sum = madd(stride == 1 ? v128.load(at) : everySecond(at), v128.load32_splat(tap), sum);
        }
      }
      v128.store(y + (<usize>out << 2), sum);
      out += 4;
    } else {
      let sum = base;
      for (let i: u32 = 0; i < kh; i++) {
        const h = top + <i32>i * dh;
        if (<u32>h >= height) continue;
        for (let j: u32 = 0; j < kw; j++) {
          const column = left + <i32>j * dw;
          if (<u32>column >= <u32>width) continue;
          sum += load<f32>(x + ((<usize>(h * width + column)) << 2)) * load<f32>(w + ((<usize>(i * kw + j)) << 2));
        }
      }
      store<f32>(y + (<usize>out << 2), sum);
      out++;
    }
  }
}
