// The natural logarithm of four float32.
//
//   log(x) = e · ln 2 + log(m), m in √½..√2
//
// 1. log(m) = f - f²/2 + f³ · P(f), f = m - 1, with the polynomial of the Cephes library; 1e-7 relative.
// 2. Constants are read from memory, as in exp.ts. Subnormal numbers are scaled up first; 0 gives -infinity, what is negative NaN.
import { madd } from "../simd";

const C: usize = memory.data<f32>([
  1, 1, 1, 1,
  0, 0, 0, 0,
  1.17549435e-38, 1.17549435e-38, 1.17549435e-38, 1.17549435e-38,
  16777216, 16777216, 16777216, 16777216,
  0.70710678, 0.70710678, 0.70710678, 0.70710678,
  7.0376836292e-2, 7.0376836292e-2, 7.0376836292e-2, 7.0376836292e-2,
  -1.1514610310e-1, -1.1514610310e-1, -1.1514610310e-1, -1.1514610310e-1,
  1.1676998740e-1, 1.1676998740e-1, 1.1676998740e-1, 1.1676998740e-1,
  -1.2420140846e-1, -1.2420140846e-1, -1.2420140846e-1, -1.2420140846e-1,
  1.4249322787e-1, 1.4249322787e-1, 1.4249322787e-1, 1.4249322787e-1,
  -1.6668057665e-1, -1.6668057665e-1, -1.6668057665e-1, -1.6668057665e-1,
  2.0000714765e-1, 2.0000714765e-1, 2.0000714765e-1, 2.0000714765e-1,
  -2.4999993993e-1, -2.4999993993e-1, -2.4999993993e-1, -2.4999993993e-1,
  3.3333331174e-1, 3.3333331174e-1, 3.3333331174e-1, 3.3333331174e-1,
  -2.12194440e-4, -2.12194440e-4, -2.12194440e-4, -2.12194440e-4,
  -0.5, -0.5, -0.5, -0.5,
  0.693359375, 0.693359375, 0.693359375, 0.693359375,
], 16);

@inline export function log4(x: v128): v128 {
  const one = v128.load(C, 0), zero = v128.load(C, 16);
  const small = f32x4.lt(x, v128.load(C, 32));
  const scaled = v128.bitselect(f32x4.mul(x, v128.load(C, 48)), x, small);
  let e = i32x4.sub(i32x4.shr_u(scaled, 23), i32x4.splat(126));
  e = i32x4.sub(e, v128.and(small, i32x4.splat(24)));
  // m in ½..1
  let m = v128.or(v128.and(scaled, i32x4.splat(0x007fffff)), i32x4.splat(0x3f000000));
  const low = f32x4.lt(m, v128.load(C, 64));
  m = f32x4.add(m, v128.and(low, m));
  const k = f32x4.sub(f32x4.convert_i32x4_s(e), v128.and(low, one));
  const f = f32x4.sub(m, one), z = f32x4.mul(f, f);
  let p = madd(v128.load(C, 80), f, v128.load(C, 96));
  p = madd(p, f, v128.load(C, 112));
  p = madd(p, f, v128.load(C, 128));
  p = madd(p, f, v128.load(C, 144));
  p = madd(p, f, v128.load(C, 160));
  p = madd(p, f, v128.load(C, 176));
  p = madd(p, f, v128.load(C, 192));
  p = madd(p, f, v128.load(C, 208));
  let y = f32x4.mul(f32x4.mul(p, f), z);
  y = madd(k, v128.load(C, 224), y);
  y = madd(z, v128.load(C, 240), y);
  y = f32x4.add(f, y);
  y = madd(k, v128.load(C, 256), y);
  y = v128.bitselect(f32x4.splat(-Infinity), y, f32x4.eq(x, zero));
  y = v128.bitselect(x, y, f32x4.eq(x, f32x4.splat(Infinity)));
  const invalid = v128.or(f32x4.lt(x, zero), f32x4.ne(x, x));
  return v128.or(y, invalid);
}
