// What attention over caches of every number format shares: the positions that rows see, the softmax of a block of
// positions, products with K and V in float32, and where results go. attention.ts says what it is about.
import { addressAt, chunksOf, min, u32At } from "../machine/runtime";
import { PAGE, pagesOf } from "./cache_blocks";
import { exp4, exponentials, tanh4 } from "../exp";
import { madd, sum4, sums4 } from "../simd";
import {
  ATTENTION_BEHIND, ATTENTION_CAPACITY, ATTENTION_HEADS, ATTENTION_PAGE_TABLE, ATTENTION_PARTIALS,
  ATTENTION_POSITIONS, ATTENTION_SEGMENTS, ATTENTION_SLOT_COUNT, ATTENTION_SLOTS, ATTENTION_WINDOW, ATTENTION_Y,
} from "../generated/opcodes";

/** Positions of a block. */
export const BLOCK: u32 = 32;
export const LOWEST: f32 = -3.0e38;
export const TWO_12: f32 = 4096;
export const TWO_100: f32 = 1.2676506002282294e30;
export const TWO_112: f32 = 5.192296858534828e33;
/** Where sums go, so that no compiler finds reading useless. */
const SINK: usize = memory.data(16, 16);

/** What `lastSeen` says of a row that sees nothing. */
export const NOTHING: u32 = u32.MAX_VALUE;

/** Last position that a row sees. */
@inline export function lastSeen(ip: usize, row: u32): u32 {
  return load<u32>(addressAt(ip, ATTENTION_POSITIONS) + (<usize>row << 2)) - u32At(ip, ATTENTION_BEHIND);
}

/** First position that a row sees. */
@inline export function firstPosition(position: u32, window: u32): u32 {
  return window && position >= window ? position - window + 1 : 0;
}

/**
 * Where the blocks of a row begin: at multiples of their length, whatever it sees of the first one. So they lie within a
 * page, and begin where they do for any other row.
 */
@inline export function firstBlock(position: u32, window: u32): u32 {
  return firstPosition(position, window) & ~(BLOCK - 1);
}

/** Fewest positions of a segment. */
const SHORTEST: u32 = 2 * PAGE;

/** Positions of a segment of a row whose blocks have `length`: equal parts, at most `most`, of whole blocks. */
@inline function segmentLength(length: u32, most: u32): u32 {
  const size = chunksOf(chunksOf(length, most), BLOCK) * BLOCK;
  return size > SHORTEST ? size : SHORTEST;
}

/** Number of segments of a row that sees up to `position`; of one that sees nothing it is 1, too. */
@inline export function segmentCount(position: u32, window: u32, most: u32): u32 {
  const length = position + 1 - firstBlock(position, window);
  return length ? chunksOf(length, segmentLength(length, most)) : 1;
}

/** First position of a block and last one that any of the rows sees that `see` was asked about last. */
export let low: u32 = 0;
export let high: u32 = 0;

/** Looks up what rows [row, end) see, or the part of it that is one segment; returns where the pages of their slot stand. */
export function see(ip: usize, row: u32, end: u32, segment: u32, partial: bool): usize {
  const window = u32At(ip, ATTENTION_WINDOW);
  low = u32.MAX_VALUE; high = 0;
  for (let r = row; r < end; r++) {
    const p = lastSeen(ip, r);
    const first = firstBlock(p, window);
    if (first < low) low = first;
    if (p > high) high = p;
  }
  const slot = load<u32>(addressAt(ip, ATTENTION_SLOTS) + (<usize>row << 2));
  if (high >= u32At(ip, ATTENTION_CAPACITY) || slot >= u32At(ip, ATTENTION_SLOT_COUNT)) unreachable();
  if (partial) {
    const length = segmentLength(high + 1 - low, u32At(ip, ATTENTION_SEGMENTS));
    low += segment * length;
    high = min(high, low + length - 1);
  }
  return addressAt(ip, ATTENTION_PAGE_TABLE) + ((<usize>slot * pagesOf(u32At(ip, ATTENTION_CAPACITY))) << 2);
}

/** Where the row of a position lies, counted in rows, by the pages of a slot. */
@inline export function cellOf(pages: usize, position: u32): usize {
  return <usize>load<u32>(pages + (<usize>(position / PAGE) << 2)) * PAGE + position % PAGE;
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

/** The segment of a row that ends before a block at `here` begins, which the row sees; -1: none does. */
@inline export function segmentBefore(ip: usize, position: u32, here: u32): i32 {
  const first = firstBlock(position, u32At(ip, ATTENTION_WINDOW));
  if (here <= first || here > position) return -1;
  const length = segmentLength(position + 1 - first, u32At(ip, ATTENTION_SEGMENTS));
  return (here - first) % length ? -1 : (here - first) / length - 1;
}

/** Stores what came of a segment of a head, and makes place for the next one. */
export function storeSegment(to: usize, acc: usize, bytes: usize, highest: usize, sum: usize): void {
  store<f32>(to, load<f32>(highest));
  store<f32>(to, load<f32>(sum), 4);
  memory.copy(to + 16, acc, bytes);
  memory.fill(acc, 0, bytes);
  store<f32>(highest, LOWEST);
  store<f32>(sum, 0);
}

/**
 * Stores what came of one head of a row, or of a segment of it.
 *
 * @param before Where the segments of the head before this one are, of a row that was not shared out.
 */
export function storeHead(
  ip: usize, row: u32, head: u32, acc: usize, bytes: usize, highest: usize, sum: usize, segment: u32, partial: bool,
  before: usize,
): void {
  const index = <usize>row * u32At(ip, ATTENTION_HEADS) + head, most = u32At(ip, ATTENTION_SEGMENTS);
  if (partial) {
    storeSegment(
      addressAt(ip, ATTENTION_PARTIALS) + (index * most + segment) * (bytes + 16), acc, bytes, highest, sum);
    return;
  }
  const to = addressAt(ip, ATTENTION_Y) + index * bytes;
  const segments = segmentCount(lastSeen(ip, row), u32At(ip, ATTENTION_WINDOW), most);
  if (segments > 1) {
    storeSegment(before + <usize>(segments - 1) * (bytes + 16), acc, bytes, highest, sum);
    mergeSegments(before, segments, bytes, to);
    return;
  }
  const factor = f32x4.splat((<f32>1) / load<f32>(sum));
  for (let d: usize = 0; d < bytes; d += 16) v128.store(to + d, f32x4.mul(v128.load(acc + d), factor));
}

/** Merges the segments of a head: weights exp(m - max m), sums l alike. */
export function mergeSegments(first: usize, segments: u32, size: usize, y: usize): void {
  const bytes = size + 16, end = first + <usize>segments * bytes;
  let highest = LOWEST;
  for (let part = first; part < end; part += bytes) {
    const m = load<f32>(part);
    if (m > highest) highest = m;
  }
  let sum: f32 = 0;
  for (let part = first; part < end; part += bytes) {
    const weight = f32x4.extract_lane(exp4(f32x4.splat(load<f32>(part) - highest)), 0);
    sum += load<f32>(part, 4) * weight;
    store<f32>(part, weight, 8);
  }
  for (let d: usize = 0; d < size; d += 16) {
    let v = f32x4.splat(0);
    for (let part = first; part < end; part += bytes) {
      v = madd(v128.load(part + d, 16), v128.load32_splat(part, 8), v);
    }
    v128.store(y + d, f32x4.div(v, f32x4.splat(sum)));
  }
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
