// Functions of one, two and three float32 tensors, element by element, with any broadcasting.
//
//   map:     y = f(x)              combine: y = f(a, b)              choose: y = c ? a : b
//
// 1. Numbers of the functions are those of MAP_KINDS and COMBINE_KINDS (wasm/opcodes_onnx.ts).
// 2. A row along the last dim is one of four loops: both inputs run, one stays, or strides are odd.
// 3. sin, cos and pow are computed in float64: angles of positions are large.
import { addressAt, chunksOf, f32At, min, nextChunk, u32At } from "./runtime";
import { erfcAbs4, exp4, sigmoid4, tanh4 } from "./exp";
import { log4 } from "./onnx_log";
import { madd } from "./simd";
import {
  CHOOSE_A, CHOOSE_A0, CHOOSE_A1, CHOOSE_A2, CHOOSE_A3, CHOOSE_A4, CHOOSE_B, CHOOSE_B0, CHOOSE_B1, CHOOSE_B2, CHOOSE_B3,
  CHOOSE_B4, CHOOSE_C, CHOOSE_C0, CHOOSE_C1, CHOOSE_C2, CHOOSE_C3, CHOOSE_C4, CHOOSE_N0, CHOOSE_N1, CHOOSE_N2, CHOOSE_N3,
  CHOOSE_N4, CHOOSE_Y, COMBINE_A, COMBINE_A0, COMBINE_A1, COMBINE_A2, COMBINE_A3, COMBINE_A4, COMBINE_A5, COMBINE_B,
  COMBINE_B0, COMBINE_B1, COMBINE_B2, COMBINE_B3, COMBINE_B4, COMBINE_B5, COMBINE_KIND, COMBINE_N0, COMBINE_N1, COMBINE_N2,
  COMBINE_N3, COMBINE_N4, COMBINE_N5, COMBINE_Y, MAP_ALPHA, MAP_BETA, MAP_COUNT, MAP_KIND, MAP_X, MAP_Y,
} from "./generated/opcodes";

const CHUNK: u32 = 4096;

/** exp(x) - 1, accurate near 0: tanh(x/2) · (exp(x) + 1). */
@inline function expm1_4(x: v128): v128 {
  return f32x4.mul(tanh4(f32x4.mul(x, f32x4.splat(0.5))), f32x4.add(exp4(x), f32x4.splat(1)));
}

/** log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)). */
@inline function softplus4(x: v128): v128 {
  const tail = log4(f32x4.add(f32x4.splat(1), exp4(f32x4.neg(f32x4.abs(x)))));
  return f32x4.add(f32x4.max(x, f32x4.splat(0)), tail);
}

@inline function clamp01(x: v128): v128 { return f32x4.min(f32x4.max(x, f32x4.splat(0)), f32x4.splat(1)); }

@inline function erf4(x: v128): v128 {
  const size = f32x4.sub(f32x4.splat(1), erfcAbs4(x));
  // Near 0 the difference has lost its digits: 2x/√π · (1 - x²/3 + x⁴/10 - x⁶/42).
  const z = f32x4.mul(x, x);
  let p = madd(f32x4.splat(-0.0268661706), z, f32x4.splat(0.1128379167));
  p = madd(p, z, f32x4.splat(-0.3761263890));
  p = madd(p, z, f32x4.splat(1.1283791671));
  const far = v128.or(size, v128.and(x, i32x4.splat(0x80000000)));
  return v128.bitselect(f32x4.mul(p, x), far, f32x4.lt(f32x4.abs(x), f32x4.splat(0.25)));
}

@inline function gelu4(x: v128): v128 {
  const tail = f32x4.mul(f32x4.mul(x, f32x4.splat(0.5)), erfcAbs4(f32x4.mul(x, f32x4.splat(0.70710678118655))));
  return v128.bitselect(tail, f32x4.sub(x, tail), f32x4.lt(x, f32x4.splat(0)));
}

/** Where x < 0 the first, else x. */
@inline function negative(part: v128, x: v128): v128 { return v128.bitselect(part, x, f32x4.lt(x, f32x4.splat(0))); }

