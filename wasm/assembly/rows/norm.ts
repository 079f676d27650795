// Normalisation of rows.
//
//   rms_norm:   y = x · rsqrt(mean(x²) + epsilon) · (base + w)
//   layer_norm: y = (x - mean) · rsqrt(mean((x - mean)²) + epsilon) · w + b      w, b optional (address 0)
//
// 1. A chunk is `group` rows, as in what follows or comes before (engine/ops/row_cut.ts).
// 2. Square sums use 4 × 4 lanes, which also keeps the rounding error of long rows small.
import { addressAt, chunksOf, f32At, min, nextSmallChunk, u32At } from "../machine/runtime";
import { madd, sum4 } from "../simd";
import {
  LAYER_NORM_B, LAYER_NORM_COLUMNS, LAYER_NORM_EPSILON, LAYER_NORM_GROUP, LAYER_NORM_ROWS, LAYER_NORM_W, LAYER_NORM_X,
  LAYER_NORM_Y, RMS_NORM_BASE, RMS_NORM_COLUMNS, RMS_NORM_EPSILON, RMS_NORM_GROUP, RMS_NORM_ROWS, RMS_NORM_W,
  RMS_NORM_X, RMS_NORM_Y,
} from "../generated/opcodes";

/** Σ (x - mean)² of a row. */
function squareSum(x: usize, columns: u32, mean: f32): f32 {
  const m = f32x4.splat(mean);
  let a = f32x4.splat(0), b = a, c = a, d = a;
  const end = x + (<usize>columns << 2);
  for (; x + 64 <= end; x += 64) {
    const x0 = f32x4.sub(v128.load(x), m), x1 = f32x4.sub(v128.load(x, 16), m);
    const x2 = f32x4.sub(v128.load(x, 32), m), x3 = f32x4.sub(v128.load(x, 48), m);
    a = madd(x0, x0, a); b = madd(x1, x1, b); c = madd(x2, x2, c); d = madd(x3, x3, d);
  }
  let sum = sum4(f32x4.add(f32x4.add(a, b), f32x4.add(c, d)));
  for (; x < end; x += 4) { const v = load<f32>(x) - mean; sum += v * v; }
  return sum;
}

function rowSum(x: usize, columns: u32): f32 {
  let a = f32x4.splat(0), b = a;
  const end = x + (<usize>columns << 2);
  for (; x + 32 <= end; x += 32) {
    a = f32x4.add(a, v128.load(x)); b = f32x4.add(b, v128.load(x, 16));
  }
  let sum = sum4(f32x4.add(a, b));
  for (; x < end; x += 4) sum += load<f32>(x);
  return sum;
}

/** One row of rms_norm; `w` 0 for none. */
export function rmsNormRow(x: usize, w: usize, y: usize, columns: u32, epsilon: f32, base: f32): void {
  const bytes = <usize>columns << 2;
  const factor = <f32>(1.0 / Math.sqrt(<f64>squareSum(x, columns, 0) / <f64>columns + <f64>epsilon));
  const f = f32x4.splat(factor), one = f32x4.splat(base);
  let i: usize = 0;
  if (w) {
    for (; i + 16 <= bytes; i += 16) {
      v128.store(y + i, f32x4.mul(f32x4.mul(v128.load(x + i), f), f32x4.add(v128.load(w + i), one)));
    }
    for (; i < bytes; i += 4) store<f32>(y + i, load<f32>(x + i) * factor * (load<f32>(w + i) + base));
  } else {
    for (; i + 16 <= bytes; i += 16) v128.store(y + i, f32x4.mul(v128.load(x + i), f));
    for (; i < bytes; i += 4) store<f32>(y + i, load<f32>(x + i) * factor);
  }
}

export function rms_norm(ip: usize): void {
  const rows = u32At(ip, RMS_NORM_ROWS), columns = u32At(ip, RMS_NORM_COLUMNS);
  const w = addressAt(ip, RMS_NORM_W), base = f32At(ip, RMS_NORM_BASE), epsilon = f32At(ip, RMS_NORM_EPSILON);
  const size = u32At(ip, RMS_NORM_GROUP), total = chunksOf(rows, size), bytes = <usize>columns << 2;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = <u32>c * size, last = min(rows, first + size);
    for (let row = first; row < last; row++) {
      const x = addressAt(ip, RMS_NORM_X) + <usize>row * bytes, y = addressAt(ip, RMS_NORM_Y) + <usize>row * bytes;
      rmsNormRow(x, w, y, columns, epsilon, base);
    }
  }
}

export function layer_norm(ip: usize): void {
  const rows = u32At(ip, LAYER_NORM_ROWS), columns = u32At(ip, LAYER_NORM_COLUMNS);
  const w = addressAt(ip, LAYER_NORM_W), b = addressAt(ip, LAYER_NORM_B);
  const epsilon = f32At(ip, LAYER_NORM_EPSILON);
  const size = u32At(ip, LAYER_NORM_GROUP), total = chunksOf(rows, size), bytes = <usize>columns << 2;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = <u32>c * size, last = min(rows, first + size);
    for (let row = first; row < last; row++) {
      const x = addressAt(ip, LAYER_NORM_X) + <usize>row * bytes, y = addressAt(ip, LAYER_NORM_Y) + <usize>row * bytes;
      const mean = rowSum(x, columns) / <f32>columns;
      const variance = <f64>squareSum(x, columns, mean) / <f64>columns;
      const factor = <f32>(1.0 / Math.sqrt(variance + <f64>epsilon));
      const m = f32x4.splat(mean), f = f32x4.splat(factor);
      let i: usize = 0;
      for (; i + 16 <= bytes; i += 16) {
        let v = f32x4.mul(f32x4.sub(v128.load(x + i), m), f);
        if (w) v = f32x4.mul(v, v128.load(w + i));
        if (b) v = f32x4.add(v, v128.load(b + i));
        v128.store(y + i, v);
      }
      for (; i < bytes; i += 4) {
        let v = (load<f32>(x + i) - mean) * factor;
        if (w) v *= load<f32>(w + i);
        if (b) v += load<f32>(b + i);
        store<f32>(y + i, v);
      }
    }
  }
}
