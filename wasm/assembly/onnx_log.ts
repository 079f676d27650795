// The natural logarithm of four float32.
//
//   log(x) = e · ln 2 + log(m), m in √½..√2
//
// 1. log(m) = f - f²/2 + f³ · P(f), f = m - 1, with the polynomial of the Cephes library; 1e-7 relative.
// 2. Subnormal numbers are scaled up first; 0 gives -infinity, what is negative NaN.
import { madd } from "./simd";

@inline export function log4(x: v128): v128 {
  const one = f32x4.splat(1), zero = f32x4.splat(0);
  const small = f32x4.lt(x, f32x4.splat(1.17549435e-38));
  const scaled = v128.bitselect(f32x4.mul(x, f32x4.splat(16777216)), x, small);
  let e = i32x4.sub(i32x4.shr_u(scaled, 23), i32x4.splat(126));
  e = i32x4.sub(e, v128.and(small, i32x4.splat(24)));
  // m in ½..1
  let m = v128.or(v128.and(scaled, i32x4.splat(0x007fffff)), i32x4.splat(0x3f000000));
  const low = f32x4.lt(m, f32x4.splat(0.70710678));
  m = f32x4.add(m, v128.and(low, m));
  const k = f32x4.sub(f32x4.convert_i32x4_s(e), v128.and(low, one));
  const f = f32x4.sub(m, one), z = f32x4.mul(f, f);
  let p = madd(f32x4.splat(7.0376836292e-2), f, f32x4.splat(-1.1514610310e-1));
  p = madd(p, f, f32x4.splat(1.1676998740e-1));
  p = madd(p, f, f32x4.splat(-1.2420140846e-1));
  p = madd(p, f, f32x4.splat(1.4249322787e-1));
  p = madd(p, f, f32x4.splat(-1.6668057665e-1));
  p = madd(p, f, f32x4.splat(2.0000714765e-1));
  p = madd(p, f, f32x4.splat(-2.4999993993e-1));
  p = madd(p, f, f32x4.splat(3.3333331174e-1));
  let y = f32x4.mul(f32x4.mul(p, f), z);
  y = madd(k, f32x4.splat(-2.12194440e-4), y);
  y = madd(z, f32x4.splat(-0.5), y);
  y = f32x4.add(f, y);
  y = madd(k, f32x4.splat(0.693359375), y);
  y = v128.bitselect(f32x4.splat(-Infinity), y, f32x4.eq(x, zero));
  y = v128.bitselect(x, y, f32x4.eq(x, f32x4.splat(Infinity)));
  const invalid = v128.or(f32x4.lt(x, zero), f32x4.ne(x, x));
  return v128.or(y, invalid);
}
