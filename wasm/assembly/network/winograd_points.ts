// The transforms of Winograd's minimal filtering F(4 × 4, 3 × 3), see conv_winograd.ts: values of polynomials at 0, ±√½, ±√2
// and infinity. At these points the error is twice that of plain sums (rms 1.3e-6 of the result's at 512 channels, plain
// 0.8e-6); at 0, ±1, ±2, which papers take, it is four times as large, and ten times in the worst element. Four tiles at a
// time, a tile a lane.
import { activated } from "../generated/elementwise_runs";
import { madd } from "../simd";

/** Places of a tile along an axis, those under its windows, and points. */
export const STEP: u32 = 4, SIDE: u32 = 6, POINTS: u32 = 36;

const A: f32 = 0.70710678118654752, B: f32 = 1.4142135623730951;

/** G g Gᵀ of one filter of one channel; points lie `apart` bytes apart. */
export function filterPoints(w: usize, y: usize, apart: usize): void {
  for (let i: u32 = 0; i < SIDE; i++) {
    const a = filterPoint(i, load<f32>(w), load<f32>(w, 12), load<f32>(w, 24));
    const b = filterPoint(i, load<f32>(w, 4), load<f32>(w, 16), load<f32>(w, 28));
    const c = filterPoint(i, load<f32>(w, 8), load<f32>(w, 20), load<f32>(w, 32));
    for (let j: u32 = 0; j < SIDE; j++, y += apart) store<f32>(y, <f32>filterPoint(j, a, b, c));
  }
}

/** Row `i` of G. */
function filterPoint(i: u32, a: f64, b: f64, c: f64): f64 {
  if (i == 0) return a;
  if (i == 5) return c;
  const sign: f64 = i & 1 ? 1 : -1;
  if (i < 3) return (a + sign * 0.70710678118654752 * b + 0.5 * c) * (-2.0 / 3.0);
  return (a + sign * 1.4142135623730951 * b + 2 * c) * (1.0 / 6.0);
}

/** Bytes that transforms need for what is between their two passes. */
export const BETWEEN: usize = 36 * 16 + 64;

/** Bᵀ times six vectors. */
@inline function inputPoint(
  d0: v128, d1: v128, d2: v128, d3: v128, d4: v128, d5: v128, y: usize, apart: usize,
): void {
  const a = f32x4.splat(A), b = f32x4.splat(B), far = f32x4.splat(-2.5);
  v128.store(y, madd(d2, far, f32x4.add(d0, d4)));
  v128.store(y + 5 * apart, madd(d3, far, f32x4.add(d1, d5)));
  const evenA = madd(d2, f32x4.splat(-2), d4), oddA = f32x4.sub(f32x4.mul(d3, a), f32x4.mul(d1, b));
  v128.store(y + apart, f32x4.add(evenA, oddA));
  v128.store(y + 2 * apart, f32x4.sub(evenA, oddA));
  const evenB = madd(d2, f32x4.splat(-0.5), d4), oddB = f32x4.sub(f32x4.mul(d3, b), f32x4.mul(d1, a));
  v128.store(y + 3 * apart, f32x4.add(evenB, oddB));
  v128.store(y + 4 * apart, f32x4.sub(evenB, oddB));
}

