// Pools over windows of float32 planes, up to three spatial dims: the largest element or the average.
//
// A chunk is eight rows of the output of one plane. Where the windows of four neighbours lie inside the
// input and one or two elements apart, they are computed as a vector; others tap by tap. An average
// divides by the elements under the window, or by the places that are not beyond the pads
// (`count_pads`).
import { everySecond } from "./conv_gather";
import { addressAt, chunksOf, i32At, min, nextSmallChunk, u32At } from "../machine/runtime";
import {
  POOL_AVERAGE, POOL_BEGIN_D, POOL_BEGIN_H, POOL_BEGIN_W, POOL_COUNT_PADS, POOL_DEPTH, POOL_DILATION_D,
  POOL_DILATION_H, POOL_DILATION_W, POOL_END_D, POOL_END_H, POOL_END_W, POOL_HEIGHT, POOL_KERNEL_D, POOL_KERNEL_H,
  POOL_KERNEL_W, POOL_OUT_DEPTH, POOL_OUT_HEIGHT, POOL_OUT_WIDTH, POOL_PLANES, POOL_STRIDE_D, POOL_STRIDE_H,
  POOL_STRIDE_W, POOL_WIDTH, POOL_X, POOL_Y,
} from "../generated/opcodes";

const ROWS: u32 = 8;

export function pool(ip: usize): void {
  const outRows = u32At(ip, POOL_OUT_DEPTH) * u32At(ip, POOL_OUT_HEIGHT), outWidth = u32At(ip, POOL_OUT_WIDTH);
  const tiles = chunksOf(outRows, ROWS), total = u32At(ip, POOL_PLANES) * tiles;
  const inside = <usize>u32At(ip, POOL_DEPTH) * u32At(ip, POOL_HEIGHT) * u32At(ip, POOL_WIDTH);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const plane = <u32>c / tiles, first = (<u32>c % tiles) * ROWS, last = min(outRows, first + ROWS);
    const x = addressAt(ip, POOL_X) + ((<usize>plane * inside) << 2);
    for (let row = first; row < last; row++) {
      poolRow(ip, x, row, addressAt(ip, POOL_Y) + (((<usize>plane * outRows + row) * outWidth) << 2));
    }
  }
}

/** Places of a window that starts at `start` and are not beyond the pads. */
@inline function padded(start: i32, kernel: u32, dilation: i32, size: i32, end: i32): u32 {
  let count: u32 = 0;
  for (let tap: u32 = 0; tap < kernel; tap++) if (start + <i32>tap * dilation < size + end) count++;
  return count;
}

function poolRow(ip: usize, x: usize, row: u32, y: usize): void {
  const outHeight = u32At(ip, POOL_OUT_HEIGHT), outWidth = i32At(ip, POOL_OUT_WIDTH), height = i32At(ip, POOL_HEIGHT);
  const width = i32At(ip, POOL_WIDTH), kw = u32At(ip, POOL_KERNEL_W), dw = i32At(ip, POOL_DILATION_W);
  const dd = i32At(ip, POOL_DILATION_D), dh = i32At(ip, POOL_DILATION_H), average = u32At(ip, POOL_AVERAGE);
  const stride = i32At(ip, POOL_STRIDE_W), begin = i32At(ip, POOL_BEGIN_W);
  const depth = <i32>(row / outHeight) * i32At(ip, POOL_STRIDE_D) - i32At(ip, POOL_BEGIN_D);
  const top = <i32>(row % outHeight) * i32At(ip, POOL_STRIDE_H) - i32At(ip, POOL_BEGIN_H);
  // Places whose windows reach over neither end of a row.
  const rest = width - 1 - <i32>(kw - 1) * dw + begin, first = (begin + stride - 1) / stride;
  const inside = (rest < 0 ? 0 : <i32>min(outWidth, rest / stride + 1)) - first;
  const isNear = stride <= 2 && inside >= 4;
  if (isNear) {
    const d = firstInside(depth, dd), planes = countInside(ip, depth + d * dd, POOL_KERNEL_D, d, dd, POOL_DEPTH);
    const h = firstInside(top, dh), rows = countInside(ip, top + h * dh, POOL_KERNEL_H, h, dh, POOL_HEIGHT);
    const seen = u32At(ip, POOL_COUNT_PADS) ? paddedRows(ip, depth, top) : planes * rows;
    const at = x + ((<isize>(((depth + d * dd) * height + top + h * dh) * width + first * stride - begin)) << 2);
    windowsInside(
      at, planes, <usize>(dd * height * width) << 2, rows, <usize>(dh * width) << 2, <usize>(kw * dw) << 2, <usize>dw << 2, stride,
      average, <f32>(seen * kw), inside, y + (<usize>first << 2),
    );
  }
  for (let out: i32 = 0; out < outWidth; out++) {
    if (isNear && out == first) { out += inside - 1; continue; }
    const left = out * stride - begin;
    store<f32>(y + (<usize>out << 2), average
      ? averageWindow(ip, x, depth, top, left)
      : largestOf(ip, x, depth, top, left));
  }
}

