// Elementary functions of four float32 at a time.
//
//   exp(x) = 2^n · p(r), n = nearest(x / ln 2), r = x - n · ln 2
//
// 1. n comes from adding 1.5 · 2^23, which rounds to an integer and leaves it in the low bits: rounding and
//    converting would be ten instructions on x86.
// 2. ln 2 is subtracted in two parts, the first exact for every n that occurs.
// 3. p is the minimax polynomial of degree 6 with p(0) = p'(0) = 1, 3e-9 relative.
// 4. Constants are read from memory: a v128.const is built anew at every use in V8's code.
// 5. exp4, for what becomes a sum or a quotient, has no denormals and ends at 88.37; wideExp4 is the op itself.
// Error bounds over all finite arguments, checked by exp_test.ts: exp 2.5e-7 relative from -87.33 to 88.37
// (below it is 0, above it infinity); tanh and sigmoid 5e-7 relative; NaN gives NaN.
import { madd } from "./simd";

const C: usize = memory.data<f32>([
  1.44269504, 1.44269504, 1.44269504, 1.44269504,
  -0.693359375, -0.693359375, -0.693359375, -0.693359375,
  2.12194440e-4, 2.12194440e-4, 2.12194440e-4, 2.12194440e-4,
  12582912, 12582912, 12582912, 12582912,
  1.3814610e-3, 1.3814610e-3, 1.3814610e-3, 1.3814610e-3,
  8.3687110e-3, 8.3687110e-3, 8.3687110e-3, 8.3687110e-3,
  4.1668389e-2, 4.1668389e-2, 4.1668389e-2, 4.1668389e-2,
  0.16666521, 0.16666521, 0.16666521, 0.16666521,
  0.49999994, 0.49999994, 0.49999994, 0.49999994,
  1, 1, 1, 1,
  89, 89, 89, 89,
  -87.33, -87.33, -87.33, -87.33,
  -104, -104, -104, -104,
], 16);

const TANH: usize = memory.data<f32>([
  -5.70498872745e-3, -5.70498872745e-3, -5.70498872745e-3, -5.70498872745e-3,
  2.06390887954e-2, 2.06390887954e-2, 2.06390887954e-2, 2.06390887954e-2,
  -5.37397155531e-2, -5.37397155531e-2, -5.37397155531e-2, -5.37397155531e-2,
  1.33314422036e-1, 1.33314422036e-1, 1.33314422036e-1, 1.33314422036e-1,
  -3.33332819422e-1, -3.33332819422e-1, -3.33332819422e-1, -3.33332819422e-1,
  0.625, 0.625, 0.625, 0.625,
], 16);

const ERFC: usize = memory.data<f32>([
  0.17087277, 0.17087277, 0.17087277, 0.17087277,
  -0.82215223, -0.82215223, -0.82215223, -0.82215223,
  1.48851587, 1.48851587, 1.48851587, 1.48851587,
  -1.13520398, -1.13520398, -1.13520398, -1.13520398,
  0.27886807, 0.27886807, 0.27886807, 0.27886807,
  -0.18628806, -0.18628806, -0.18628806, -0.18628806,
  0.09678418, 0.09678418, 0.09678418, 0.09678418,
  0.37409196, 0.37409196, 0.37409196, 0.37409196,
  1.00002368, 1.00002368, 1.00002368, 1.00002368,
  -1.26551223, -1.26551223, -1.26551223, -1.26551223,
  0.5, 0.5, 0.5, 0.5,
], 16);

/** p(r) of x, n of which is in the low bits of t. */
@inline function fraction(x: v128, t: v128): v128 {
  const one = v128.load(C, 144), n = f32x4.sub(t, v128.load(C, 48));
  const r = madd(n, v128.load(C, 32), madd(n, v128.load(C, 16), x));
  let p = madd(v128.load(C, 64), r, v128.load(C, 80));
  p = madd(p, r, v128.load(C, 96));
  p = madd(p, r, v128.load(C, 112));
  p = madd(p, r, v128.load(C, 128));
  p = madd(p, r, one);
  return madd(p, r, one);
}

@inline export function exp4(x: v128): v128 {
  const low = v128.load(C, 176);
  const clamped = f32x4.pmax(f32x4.pmin(x, v128.load(C, 160)), low);
  const t = madd(clamped, v128.load(C), v128.load(C, 48));
  // The integer's low bits, into the exponent of 1; 2^128 comes out as infinity.
  const power = i32x4.add(i32x4.shl(t, 23), v128.load(C, 144));
  return v128.andnot(f32x4.mul(fraction(clamped, t), power), f32x4.lt(x, low));
}

/** exp up to the largest number and down to the least denormal: 2^n in two factors. */
@inline export function wideExp4(x: v128): v128 {
  const one = v128.load(C, 144), magic = v128.load(C, 48);
  const clamped = f32x4.pmax(f32x4.pmin(x, v128.load(C, 160)), v128.load(C, 192));
  const t = madd(clamped, v128.load(C), magic);
  const n = i32x4.sub(t, magic), half = i32x4.shr_s(n, 1);
  const first = i32x4.add(i32x4.shl(half, 23), one), second = i32x4.add(i32x4.shl(i32x4.sub(n, half), 23), one);
  return f32x4.mul(f32x4.mul(fraction(clamped, t), first), second);
}

