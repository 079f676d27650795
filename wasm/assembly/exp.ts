// Elementary functions of four float32 at a time.
//
//   exp(x) = 2^n · p(r), n = nearest(x / ln 2), r = x - n · ln 2, p = Taylor polynomial of degree 7
//
// 1. ln 2 is subtracted in two parts, the first exact for every n that occurs.
// 2. Constants are read from memory: a v128.const is built anew at every use in V8's code.
// Error bounds over all finite arguments, checked by exp_test.ts: exp 2.5e-7 relative from -87.3 to 88.7
// (below it is 0, above it stays at 2^127·1.99…); tanh and sigmoid 5e-7 relative; NaN gives NaN.
import { madd } from "./simd";

const C: usize = memory.data<f32>([
  1.44269504, 1.44269504, 1.44269504, 1.44269504,
  -0.693359375, -0.693359375, -0.693359375, -0.693359375,
  2.12194440e-4, 2.12194440e-4, 2.12194440e-4, 2.12194440e-4,
  1.9841270e-4, 1.9841270e-4, 1.9841270e-4, 1.9841270e-4,
  1.3888889e-3, 1.3888889e-3, 1.3888889e-3, 1.3888889e-3,
  8.3333333e-3, 8.3333333e-3, 8.3333333e-3, 8.3333333e-3,
  4.1666667e-2, 4.1666667e-2, 4.1666667e-2, 4.1666667e-2,
  1.6666667e-1, 1.6666667e-1, 1.6666667e-1, 1.6666667e-1,
  0.5, 0.5, 0.5, 0.5,
  1, 1, 1, 1,
  88.72, 88.72, 88.72, 88.72,
  -87.33, -87.33, -87.33, -87.33,
], 16);

@inline export function exp4(x: v128): v128 {
  const one = v128.load(C, 144);
  const low = v128.load(C, 176);
  const clamped = f32x4.pmax(f32x4.pmin(x, v128.load(C, 160)), low);
  const n = f32x4.nearest(f32x4.mul(clamped, v128.load(C)));
  const r = madd(n, v128.load(C, 32), madd(n, v128.load(C, 16), clamped));
  let p = madd(v128.load(C, 48), r, v128.load(C, 64));
  p = madd(p, r, v128.load(C, 80));
  p = madd(p, r, v128.load(C, 96));
  p = madd(p, r, v128.load(C, 112));
  p = madd(p, r, v128.load(C, 128));
  p = madd(p, r, one);
  p = madd(p, r, one);
  // 2^n in two factors, because n = 128 has no float32 of its own
  const i = i32x4.trunc_sat_f32x4_s(n);
  const a = i32x4.shr_s(i, 1);
  const bias = one;
  const scaled = f32x4.mul(
    f32x4.mul(p, i32x4.add(i32x4.shl(a, 23), bias)),
    i32x4.add(i32x4.shl(i32x4.sub(i, a), 23), bias),
  );
  return v128.andnot(scaled, f32x4.lt(x, low));
}

/** 1 / (1 + exp(-x)) */
@inline export function sigmoid4(x: v128): v128 {
  const one = v128.load(C, 144);
  return f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(x))));
}

/** tanh: an odd polynomial below 0.625 (relative accuracy near 0), 1 - 2 / (exp(2|x|) + 1) above. */
@inline export function tanh4(x: v128): v128 {
  const one = v128.load(C, 144);
  const magnitude = f32x4.abs(x);
  const z = f32x4.mul(x, x);
  let p = madd(f32x4.splat(-5.70498872745e-3), z, f32x4.splat(2.06390887954e-2));
  p = madd(p, z, f32x4.splat(-5.37397155531e-2));
  p = madd(p, z, f32x4.splat(1.33314422036e-1));
  p = madd(p, z, f32x4.splat(-3.33332819422e-1));
  const near = madd(f32x4.mul(p, z), x, x);
  const e = exp4(f32x4.add(magnitude, magnitude));
  const far = f32x4.sub(one, f32x4.div(f32x4.splat(2), f32x4.add(e, one)));
  const signed = v128.or(far, v128.and(x, i32x4.splat(0x80000000)));
  return v128.bitselect(near, signed, f32x4.lt(magnitude, f32x4.splat(0.625)));
}

/**
 * erfc of |x|, 1.2e-7 relative before rounding: Numerical Recipes' Chebyshev fit, t · exp(-x² + P(t)),
 * t = 1 / (1 + |x| / 2).
 */
@inline export function erfcAbs4(x: v128): v128 {
  const magnitude = f32x4.abs(x);
  const t = f32x4.div(f32x4.splat(1), madd(magnitude, f32x4.splat(0.5), f32x4.splat(1)));
  let p = madd(f32x4.splat(0.17087277), t, f32x4.splat(-0.82215223));
  p = madd(p, t, f32x4.splat(1.48851587));
  p = madd(p, t, f32x4.splat(-1.13520398));
  p = madd(p, t, f32x4.splat(0.27886807));
  p = madd(p, t, f32x4.splat(-0.18628806));
  p = madd(p, t, f32x4.splat(0.09678418));
  p = madd(p, t, f32x4.splat(0.37409196));
  p = madd(p, t, f32x4.splat(1.00002368));
  p = madd(p, t, f32x4.splat(-1.26551223));
  return f32x4.mul(t, exp4(f32x4.sub(p, f32x4.mul(magnitude, magnitude))));
}

/** For tests: y[i] = f(x[i]) of `count` values, a multiple of 4; f: 0 exp, 1 sigmoid, 2 tanh, 3 erfc(|x|). */
export function elementary(f: u32, x: usize, y: usize, count: u32): void {
  for (let i: usize = 0; i < <usize>count << 2; i += 16) {
    const v = v128.load(x + i);
    v128.store(y + i, f == 0 ? exp4(v) : f == 1 ? sigmoid4(v) : f == 2 ? tanh4(v) : erfcAbs4(v));
  }
}