@inline function lanes64(kind: u32, x: v128): v128 {
  let y = x;
  const a = <f64>f32x4.extract_lane(x, 0), b = <f64>f32x4.extract_lane(x, 1);
  const c = <f64>f32x4.extract_lane(x, 2), d = <f64>f32x4.extract_lane(x, 3);
  y = f32x4.replace_lane(y, 0, <f32>(kind == 12 ? NativeMath.sin(a) : NativeMath.cos(a)));
  y = f32x4.replace_lane(y, 1, <f32>(kind == 12 ? NativeMath.sin(b) : NativeMath.cos(b)));
  y = f32x4.replace_lane(y, 2, <f32>(kind == 12 ? NativeMath.sin(c) : NativeMath.cos(c)));
  return f32x4.replace_lane(y, 3, <f32>(kind == 12 ? NativeMath.sin(d) : NativeMath.cos(d)));
}

/** One function of four values. */
function apply4(kind: u32, x: v128, alpha: v128, beta: v128): v128 {
  const zero = f32x4.splat(0), one = f32x4.splat(1);
  switch (kind) {
    case 1: return f32x4.abs(x);
    case 2: return f32x4.neg(x);
    case 3: {
      const signed = v128.or(one, v128.and(x, i32x4.splat(0x80000000)));
      const nothing = v128.or(f32x4.eq(x, zero), f32x4.ne(x, x));
      return v128.bitselect(x, signed, nothing);
    }
    case 4: return negative(zero, x);
    case 5: return f32x4.ceil(x);
    case 6: return f32x4.floor(x);
    case 7: return f32x4.nearest(x);
    case 8: return exp4(x);
    case 9: return log4(x);
    case 10: return f32x4.sqrt(x);
    case 11: return f32x4.div(one, x);
    case 12: case 13: return lanes64(kind, x);
    case 14: return tanh4(x);
    case 15: return erf4(x);
    case 16: return sigmoid4(x);
    case 17: return f32x4.mul(x, sigmoid4(f32x4.mul(alpha, x)));
    case 18: return softplus4(x);
    case 19: return clamp01(madd(alpha, x, beta));
    case 20: return f32x4.mul(x, clamp01(madd(x, f32x4.splat(0.16666667), f32x4.splat(0.5))));
    case 21: return negative(f32x4.mul(alpha, expm1_4(x)), x);
    case 22: return negative(f32x4.mul(alpha, x), x);
    case 23: return f32x4.mul(x, tanh4(softplus4(x)));
    case 24: return gelu4(x);
    case 25: {
      const z = f32x4.mul(x, x);
      const u2 = f32x4.mul(x, madd(z, f32x4.splat(0.07135481282553), f32x4.splat(1.59576912160573)));
      return f32x4.mul(x, sigmoid4(u2));
    }
    case 26: return f32x4.div(x, f32x4.add(one, f32x4.abs(x)));
    case 27: return f32x4.mul(beta, negative(f32x4.mul(alpha, expm1_4(x)), x));
    case 28: return negative(f32x4.mul(alpha, expm1_4(f32x4.div(x, alpha))), x);
    default: return v128.and(x, f32x4.gt(x, alpha));
  }
}

/** Loads 1 to 4 values; the missing ones are 0. */
@inline function loadPart(address: usize, count: u32): v128 {
  if (count >= 4) return v128.load(address);
  let v = v128.load32_zero(address);
  if (count > 1) v = v128.load32_lane(address + 4, v, 1);
  if (count > 2) v = v128.load32_lane(address + 8, v, 2);
  return v;
}

/** Stores the first 1 to 4 values. */
@inline function storePart(address: usize, v: v128, count: u32): void {
  if (count >= 4) { v128.store(address, v); return; }
  v128.store32_lane(address, v, 0);
  if (count > 1) v128.store32_lane(address + 4, v, 1);
  if (count > 2) v128.store32_lane(address + 8, v, 2);
}