/**
 * Vectors from `p` to `end` become weight · exp(x - m), of x that are at most m; returns sums of the exponentials. As
 * exp4, two vectors at a time, for which each constant is read once.
 */
@inline export function exponentials(p: usize, end: usize, m: v128, weight: v128): v128 {
  let total = f32x4.splat(0);
  for (; p + 32 <= end; p += 32) {
    const low = v128.load(C, 176), magic = v128.load(C, 48);
    const x0 = f32x4.sub(v128.load(p), m), x1 = f32x4.sub(v128.load(p, 16), m);
    const c0 = f32x4.pmax(x0, low), c1 = f32x4.pmax(x1, low);
    let k = v128.load(C);
    const t0 = madd(c0, k, magic), t1 = madd(c1, k, magic);
    const n0 = f32x4.sub(t0, magic), n1 = f32x4.sub(t1, magic);
    k = v128.load(C, 16);
    let r0 = madd(n0, k, c0), r1 = madd(n1, k, c1);
    k = v128.load(C, 32);
    r0 = madd(n0, k, r0); r1 = madd(n1, k, r1);
    k = v128.load(C, 64);
    let h = v128.load(C, 80);
    let e0 = madd(k, r0, h), e1 = madd(k, r1, h);
    k = v128.load(C, 96);
    e0 = madd(e0, r0, k); e1 = madd(e1, r1, k);
    k = v128.load(C, 112);
    e0 = madd(e0, r0, k); e1 = madd(e1, r1, k);
    k = v128.load(C, 128);
    e0 = madd(e0, r0, k); e1 = madd(e1, r1, k);
    k = v128.load(C, 144);
    e0 = madd(madd(e0, r0, k), r0, k);
    e1 = madd(madd(e1, r1, k), r1, k);
    e0 = v128.andnot(f32x4.mul(e0, i32x4.add(i32x4.shl(t0, 23), k)), f32x4.lt(x0, low));
    e1 = v128.andnot(f32x4.mul(e1, i32x4.add(i32x4.shl(t1, 23), k)), f32x4.lt(x1, low));
    total = f32x4.add(f32x4.add(total, e0), e1);
    v128.store(p, f32x4.mul(e0, weight));
    v128.store(p, f32x4.mul(e1, weight), 16);
  }
  if (p < end) {
    const e = exp4(f32x4.sub(v128.load(p), m));
    v128.store(p, f32x4.mul(e, weight));
    total = f32x4.add(total, e);
  }
  return total;
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
  let p = madd(v128.load(TANH, 0), z, v128.load(TANH, 16));
  p = madd(p, z, v128.load(TANH, 32));
  p = madd(p, z, v128.load(TANH, 48));
  p = madd(p, z, v128.load(TANH, 64));
  const near = madd(f32x4.mul(p, z), x, x);
  const e = exp4(f32x4.add(magnitude, magnitude));
  const far = f32x4.sub(one, f32x4.div(f32x4.splat(2), f32x4.add(e, one)));
  const signed = v128.or(far, v128.and(x, i32x4.splat(0x80000000)));
  return v128.bitselect(near, signed, f32x4.lt(magnitude, v128.load(TANH, 80)));
}

/**
 * erfc of |x|, 1.2e-7 relative before rounding: Numerical Recipes' Chebyshev fit, t · exp(-x² + P(t)),
 * t = 1 / (1 + |x| / 2).
 */
@inline export function erfcAbs4(x: v128): v128 {
  const one = v128.load(C, 144), magnitude = f32x4.abs(x);
  const t = f32x4.div(one, madd(magnitude, v128.load(ERFC, 160), one));
  let p = madd(v128.load(ERFC, 0), t, v128.load(ERFC, 16));
  p = madd(p, t, v128.load(ERFC, 32));
  p = madd(p, t, v128.load(ERFC, 48));
  p = madd(p, t, v128.load(ERFC, 64));
  p = madd(p, t, v128.load(ERFC, 80));
  p = madd(p, t, v128.load(ERFC, 96));
  p = madd(p, t, v128.load(ERFC, 112));
  p = madd(p, t, v128.load(ERFC, 128));
  p = madd(p, t, v128.load(ERFC, 144));
  return f32x4.mul(t, exp4(f32x4.sub(p, f32x4.mul(magnitude, magnitude))));
}