/** The first tap of a window from `start` on that is not in front of the input. */
@inline function firstInside(start: i32, dilation: i32): i32 { return start < 0 ? (dilation - 1 - start) / dilation : 0; }

/** Taps from the `first` on, which is at `start`, that are inside. */
function countInside(ip: usize, start: i32, kernel: usize, first: i32, dilation: i32, size: usize): i32 {
  const left = i32At(ip, kernel) - first, rest = i32At(ip, size) - start;
  if (rest <= 0 || left <= 0) return 0;
  return <i32>min(left, (rest + dilation - 1) / dilation);
}

/** `count` windows, four and more, by fours; the last ones again where fewer are left. `pmax` is one instruction, and sees no NaN. */
function windowsInside(
  x: usize, planes: i32, plane: usize, rows: i32, row: usize, span: usize, step: usize, stride: i32, average: u32, seen: f32,
  count: i32, y: usize,
): void {
  for (let done: i32 = 0; done < count; done += 4) {
    const out = <usize>min(done, count - 4) << 2;
    let sum = f32x4.splat(average ? 0 : -Infinity), odd = f32x4.splat(0);
    for (let d: i32 = 0, from = x + out * stride; d < planes; d++, from += plane) {
      for (let h: i32 = 0, line = from; h < rows; h++, line += row) {
        for (let at = line, end = line + span; at < end; at += step) {
          const v = stride == 1 ? v128.load(at) : everySecond(at);
          if (average) sum = f32x4.add(sum, v);
          else { sum = f32x4.pmax(sum, v); odd = v128.or(odd, f32x4.ne(v, v)); }
        }
      }
    }
    v128.store(y + out, average ? f32x4.div(sum, f32x4.splat(seen)) : v128.or(sum, odd));
  }
}

function paddedRows(ip: usize, depth: i32, top: i32): u32 {
  return padded(depth, u32At(ip, POOL_KERNEL_D), i32At(ip, POOL_DILATION_D), i32At(ip, POOL_DEPTH), i32At(ip, POOL_END_D)) *
    padded(top, u32At(ip, POOL_KERNEL_H), i32At(ip, POOL_DILATION_H), i32At(ip, POOL_HEIGHT), i32At(ip, POOL_END_H));
}

function averageWindow(ip: usize, x: usize, depth: i32, top: i32, left: i32): f32 {
  let sum: f32 = 0;
  let count: u32 = 0;
  const height = i32At(ip, POOL_HEIGHT), width = i32At(ip, POOL_WIDTH), depths = i32At(ip, POOL_DEPTH);
  const kw = u32At(ip, POOL_KERNEL_W), dw = i32At(ip, POOL_DILATION_W);
  for (let i: u32 = 0; i < u32At(ip, POOL_KERNEL_D); i++) {
    const d = depth + <i32>i * i32At(ip, POOL_DILATION_D);
    if (<u32>d >= <u32>depths) continue;
    for (let j: u32 = 0; j < u32At(ip, POOL_KERNEL_H); j++) {
      const h = top + <i32>j * i32At(ip, POOL_DILATION_H);
      if (<u32>h >= <u32>height) continue;
      for (let k: u32 = 0; k < kw; k++) {
        const w = left + <i32>k * dw;
        if (<u32>w >= <u32>width) continue;
        sum += load<f32>(x + ((<usize>((d * height + h) * width + w)) << 2));
        count++;
      }
    }
  }
  if (u32At(ip, POOL_COUNT_PADS)) {
    count = paddedRows(ip, depth, top) * padded(left, kw, dw, width, i32At(ip, POOL_END_W));
  }
  return sum / <f32>count;
}

function largestOf(ip: usize, x: usize, depth: i32, top: i32, left: i32): f32 {
  let largest: f32 = -Infinity;
  const height = i32At(ip, POOL_HEIGHT), width = i32At(ip, POOL_WIDTH), depths = i32At(ip, POOL_DEPTH);
  const kw = u32At(ip, POOL_KERNEL_W), dw = i32At(ip, POOL_DILATION_W);
  for (let i: u32 = 0; i < u32At(ip, POOL_KERNEL_D); i++) {
    const d = depth + <i32>i * i32At(ip, POOL_DILATION_D);
    if (<u32>d >= <u32>depths) continue;
    for (let j: u32 = 0; j < u32At(ip, POOL_KERNEL_H); j++) {
      const h = top + <i32>j * i32At(ip, POOL_DILATION_H);
      if (<u32>h >= <u32>height) continue;
      for (let k: u32 = 0; k < kw; k++) {
        const w = left + <i32>k * dw;
        if (<u32>w >= <u32>width) continue;
        largest = max<f32>(largest, load<f32>(x + ((<usize>((d * height + h) * width + w)) << 2)));
      }
    }
  }
  return largest;
}