export function map(ip: usize): void {
  const count = u32At(ip, MAP_COUNT), kind = u32At(ip, MAP_KIND), total = chunksOf(count, CHUNK);
  const alpha = f32x4.splat(f32At(ip, MAP_ALPHA)), beta = f32x4.splat(f32At(ip, MAP_BETA));
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const end = min(count, <u32>c * CHUNK + CHUNK);
    for (let i = <u32>c * CHUNK; i < end; i += 4) {
      const at = <usize>i << 2;
      storePart(addressAt(ip, MAP_Y) + at, apply4(kind, loadPart(addressAt(ip, MAP_X) + at, end - i), alpha, beta), end - i);
    }
  }
}

/** C's pow: 1 to any power is 1. */
@inline function power(x: f32, y: f32): f32 { return x == 1 ? 1 : <f32>NativeMath.pow(<f64>x, <f64>y); }

@inline function power4(x: v128, y: v128): v128 {
  let z = x;
  z = f32x4.replace_lane(z, 0, power(f32x4.extract_lane(x, 0), f32x4.extract_lane(y, 0)));
  z = f32x4.replace_lane(z, 1, power(f32x4.extract_lane(x, 1), f32x4.extract_lane(y, 1)));
  z = f32x4.replace_lane(z, 2, power(f32x4.extract_lane(x, 2), f32x4.extract_lane(y, 2)));
  return f32x4.replace_lane(z, 3, power(f32x4.extract_lane(x, 3), f32x4.extract_lane(y, 3)));
}

/** One function of four pairs; of a test all bits of a lane are its answer. */
@inline function combine4(kind: u32, a: v128, b: v128): v128 {
  switch (kind) {
    case 1: return f32x4.add(a, b);
    case 2: return f32x4.sub(a, b);
    case 3: return f32x4.mul(a, b);
    case 4: return f32x4.div(a, b);
    case 5: return f32x4.min(a, b);
    case 6: return f32x4.max(a, b);
    case 7: return negative(f32x4.mul(a, b), a);
    case 8: return power4(a, b);
    case 16: return f32x4.eq(a, b);
    case 17: return f32x4.gt(a, b);
    case 18: return f32x4.ge(a, b);
    case 19: return f32x4.lt(a, b);
    default: return f32x4.le(a, b);
  }
}

/** Four values by their byte stride, the first `count` of them from memory. */
@inline function loadStrided(address: usize, stride: usize, count: u32): v128 {
  if (stride == 0) return v128.load32_splat(address);
  if (stride == 4) return loadPart(address, count);
  let v = v128.load32_zero(address);
  if (count > 1) v = v128.load32_lane(address + stride, v, 1);
  if (count > 2) v = v128.load32_lane(address + 2 * stride, v, 2);
  if (count > 3) v = v128.load32_lane(address + 3 * stride, v, 3);
  return v;
}

function combineRow(kind: u32, a: usize, b: usize, y: usize, count: u32, sa: usize, sb: usize): void {
  const tests = kind >= 16;
  for (let i: u32 = 0; i < count; i += 4) {
    const n = count - i;
    const v = combine4(kind, loadStrided(a + i * sa, sa, n), loadStrided(b + i * sb, sb, n));
    if (!tests) storePart(y + (<usize>i << 2), v, n);
    else {
      const bits = i32x4.bitmask(v);
      for (let k: u32 = 0; k < min(n, 4); k++) store<u8>(y + i + k, <u8>((bits >> k) & 1));
    }
  }
}

