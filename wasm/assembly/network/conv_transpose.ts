// Transposed convolution of float32 planes, gathered: each place of the output sums over the channels
// and the taps that reach it, so that chunks, rows of the output, never write to the same place.
//
// With a stride of 2 along rows and no gaps, sixteen neighbours are four vectors: even places take the
// even taps, odd ones the odd taps, of neighbouring elements of x.
import { addressAt, i32At, nextSmallChunk, u32At } from "../machine/runtime";
import { activateRun } from "./epilogue";
import { madd } from "../simd";
import {
  CONV_TRANSPOSE_ACTIVATION, CONV_TRANSPOSE_B, CONV_TRANSPOSE_BATCH, CONV_TRANSPOSE_BEGIN_D, CONV_TRANSPOSE_BEGIN_H, CONV_TRANSPOSE_BEGIN_W,
  CONV_TRANSPOSE_CHANNELS, CONV_TRANSPOSE_DEPTH, CONV_TRANSPOSE_DILATION_D, CONV_TRANSPOSE_DILATION_H,
  CONV_TRANSPOSE_DILATION_W, CONV_TRANSPOSE_FILTERS, CONV_TRANSPOSE_GROUPS, CONV_TRANSPOSE_HEIGHT,
  CONV_TRANSPOSE_KERNEL_D, CONV_TRANSPOSE_KERNEL_H, CONV_TRANSPOSE_KERNEL_W, CONV_TRANSPOSE_OUT_DEPTH,
  CONV_TRANSPOSE_OUT_HEIGHT, CONV_TRANSPOSE_OUT_WIDTH, CONV_TRANSPOSE_STRIDE_D, CONV_TRANSPOSE_STRIDE_H,
  CONV_TRANSPOSE_STRIDE_W, CONV_TRANSPOSE_W, CONV_TRANSPOSE_WIDTH, CONV_TRANSPOSE_X, CONV_TRANSPOSE_Y,
} from "../generated/opcodes";

export function conv_transpose(ip: usize): void {
  const filters = u32At(ip, CONV_TRANSPOSE_FILTERS);
  const outRows = u32At(ip, CONV_TRANSPOSE_OUT_DEPTH) * u32At(ip, CONV_TRANSPOSE_OUT_HEIGHT);
  const total = u32At(ip, CONV_TRANSPOSE_BATCH) * filters * outRows;
  const bias = addressAt(ip, CONV_TRANSPOSE_B), outWidth = u32At(ip, CONV_TRANSPOSE_OUT_WIDTH);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const row = <u32>c % outRows, plane = <u32>c / outRows, filter = plane % filters;
    const base = bias ? load<f32>(bias + (<usize>filter << 2)) : 0;
    const y = addressAt(ip, CONV_TRANSPOSE_Y) + ((<usize>c * outWidth) << 2);
    transposedRow(ip, plane / filters, filter, row, base, y);
    activateRun(u32At(ip, CONV_TRANSPOSE_ACTIVATION), y, outWidth);
  }
}

/** Index of x that tap `tap` brings to place `at` (pads added), or -1. */
@inline function sourceOf(at: i32, tap: i32, stride: i32, size: i32): i32 {
  const moved = at - tap;
  if (moved < 0 || moved % stride != 0) return -1;
  const index = moved / stride;
  return index < size ? index : -1;
}

function transposedRow(ip: usize, item: u32, filter: u32, row: u32, base: f32, y: usize): void {
  const outWidth = i32At(ip, CONV_TRANSPOSE_OUT_WIDTH), width = i32At(ip, CONV_TRANSPOSE_WIDTH);
  const stride = i32At(ip, CONV_TRANSPOSE_STRIDE_W), begin = i32At(ip, CONV_TRANSPOSE_BEGIN_W);
  const kw = i32At(ip, CONV_TRANSPOSE_KERNEL_W), dilation = i32At(ip, CONV_TRANSPOSE_DILATION_W);
  let out: i32 = 0;
  while (out < outWidth) {
    const at = out + begin, middle = at >> 1;
    const reach = (kw - 1) >> 1;
    if (stride == 2 && dilation == 1 && !(at & 1) && out + 16 <= outWidth && middle - reach >= 0 && middle + 8 <= width) {
      sixteenPlaces(ip, item, filter, row, base, middle, y + (<usize>out << 2));
      out += 16;
    } else {
      store<f32>(y + (<usize>out << 2), onePlace(ip, item, filter, row, base, at));
      out++;
    }
  }
}

