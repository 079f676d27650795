// What attention over caches of every number format shares: the positions that rows see, the softmax of a block of
// positions, products with K and V in float32, and where results go. attention.ts says what it is about.
import { addressAt, chunksOf, min, u32At } from "../machine/runtime";
import { exp4, exponentials, tanh4 } from "../exp";
import { madd, sum4, sums4 } from "../simd";
import {
  ATTENTION_CAPACITY, ATTENTION_PARTIALS, ATTENTION_POSITIONS, ATTENTION_SEGMENT, ATTENTION_SEGMENTS,
  ATTENTION_SLOT_COUNT, ATTENTION_SLOT_TABLE, ATTENTION_SLOTS, ATTENTION_WINDOW, ATTENTION_Y,
} from "../generated/opcodes";

/** Positions of a block. */
export const BLOCK: u32 = 32;
export const LOWEST: f32 = -3.0e38;
export const TWO_12: f32 = 4096;
export const TWO_100: f32 = 1.2676506002282294e30;
export const TWO_112: f32 = 5.192296858534828e33;
/** Where sums go, so that no compiler finds reading useless. */
const SINK: usize = memory.data(16, 16);

/** First position that a row sees. */
@inline export function firstPosition(position: u32, window: u32): u32 {
  return window && position >= window ? position - window + 1 : 0;
}

/** Positions of a segment of a row that sees `length`: equal parts, at most `most`, of whole blocks. */
@inline function segmentLength(length: u32, shortest: u32, most: u32): u32 {
  const size = chunksOf(chunksOf(length, most), BLOCK) * BLOCK;
  return size > shortest ? size : shortest;
}

/** Number of segments of a row at `position`. */
@inline export function segmentCount(position: u32, window: u32, shortest: u32, most: u32): u32 {
  const length = position + 1 - firstPosition(position, window);
  return chunksOf(length, segmentLength(length, shortest, most));
}

/**
 * First and last position that any of the rows sees that `see` was asked about last; of whole rows the first is that
 * of its block.
 */
export let low: u32 = 0;
export let high: u32 = 0;

/** Looks up what rows [row, end) see, or the part of it that is one segment; returns the address of their slot. */
export function see(ip: usize, row: u32, end: u32, segment: u32, partial: bool): usize {
  const positions = addressAt(ip, ATTENTION_POSITIONS), window = u32At(ip, ATTENTION_WINDOW);
  low = u32.MAX_VALUE; high = 0;
  for (let r = row; r < end; r++) {
    const p = load<u32>(positions + (<usize>r << 2));
    const first = firstPosition(p, window);
    if (first < low) low = first;
    if (p > high) high = p;
  }
  const slot = load<u32>(addressAt(ip, ATTENTION_SLOTS) + (<usize>row << 2));
  if (high >= u32At(ip, ATTENTION_CAPACITY) || slot >= u32At(ip, ATTENTION_SLOT_COUNT)) unreachable();
  if (partial) {
    const length = segmentLength(high + 1 - low, u32At(ip, ATTENTION_SEGMENT), u32At(ip, ATTENTION_SEGMENTS));
    low += segment * length;
    high = min(high, low + length - 1);
  } else low &= ~(BLOCK - 1); // blocks begin where they do for any other rows: how many go together changes no sum
  return <usize>load<u32>(addressAt(ip, ATTENTION_SLOT_TABLE) + (<usize>slot << 2));
}

/** Reads a byte of every line of `count` rows of `bytes` bytes, in the order of memory. */
export function touch(from: usize, bytes: usize, stride: usize, count: u32): void {
  if (bytes == stride) { bytes *= count; count = 1; }
  let sum: i32 = 0;
  for (; count; count--, from += stride) {
    for (let at = from, end = from + bytes; at < end; at += 64) sum += <i32>load<u8>(at);
  }
  store<i32>(SINK, sum);
}

/** Stores what came of one head of a row, or of a segment of it. */
export function storeHead(
  ip: usize, index: usize, acc: usize, bytes: usize, highest: f32, sum: f32, segment: u32, partial: bool,
): void {
  if (partial) {
    const to = addressAt(ip, ATTENTION_PARTIALS) + (index * u32At(ip, ATTENTION_SEGMENTS) + segment) * (bytes + 16);
    store<f32>(to, highest);
    store<f32>(to, sum, 4);
    memory.copy(to + 16, acc, bytes);
    return;
  }
  const to = addressAt(ip, ATTENTION_Y) + index * bytes, factor = f32x4.splat((<f32>1) / sum);
  for (let d: usize = 0; d < bytes; d += 16) v128.store(to + d, f32x4.mul(v128.load(acc + d), factor));
}