export function combine(ip: usize): void {
  const n1 = u32At(ip, COMBINE_N1), n2 = u32At(ip, COMBINE_N2), n3 = u32At(ip, COMBINE_N3), n4 = u32At(ip, COMBINE_N4);
  const rows = u32At(ip, COMBINE_N0) * n1 * n2 * n3 * n4, n5 = u32At(ip, COMBINE_N5), kind = u32At(ip, COMBINE_KIND);
  const pieces: u32 = n5 > CHUNK ? chunksOf(n5, CHUNK) : 1;
  const group: u32 = n5 == 0 || n5 > CHUNK ? 1 : CHUNK / n5;
  const total = pieces > 1 ? rows * pieces : chunksOf(rows, group);
  const sa = addressAt(ip, COMBINE_A5), sb = addressAt(ip, COMBINE_B5), sy: usize = kind >= 16 ? 1 : 4;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    let row = pieces > 1 ? <u32>c / pieces : <u32>c * group;
    const from = pieces > 1 ? <u32>c % pieces * CHUNK : 0, count = pieces > 1 ? min(CHUNK, n5 - from) : n5;
    const last = pieces > 1 ? row + 1 : min(rows, row + group);
    for (; row < last; row++) {
      let rest = row;
      const i4 = rest % n4; rest /= n4;
      const i3 = rest % n3; rest /= n3;
      const i2 = rest % n2; rest /= n2;
      const i1 = rest % n1, i0 = rest / n1;
      const a = addressAt(ip, COMBINE_A) + i0 * u32At(ip, COMBINE_A0) + i1 * u32At(ip, COMBINE_A1) +
        i2 * u32At(ip, COMBINE_A2) + i3 * u32At(ip, COMBINE_A3) + i4 * u32At(ip, COMBINE_A4);
      const b = addressAt(ip, COMBINE_B) + i0 * u32At(ip, COMBINE_B0) + i1 * u32At(ip, COMBINE_B1) +
        i2 * u32At(ip, COMBINE_B2) + i3 * u32At(ip, COMBINE_B3) + i4 * u32At(ip, COMBINE_B4);
      const y = addressAt(ip, COMBINE_Y) + (<usize>row * n5 + from) * sy;
      combineRow(kind, a + from * sa, b + from * sb, y, count, sa, sb);
    }
  }
}

export function choose(ip: usize): void {
  const n1 = u32At(ip, CHOOSE_N1), n2 = u32At(ip, CHOOSE_N2), n3 = u32At(ip, CHOOSE_N3), n4 = u32At(ip, CHOOSE_N4);
  const rows = u32At(ip, CHOOSE_N0) * n1 * n2 * n3;
  const group: u32 = n4 == 0 || n4 > CHUNK ? 1 : CHUNK / n4, total = chunksOf(rows, group);
  const sc = addressAt(ip, CHOOSE_C4), sa = addressAt(ip, CHOOSE_A4), sb = addressAt(ip, CHOOSE_B4);
  for (let chunk = nextChunk(ip, total); chunk >= 0; chunk = nextChunk(ip, total)) {
    const last = min(rows, <u32>chunk * group + group);
    for (let row = <u32>chunk * group; row < last; row++) {
      let rest = row;
      const i3 = rest % n3; rest /= n3;
      const i2 = rest % n2; rest /= n2;
      const i1 = rest % n1, i0 = rest / n1;
      let c = addressAt(ip, CHOOSE_C) + i0 * u32At(ip, CHOOSE_C0) + i1 * u32At(ip, CHOOSE_C1) + i2 * u32At(ip, CHOOSE_C2) +
        i3 * u32At(ip, CHOOSE_C3);
      let a = addressAt(ip, CHOOSE_A) + i0 * u32At(ip, CHOOSE_A0) + i1 * u32At(ip, CHOOSE_A1) + i2 * u32At(ip, CHOOSE_A2) +
        i3 * u32At(ip, CHOOSE_A3);
      let b = addressAt(ip, CHOOSE_B) + i0 * u32At(ip, CHOOSE_B0) + i1 * u32At(ip, CHOOSE_B1) + i2 * u32At(ip, CHOOSE_B2) +
        i3 * u32At(ip, CHOOSE_B3);
      let y = addressAt(ip, CHOOSE_Y) + (<usize>row * n4 << 2);
      for (let i: u32 = 0; i < n4; i++, y += 4, c += sc, a += sa, b += sb) {
        store<u32>(y, load<u8>(c) ? load<u32>(a) : load<u32>(b));
      }
    }
  }
}
