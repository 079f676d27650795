// Reductions of float32 along one axis: y[o, i] = reduction of x[o, :, i].
//
// 1. Along the last axis a line is read in two interleaved vectors, so that four by two partial results
//    keep the error of a sum small. Along another axis four neighbouring lines go together.
// 2. Numbers of the reductions are those of REDUCE_KINDS (wasm/opcodes_onnx.ts).
import { exp4 } from "../exp";
import { sum4 } from "../simd";
import { addressAt, chunksOf, min, nextSmallChunk, u32At } from "../machine/runtime";
import {
  REDUCE_INNER, REDUCE_KIND, REDUCE_LENGTH, REDUCE_OUTER, REDUCE_X, REDUCE_Y,
} from "../generated/opcodes";

@inline function startOf(kind: u32): f32 {
  return kind == 3 ? -Infinity : kind == 4 ? Infinity : kind == 5 ? 1 : 0;
}

@inline function join4(kind: u32, total: v128, x: v128): v128 {
  if (kind == 3) return f32x4.max(total, x);
  if (kind == 4) return f32x4.min(total, x);
  if (kind == 5) return f32x4.mul(total, x);
  if (kind == 6) return f32x4.add(total, f32x4.abs(x));
  if (kind == 7 || kind == 8) return f32x4.add(total, f32x4.mul(x, x));
  return f32x4.add(total, x);
}

/** Two totals, which are not single elements any more. */
@inline function merge4(kind: u32, a: v128, b: v128): v128 {
  if (kind == 3) return f32x4.max(a, b);
  if (kind == 4) return f32x4.min(a, b);
  return kind == 5 ? f32x4.mul(a, b) : f32x4.add(a, b);
}

@inline function finish(kind: u32, total: f32, length: u32): f32 {
  if (kind == 2) return total / <f32>length;
  if (kind == 7) return sqrt<f32>(total);
  return kind == 9 ? <f32>NativeMath.log(<f64>total) : total;
}

function reduceLine(kind: u32, x: usize, length: u32): f32 {
  let a = f32x4.splat(startOf(kind)), b = a;
  let i: u32 = 0;
  for (; i + 8 <= length; i += 8, x += 32) {
    a = join4(kind, a, v128.load(x));
    b = join4(kind, b, v128.load(x, 16));
  }
  a = merge4(kind, a, b);
  let pairs = merge4(kind, a, i8x16.shuffle(a, a, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  pairs = merge4(kind, pairs, i8x16.shuffle(pairs, pairs, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
  for (; i < length; i++, x += 4) pairs = join4(kind, pairs, v128.load32_splat(x));
  return finish(kind, f32x4.extract_lane(pairs, 0), length);
}

/** log Σ exp of a line, shifted by its largest element. */
function logSumExpLine(x: usize, length: u32, stride: usize): f32 {
  let highest: f32 = -Infinity;
  for (let i: u32 = 0; i < length; i++) {
    const v = load<f32>(x + <usize>i * stride);
    if (!(v <= highest)) highest = v;
  }
  const shift: f32 = abs<f32>(highest) < Infinity ? highest : highest == highest ? 0 : highest;
  const shifts = f32x4.splat(shift);
  let total = f32x4.splat(0), i: u32 = 0;
  if (stride == 4) {
    for (; i + 4 <= length; i += 4) total = f32x4.add(total, exp4(f32x4.sub(v128.load(x + (<usize>i << 2)), shifts)));
  }
  let sum = sum4(total);
  for (; i < length; i++) {
    sum += f32x4.extract_lane(exp4(f32x4.sub(v128.load32_splat(x + <usize>i * stride), shifts)), 0);
  }
  if (highest == Infinity) return Infinity;
  return <f32>NativeMath.log(<f64>sum) + shift;
}

/** Up to four neighbouring lines along another axis than the last. */
function reduceLines(kind: u32, x: usize, y: usize, length: u32, stride: usize, lines: u32): void {
  let total = f32x4.splat(startOf(kind));
  if (lines == 4) {
    for (let i: u32 = 0; i < length; i++, x += stride) total = join4(kind, total, v128.load(x));
  } else {
    for (let i: u32 = 0; i < length; i++, x += stride) {
      let v = v128.load32_splat(x);
      if (lines > 1) v = v128.load32_lane(x + 4, v, 1);
      if (lines > 2) v = v128.load32_lane(x + 8, v, 2);
      total = join4(kind, total, v);
    }
  }
  store<f32>(y, finish(kind, f32x4.extract_lane(total, 0), length));
  if (lines > 1) store<f32>(y + 4, finish(kind, f32x4.extract_lane(total, 1), length));
  if (lines > 2) store<f32>(y + 8, finish(kind, f32x4.extract_lane(total, 2), length));
  if (lines > 3) store<f32>(y + 12, finish(kind, f32x4.extract_lane(total, 3), length));
}

export function reduce(ip: usize): void {
  const outer = u32At(ip, REDUCE_OUTER), length = u32At(ip, REDUCE_LENGTH), inner = u32At(ip, REDUCE_INNER);
  const kind = u32At(ip, REDUCE_KIND), strips = chunksOf(inner, 4);
  const units = inner == 1 ? outer : outer * strips;
  const group: u32 = length > 4096 ? 1 : 4096 / (length + 1) + 1, total = chunksOf(units, group);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const last = min(units, <u32>c * group + group);
    for (let unit = <u32>c * group; unit < last; unit++) {
      if (kind == 10) {
        // A unit is a line, or the first of four.
        const o = inner == 1 ? unit : unit / strips, i = inner == 1 ? 0 : unit % strips << 2;
        for (let k: u32 = 0; k < min(4, inner - i); k++) {
          const x = addressAt(ip, REDUCE_X) + ((<usize>o * length * inner + i + k) << 2);
          const y = addressAt(ip, REDUCE_Y) + ((<usize>o * inner + i + k) << 2);
          store<f32>(y, logSumExpLine(x, length, <usize>inner << 2));
        }
        continue;
      }
      if (inner == 1) {
        const value = reduceLine(kind, addressAt(ip, REDUCE_X) + (<usize>unit * length << 2), length);
        store<f32>(addressAt(ip, REDUCE_Y) + (<usize>unit << 2), value);
        continue;
      }
      const o = unit / strips, i = unit % strips << 2;
      const x = addressAt(ip, REDUCE_X) + ((<usize>o * length * inner + i) << 2);
      const y = addressAt(ip, REDUCE_Y) + ((<usize>o * inner + i) << 2);
      reduceLines(kind, x, y, length, <usize>inner << 2, min(4, inner - i));
    }
  }
}