/** s[i][j] = factor · q[i] · k[j] for all queries, in pairs, and the block's positions, rounded up to 4. */
export function scores(
  q: usize, queries: u32, size: u32, k: usize, step: usize, count: u32, s: usize, factor: f32,
): void {
  const bytes = <usize>size << 3;
  const f = f32x4.splat(factor);
  for (let j: u32 = 0; j < count; j += 4) {
    const row0 = k + <usize>j * step;
    const row1 = k + <usize>min(j + 1, count - 1) * step;
    const row2 = k + <usize>min(j + 2, count - 1) * step;
    const row3 = k + <usize>min(j + 3, count - 1) * step;
    let p = q;
    for (let i: u32 = 0; i < queries; i += 2) {
      let k0 = row0, k1 = row1, k2 = row2, k3 = row3;
      let a0 = f32x4.splat(0), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
      const end = p + bytes;
      for (; p + 64 <= end; p += 64) {
        let u = v128.load(p), w = v128.load(p, 16);
        let x0 = v128.load(k0), x1 = v128.load(k1), x2 = v128.load(k2), x3 = v128.load(k3);
        a0 = madd(u, x0, a0); b0 = madd(w, x0, b0);
        a1 = madd(u, x1, a1); b1 = madd(w, x1, b1);
        a2 = madd(u, x2, a2); b2 = madd(w, x2, b2);
        a3 = madd(u, x3, a3); b3 = madd(w, x3, b3);
        u = v128.load(p, 32); w = v128.load(p, 48);
        x0 = v128.load(k0, 16); x1 = v128.load(k1, 16); x2 = v128.load(k2, 16); x3 = v128.load(k3, 16);
        a0 = madd(u, x0, a0); b0 = madd(w, x0, b0);
        a1 = madd(u, x1, a1); b1 = madd(w, x1, b1);
        a2 = madd(u, x2, a2); b2 = madd(w, x2, b2);
        a3 = madd(u, x3, a3); b3 = madd(w, x3, b3);
        k0 += 32; k1 += 32; k2 += 32; k3 += 32;
      }
      if (p < end) {
        const u = v128.load(p), w = v128.load(p, 16);
        const x0 = v128.load(k0), x1 = v128.load(k1), x2 = v128.load(k2), x3 = v128.load(k3);
        a0 = madd(u, x0, a0); b0 = madd(w, x0, b0);
        a1 = madd(u, x1, a1); b1 = madd(w, x1, b1);
        a2 = madd(u, x2, a2); b2 = madd(w, x2, b2);
        a3 = madd(u, x3, a3); b3 = madd(w, x3, b3);
        p += 32;
      }
      const line = s + (<usize>i * BLOCK + j) * 4;
      v128.store(line, f32x4.mul(f, sums4(a0, a1, a2, a3)));
      v128.store(line, f32x4.mul(f, sums4(b0, b1, b2, b3)), BLOCK * 4);
    }
  }
}

/** s[j] += slope · (distance + j): scores fall with the distance of the key, which is not positive. */
export function lean(s: usize, count: u32, slope: f32, distance: f32): void {
  const step = f32x4.splat(slope);
  let d = f32x4.add(f32x4.splat(distance), f32x4(0, 1, 2, 3));
  for (const end = s + (<usize>((count + 3) & ~3) << 2); s < end; s += 16) {
    v128.store(s, madd(step, d, v128.load(s)));
    d = f32x4.add(d, f32x4.splat(4));
  }
}