const ERF: usize = memory.data<f32>([
  -2.72614225801306e-10, -2.72614225801306e-10, -2.72614225801306e-10, -2.72614225801306e-10,
  2.77068142495902e-08, 2.77068142495902e-08, 2.77068142495902e-08, 2.77068142495902e-08,
  -2.10102402082508e-06, -2.10102402082508e-06, -2.10102402082508e-06, -2.10102402082508e-06,
  -5.69250639462346e-05, -5.69250639462346e-05, -5.69250639462346e-05, -5.69250639462346e-05,
  -7.34990630326855e-04, -7.34990630326855e-04, -7.34990630326855e-04, -7.34990630326855e-04,
  -2.95459980854025e-03, -2.95459980854025e-03, -2.95459980854025e-03, -2.95459980854025e-03,
  -1.60960333262415e-02, -1.60960333262415e-02, -1.60960333262415e-02, -1.60960333262415e-02,
  -1.45660718464996e-05, -1.45660718464996e-05, -1.45660718464996e-05, -1.45660718464996e-05,
  -2.13374055278905e-04, -2.13374055278905e-04, -2.13374055278905e-04, -2.13374055278905e-04,
  -1.68282697438203e-03, -1.68282697438203e-03, -1.68282697438203e-03, -1.68282697438203e-03,
  -7.37332916720468e-03, -7.37332916720468e-03, -7.37332916720468e-03, -7.37332916720468e-03,
  -1.42647390514189e-02, -1.42647390514189e-02, -1.42647390514189e-02, -1.42647390514189e-02,
  4, 4, 4, 4,
  -4, -4, -4, -4,
], 16);

/** erf: x · P(x²) / Q(x²) on -4..4, the rational approximation of TensorFlow and Eigen; 5e-7. */
@inline export function erf4(x: v128): v128 {
  const v = f32x4.pmax(f32x4.pmin(x, v128.load(ERF, 192)), v128.load(ERF, 208));
  const z = f32x4.mul(v, v);
  let p = madd(v128.load(ERF), z, v128.load(ERF, 16));
  p = madd(p, z, v128.load(ERF, 32));
  p = madd(p, z, v128.load(ERF, 48));
  p = madd(p, z, v128.load(ERF, 64));
  p = madd(p, z, v128.load(ERF, 80));
  p = madd(p, z, v128.load(ERF, 96));
  let q = madd(v128.load(ERF, 112), z, v128.load(ERF, 128));
  q = madd(q, z, v128.load(ERF, 144));
  q = madd(q, z, v128.load(ERF, 160));
  q = madd(q, z, v128.load(ERF, 176));
  return f32x4.div(f32x4.mul(p, v), q);
}

/** x · Φ(x), 4e-7 of |x|: half the work of erfcAbs4, which keeps the digits of what is nearly 0. */
@inline export function gelu4(x: v128): v128 {
  const half = f32x4.mul(x, v128.load(ERFC, 160));
  return madd(half, erf4(f32x4.mul(x, f32x4.splat(0.70710678118655))), half);
}

/** Abramowitz and Stegun 7.1.28, the powers of 1 / sqrt(2) in the coefficients, and a half. */
const GELU: usize = memory.data<f32>([
  5.382975e-06, 5.382975e-06, 5.382975e-06, 5.382975e-06,
  4.88906356e-05, 4.88906356e-05, 4.88906356e-05, 4.88906356e-05,
  3.8003575e-05, 3.8003575e-05, 3.8003575e-05, 3.8003575e-05,
  0.00327762632, 0.00327762632, 0.00327762632, 0.00327762632,
  0.0211410061, 0.0211410061, 0.0211410061, 0.0211410061,
  0.049867347, 0.049867347, 0.049867347, 0.049867347,
  0.5, 0.5, 0.5, 0.5,
], 16);

/** x · Φ(x) with erfc(z) = (1 + a1 z + … + a6 z⁶)^-16, 3e-7 of |x|: half the work of erfcAbs4. */
@inline export function coarseGelu4(x: v128): v128 {
  const one = v128.load(C, 144), magnitude = f32x4.abs(x);
  let p = madd(v128.load(GELU), magnitude, v128.load(GELU, 16));
  p = madd(p, magnitude, v128.load(GELU, 32));
  p = madd(p, magnitude, v128.load(GELU, 48));
  p = madd(p, magnitude, v128.load(GELU, 64));
  p = madd(p, magnitude, v128.load(GELU, 80));
  p = madd(p, magnitude, one);
  p = f32x4.mul(p, p);
  p = f32x4.mul(p, p);
  p = f32x4.mul(p, p);
  p = f32x4.mul(p, p);
  const tail = f32x4.div(f32x4.mul(x, v128.load(GELU, 96)), p);
  return v128.bitselect(tail, f32x4.sub(x, tail), f32x4.lt(x, f32x4.splat(0)));
}

/** For tests: y[i] = f(x[i]) of `count` values, a multiple of 4; f: 0 exp, 1 sigmoid, 2 tanh, 3 erfc(|x|), 4 gelu, 5 wide exp. */
export function elementary(f: u32, x: usize, y: usize, count: u32): void {
  for (let i: usize = 0; i < <usize>count << 2; i += 16) {
    const v = v128.load(x + i);
    if (f == 4) v128.store(y + i, coarseGelu4(v));
    else if (f == 5) v128.store(y + i, wideExp4(v));
    else v128.store(y + i, f == 0 ? exp4(v) : f == 1 ? sigmoid4(v) : f == 2 ? tanh4(v) : erfcAbs4(v));
  }
}