function onePlace(ip: usize, item: u32, filter: u32, row: u32, base: f32, at: i32): f32 {
  const groups = u32At(ip, CONV_TRANSPOSE_GROUPS), channels = u32At(ip, CONV_TRANSPOSE_CHANNELS) / groups;
  const filters = u32At(ip, CONV_TRANSPOSE_FILTERS) / groups, group = filter / filters;
  const depth = i32At(ip, CONV_TRANSPOSE_DEPTH), height = i32At(ip, CONV_TRANSPOSE_HEIGHT);
  const width = i32At(ip, CONV_TRANSPOSE_WIDTH), kd = i32At(ip, CONV_TRANSPOSE_KERNEL_D);
  const kh = i32At(ip, CONV_TRANSPOSE_KERNEL_H), kw = i32At(ip, CONV_TRANSPOSE_KERNEL_W);
  const d0 = <i32>(row / u32At(ip, CONV_TRANSPOSE_OUT_HEIGHT)) + i32At(ip, CONV_TRANSPOSE_BEGIN_D);
  const h0 = <i32>(row % u32At(ip, CONV_TRANSPOSE_OUT_HEIGHT)) + i32At(ip, CONV_TRANSPOSE_BEGIN_H);
  const plane = <usize>(depth * height * width) << 2, taps = <usize>(kd * kh * kw) << 2;
  const x = addressAt(ip, CONV_TRANSPOSE_X) + <usize>((item * groups + group) * channels) * plane;
  const w = addressAt(ip, CONV_TRANSPOSE_W) + (<usize>(group * channels) * filters + filter % filters) * taps;
  let sum = base;
  for (let i: i32 = 0; i < kd; i++) {
    const d = sourceOf(d0, i * i32At(ip, CONV_TRANSPOSE_DILATION_D), i32At(ip, CONV_TRANSPOSE_STRIDE_D), depth);
    if (d < 0) continue;
    for (let j: i32 = 0; j < kh; j++) {
      const h = sourceOf(h0, j * i32At(ip, CONV_TRANSPOSE_DILATION_H), i32At(ip, CONV_TRANSPOSE_STRIDE_H), height);
      if (h < 0) continue;
      for (let k: i32 = 0; k < kw; k++) {
        const column = sourceOf(at, k * i32At(ip, CONV_TRANSPOSE_DILATION_W), i32At(ip, CONV_TRANSPOSE_STRIDE_W), width);
        if (column < 0) continue;
        let source = x + ((<usize>((d * height + h) * width + column)) << 2);
        let tap = w + ((<usize>((i * kh + j) * kw + k)) << 2);
        for (let c: u32 = 0; c < channels; c++, source += plane, tap += taps * <usize>filters) {
          sum += load<f32>(source) * load<f32>(tap);
        }
      }
    }
  }
  return sum;
}

function sixteenPlaces(ip: usize, item: u32, filter: u32, row: u32, base: f32, middle: i32, y: usize): void {
  const groups = u32At(ip, CONV_TRANSPOSE_GROUPS), channels = u32At(ip, CONV_TRANSPOSE_CHANNELS) / groups;
  const filters = u32At(ip, CONV_TRANSPOSE_FILTERS) / groups, group = filter / filters;
  const depth = i32At(ip, CONV_TRANSPOSE_DEPTH), height = i32At(ip, CONV_TRANSPOSE_HEIGHT);
  const width = i32At(ip, CONV_TRANSPOSE_WIDTH), kd = i32At(ip, CONV_TRANSPOSE_KERNEL_D);
  const kh = i32At(ip, CONV_TRANSPOSE_KERNEL_H), kw = i32At(ip, CONV_TRANSPOSE_KERNEL_W);
  const d0 = <i32>(row / u32At(ip, CONV_TRANSPOSE_OUT_HEIGHT)) + i32At(ip, CONV_TRANSPOSE_BEGIN_D);
  const h0 = <i32>(row % u32At(ip, CONV_TRANSPOSE_OUT_HEIGHT)) + i32At(ip, CONV_TRANSPOSE_BEGIN_H);
  const plane = <usize>(depth * height * width) << 2, taps = <usize>(kd * kh * kw) << 2;
  const x = addressAt(ip, CONV_TRANSPOSE_X) + <usize>((item * groups + group) * channels) * plane;
  const w = addressAt(ip, CONV_TRANSPOSE_W) + (<usize>(group * channels) * filters + filter % filters) * taps;
  let even = f32x4.splat(base), odd = even, even2 = even, odd2 = even;
  for (let i: i32 = 0; i < kd; i++) {
    const d = sourceOf(d0, i * i32At(ip, CONV_TRANSPOSE_DILATION_D), i32At(ip, CONV_TRANSPOSE_STRIDE_D), depth);
    if (d < 0) continue;
    for (let j: i32 = 0; j < kh; j++) {
      const h = sourceOf(h0, j * i32At(ip, CONV_TRANSPOSE_DILATION_H), i32At(ip, CONV_TRANSPOSE_STRIDE_H), height);
      if (h < 0) continue;
      const corner = x + ((<usize>((d * height + h) * width + middle)) << 2);
      const step = taps * <usize>filters;
      for (let k: i32 = 0; k < kw; k += 2) {
        let source = corner - (<usize>k << 1), tap = w + ((<usize>((i * kh + j) * kw + k)) << 2);
        if (k + 1 == kw) {
          for (let c: u32 = 0; c < channels; c++, source += plane, tap += step) {
            const factor = v128.load32_splat(tap);
            even = madd(v128.load(source), factor, even);
            even2 = madd(v128.load(source, 16), factor, even2);
          }
        } else {
          for (let c: u32 = 0; c < channels; c++, source += plane, tap += step) {
            const left = v128.load(source), right = v128.load(source, 16);
            const first = v128.load32_splat(tap), second = v128.load32_splat(tap, 4);
            even = madd(left, first, even); odd = madd(left, second, odd);
            even2 = madd(right, first, even2); odd2 = madd(right, second, odd2);
          }
        }
      }
    }
  }
  v128.store(y, i8x16.shuffle(even, odd, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23));
  v128.store(y, i8x16.shuffle(even, odd, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31), 16);
  v128.store(y, i8x16.shuffle(even2, odd2, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23), 32);
  v128.store(y, i8x16.shuffle(even2, odd2, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31), 48);
}
