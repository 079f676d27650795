// Functions of four float32 that elementwise kernels are made of, and loads and stores of parts of a vector.
//
// 1. sin, cos and pow are computed in float64: angles of positions are large.
// 2. Constants are read from memory: a v128.const is built anew at every use in V8's code.
import { exp4, sigmoid4, tanh4, wideExp4 } from "../exp";
import { log4 } from "./log";
import { madd } from "../simd";

/** exp(x) - 1, accurate near 0: tanh(x/2) · (exp(x) + 1). */
@inline export function expm1_4(x: v128): v128 {
  return f32x4.mul(tanh4(f32x4.mul(x, f32x4.splat(0.5))), f32x4.add(exp4(x), f32x4.splat(1)));
}

/** log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|); log(u) · e / (u - 1), u = 1 + e rounded, keeps the digits of e. */
@inline export function softplus4(x: v128): v128 {
  const one = f32x4.splat(1), e = wideExp4(f32x4.neg(f32x4.abs(x))), u = f32x4.add(one, e);
  const tail = f32x4.mul(log4(u), f32x4.div(e, f32x4.sub(u, one)));
  return f32x4.add(f32x4.max(x, f32x4.splat(0)), v128.bitselect(e, tail, f32x4.eq(u, one)));
}

/** NaN stays NaN: where a comparison fails, the first operand is taken. V8 makes nine instructions of f32x4.max, one of these. */
@inline export function clamp01(x: v128): v128 { return f32x4.pmin(f32x4.pmax(x, f32x4.splat(0)), f32x4.splat(1)); }

/** Where x < 0 the first, else x. */
@inline export function negative(part: v128, x: v128): v128 { return v128.bitselect(part, x, f32x4.lt(x, f32x4.splat(0))); }

@inline export function sign4(x: v128): v128 {
  const signed = v128.or(f32x4.splat(1), v128.and(x, i32x4.splat(0x80000000)));
  const nothing = v128.or(f32x4.eq(x, f32x4.splat(0)), f32x4.ne(x, x));
  return v128.bitselect(x, signed, nothing);
}

/** Whether a number is -infinity, where alpha is not 0, or infinity, where beta is not. */
@inline export function infinite4(x: v128, alpha: v128, beta: v128): v128 {
  const zero = f32x4.splat(0), chosen = v128.bitselect(alpha, beta, f32x4.lt(x, zero));
  return v128.and(f32x4.eq(f32x4.abs(x), f32x4.splat(Infinity)), f32x4.ne(chosen, zero));
}

/** C's pow(x, 0.5): of -infinity it is infinity, of -0 it is 0. */
@inline export function root4(x: v128): v128 {
  const root = f32x4.add(f32x4.sqrt(x), f32x4.splat(0));
  return v128.bitselect(f32x4.splat(Infinity), root, f32x4.eq(x, f32x4.splat(-Infinity)));
}

@inline export function geluTanh4(x: v128): v128 {
  const z = f32x4.mul(x, x);
  const u2 = f32x4.mul(x, madd(z, f32x4.splat(0.07135481282553), f32x4.splat(1.59576912160573)));
  return f32x4.mul(x, sigmoid4(u2));
}

/** Four numbers from float64. */
@inline export function four(a: f64, b: f64, c: f64, d: f64): v128 {
  let y = f32x4.splat(<f32>a);
  y = f32x4.replace_lane(y, 1, <f32>b);
  y = f32x4.replace_lane(y, 2, <f32>c);
  return f32x4.replace_lane(y, 3, <f32>d);
}

/** A lane as float64. */
@inline export function lane(x: v128, i: u8): f64 {
  return <f64>(i == 0 ? f32x4.extract_lane(x, 0) : i == 1 ? f32x4.extract_lane(x, 1) : i == 2 ? f32x4.extract_lane(x, 2) : f32x4.extract_lane(x, 3));
}

export function sin4(x: v128): v128 {
  return four(NativeMath.sin(lane(x, 0)), NativeMath.sin(lane(x, 1)), NativeMath.sin(lane(x, 2)), NativeMath.sin(lane(x, 3)));
}

export function cos4(x: v128): v128 {
  return four(NativeMath.cos(lane(x, 0)), NativeMath.cos(lane(x, 1)), NativeMath.cos(lane(x, 2)), NativeMath.cos(lane(x, 3)));
}

/** C's pow: 1 to any power is 1, and so is -1 to an infinite one. */
@inline function power(x: f64, y: f64): f64 {
  return x == 1 || (x == -1 && abs<f64>(y) == Infinity) ? 1 : NativeMath.pow(x, y);
}

export function power4(x: v128, y: v128): v128 {
  return four(power(lane(x, 0), lane(y, 0)), power(lane(x, 1), lane(y, 1)), power(lane(x, 2), lane(y, 2)), power(lane(x, 3), lane(y, 3)));
}

/** Loads 1 to 4 values; the missing ones are 0. */
@inline export function loadPart(address: usize, count: u32): v128 {
  if (count >= 4) return v128.load(address);
  let v = v128.load32_zero(address);
  if (count > 1) v = v128.load32_lane(address + 4, v, 1);
  if (count > 2) v = v128.load32_lane(address + 8, v, 2);
  return v;
}

/** Stores the first 1 to 4 values. */
@inline export function storePart(address: usize, v: v128, count: u32): void {
  if (count >= 4) { v128.store(address, v); return; }
  v128.store32_lane(address, v, 0);
  if (count > 1) v128.store32_lane(address + 4, v, 1);
  if (count > 2) v128.store32_lane(address + 8, v, 2);
}

/** Stores the first 1 to 4 answers, all bits of a lane each, as bytes. */
@inline export function storeAnswers(address: usize, v: v128, count: u32): void {
  const bits = i32x4.bitmask(v);
  const bytes = <u32>(bits & 1) | <u32>(bits & 2) << 7 | <u32>(bits & 4) << 14 | <u32>(bits & 8) << 21;
  if (count >= 4) store<u32>(address, bytes);
  else for (let k: u32 = 0; k < count; k++) store<u8>(address + k, <u8>(bytes >> (k << 3)));
}

/** Four values by their byte stride, the first `count` of them from memory. */
@inline export function loadStrided(address: usize, stride: usize, count: u32): v128 {
  if (stride == 0) return v128.load32_splat(address);
  if (stride == 4) return loadPart(address, count);
  let v = v128.load32_zero(address);
  if (count > 1) v = v128.load32_lane(address + stride, v, 1);
  if (count > 2) v = v128.load32_lane(address + 2 * stride, v, 2);
  if (count > 3) v = v128.load32_lane(address + 3 * stride, v, 3);
  return v;
}