/** Turns one query's scores into probabilities times `weight`; positions outside [begin, stop) get 0. */
export function softmaxStep(
  s: usize, begin: u32, stop: u32, count: u32, softcap: f32, weight: f32, highest: usize, sum: usize, factor: usize,
): void {
  const end = s + (<usize>((count + 3) & ~3) << 2);
  if (softcap > 0) {
    const cap = f32x4.splat(softcap);
    for (let p = s; p < end; p += 16) v128.store(p, f32x4.mul(cap, tanh4(f32x4.div(v128.load(p), cap))));
  }
  for (let j: u32 = 0; j < begin && j < ((count + 3) & ~3); j++) store<f32>(s + (<usize>j << 2), LOWEST);
  for (let p = s + (<usize>stop << 2); p < end; p += 4) store<f32>(p, LOWEST);
  if (begin >= stop) { // sees nothing of this block
    memory.fill(s, 0, end - s);
    store<f32>(factor, 1);
    return;
  }
  let top = f32x4.splat(LOWEST);
  for (let p = s; p < end; p += 16) top = f32x4.pmax(top, v128.load(p));
  const before = v128.load32_splat(highest);
  const m = f32x4.pmax(before, all4(top));
  const total = sum4(exponentials(s, end, m, f32x4.splat(weight)));
  let shrink: f32 = 1;
  if (v128.any_true(f32x4.gt(m, before))) {
    shrink = f32x4.extract_lane(exp4(f32x4.sub(before, m)), 0);
    v128.store32_lane(highest, m, 0);
  }
  store<f32>(factor, shrink);
  store<f32>(sum, load<f32>(sum) * shrink + total);
}

/** The largest lane, in all lanes. */
@inline function all4(v: v128): v128 {
  const pairs = f32x4.pmax(v, i8x16.shuffle(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  return f32x4.pmax(pairs, i8x16.shuffle(pairs, pairs, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
}

/** acc[i] = acc[i] · factor[i] + Σ p[i][j] · v[j] */
export function values(
  s: usize, factors: usize, queries: u32, v: usize, step: usize, count: u32, size: u32, acc: usize,
): void {
  const bytes = <usize>size << 2;
  for (let i: u32 = 0; i < queries; i += 2) {
    const line = s + <usize>i * BLOCK * 4, last = line + (<usize>count << 2);
    const f0 = v128.load32_splat(factors + (<usize>i << 2)), f1 = v128.load32_splat(factors + (<usize>i << 2) + 4);
    const y0 = acc + <usize>i * bytes, y1 = y0 + bytes;
    let d: usize = 0;
    for (; d + 64 <= bytes; d += 64) {
      let a0 = f32x4.mul(v128.load(y0 + d), f0), a1 = f32x4.mul(v128.load(y0 + d, 16), f0);
      let a2 = f32x4.mul(v128.load(y0 + d, 32), f0), a3 = f32x4.mul(v128.load(y0 + d, 48), f0);
      let b0 = f32x4.mul(v128.load(y1 + d), f1), b1 = f32x4.mul(v128.load(y1 + d, 16), f1);
      let b2 = f32x4.mul(v128.load(y1 + d, 32), f1), b3 = f32x4.mul(v128.load(y1 + d, 48), f1);
      let x = v + d;
      for (let p = line; p < last; p += 4, x += step) {
        const u = v128.load32_splat(p), w = v128.load32_splat(p, BLOCK * 4);
        const x0 = v128.load(x), x1 = v128.load(x, 16), x2 = v128.load(x, 32), x3 = v128.load(x, 48);
        a0 = madd(u, x0, a0); b0 = madd(w, x0, b0);
        a1 = madd(u, x1, a1); b1 = madd(w, x1, b1);
        a2 = madd(u, x2, a2); b2 = madd(w, x2, b2);
        a3 = madd(u, x3, a3); b3 = madd(w, x3, b3);
      }
      v128.store(y0 + d, a0); v128.store(y0 + d, a1, 16); v128.store(y0 + d, a2, 32); v128.store(y0 + d, a3, 48);
      v128.store(y1 + d, b0); v128.store(y1 + d, b1, 16); v128.store(y1 + d, b2, 32); v128.store(y1 + d, b3, 48);
    }
    for (; d < bytes; d += 16) {
      let a = f32x4.mul(v128.load(y0 + d), f0), b = f32x4.mul(v128.load(y1 + d), f1);
      let x = v + d;
      for (let p = line; p < last; p += 4, x += step) {
        a = madd(v128.load32_splat(p), v128.load(x), a);
        b = madd(v128.load32_splat(p, BLOCK * 4), v128.load(x), b);
      }
      v128.store(y0 + d, a);
      v128.store(y1 + d, b);
    }
  }
}