/** Bᵀ d B of four tiles whose rows lie `pitch` bytes apart, to points `apart` bytes apart. */
export function tilePoints(x: usize, pitch: usize, y: usize, apart: usize, between: usize): void {
  const end = between + 36 * 16;
  for (let at = between; at < end; at += 96, x += pitch) {
    const r0 = v128.load(x), r1 = v128.load(x, 16), r2 = v128.load(x, 32), r3 = v128.load(x, 48), r4 = v128.load(x, 64);
    const low01 = v128.shuffle<i32>(r0, r1, 0, 4, 1, 5), high01 = v128.shuffle<i32>(r0, r1, 2, 6, 3, 7);
    const low23 = v128.shuffle<i32>(r2, r3, 0, 4, 1, 5), high23 = v128.shuffle<i32>(r2, r3, 2, 6, 3, 7);
    const d0 = v128.shuffle<i64>(low01, low23, 0, 2), d1 = v128.shuffle<i64>(low01, low23, 1, 3);
    const d2 = v128.shuffle<i64>(high01, high23, 0, 2), d3 = v128.shuffle<i64>(high01, high23, 1, 3);
    const d4 = v128.shuffle<i32>(d0, r4, 1, 2, 3, 4), d5 = v128.shuffle<i32>(d1, r4, 1, 2, 3, 5);
    inputPoint(d0, d1, d2, d3, d4, d5, at, 16);
  }
  for (let at = between; at < between + 96; at += 16, y += apart) {
    inputPoint(
      v128.load(at), v128.load(at, 96), v128.load(at, 192), v128.load(at, 288), v128.load(at, 384), v128.load(at, 480),
      y, 6 * apart,
    );
  }
}

/** Aᵀ M A of four tiles, bias and activation, to four rows of sixteen places that lie `row` bytes apart. */
export function tilePlaces(
  m: usize, apart: usize, bias: f32, activation: u32, y: usize, row: usize, between: usize,
): void {
  const a = f32x4.splat(A), b = f32x4.splat(B), half = f32x4.splat(0.5), two = f32x4.splat(2);
  const halfA = f32x4.splat(A / 2), twoB = f32x4.splat(2 * B), six = 6 * apart;
  for (let at = between; at < between + 96; at += 16, m += apart) {
    const m1 = v128.load(m + six), m2 = v128.load(m + 2 * six), m3 = v128.load(m + 3 * six), m4 = v128.load(m + 4 * six);
    const plus12 = f32x4.add(m1, m2), minus12 = f32x4.sub(m1, m2), plus34 = f32x4.add(m3, m4), minus34 = f32x4.sub(m3, m4);
    v128.store(at, f32x4.add(v128.load(m), f32x4.add(plus12, plus34)));
    v128.store(at, madd(minus12, a, f32x4.mul(minus34, b)), 96);
    v128.store(at, madd(plus12, half, f32x4.mul(plus34, two)), 192);
    v128.store(at, madd(minus12, halfA, madd(minus34, twoB, v128.load(m + 5 * six))), 288);
  }
  const base = f32x4.splat(bias);
  for (const end = between + 384; between < end; between += 96, y += row) {
    const m1 = v128.load(between, 16), m2 = v128.load(between, 32), m3 = v128.load(between, 48), m4 = v128.load(between, 64);
    const plus12 = f32x4.add(m1, m2), minus12 = f32x4.sub(m1, m2), plus34 = f32x4.add(m3, m4), minus34 = f32x4.sub(m3, m4);
    let y0 = f32x4.add(f32x4.add(v128.load(between), f32x4.add(plus12, plus34)), base);
    let y1 = f32x4.add(madd(minus12, a, f32x4.mul(minus34, b)), base);
    let y2 = f32x4.add(madd(plus12, half, f32x4.mul(plus34, two)), base);
    let y3 = f32x4.add(madd(minus12, halfA, madd(minus34, twoB, v128.load(between, 80))), base);
    if (activation) {
      y0 = activated(activation, y0); y1 = activated(activation, y1);
      y2 = activated(activation, y2); y3 = activated(activation, y3);
    }
    const low01 = v128.shuffle<i32>(y0, y1, 0, 4, 1, 5), high01 = v128.shuffle<i32>(y0, y1, 2, 6, 3, 7);
    const low23 = v128.shuffle<i32>(y2, y3, 0, 4, 1, 5), high23 = v128.shuffle<i32>(y2, y3, 2, 6, 3, 7);
    v128.store(y, v128.shuffle<i64>(low01, low23, 0, 2));
    v128.store(y, v128.shuffle<i64>(low01, low23, 1, 3), 16);
    v128.store(y, v128.shuffle<i64>(high01, high23, 0, 2), 32);
    v128.store(y, v128.shuffle<i64>(high01, high23, 1, 3), 48);
  }
}
