// Attention over the KV cache with an online softmax.
//
//   for each tile of query rows and each KV head:           (a unit of work: R rows × G heads = n queries)
//     for blocks of 32 positions from the first to the last that any of the rows sees:
//       cache of less than 32 bit, n > 4: K, V block → float32 once for all n queries; else read in place
//       s = q · K; softcap; mask; m' = max(m, max s); p = exp(s - m'); l = l · exp(m - m') + Σ p
//       acc = acc · exp(m - m') + p · V
//     y = acc / l
//
// 1. The heads of a group and the rows of a tile share each read of K and V.
// 2. Positions outside the window of all rows of the tile are skipped, not masked.
// 3. With few rows (decoding) what a row sees is cut into segments, each a unit; the segments' (m, l, acc)
//    are merged by attention_combine. The cut depends on the row's length only, never on threads or on
//    other rows, so results are the same on any number of threads.
// 4. Scores are 2 queries × 4 positions in registers, values 2 queries × 16 channels: more accumulators
//    spill on machines with 16 registers.
// 5. A float16 moved to float32's place is its value times 2^-112. Mending that by a multiplication for
//    each value would cost a quarter of the loop, so q carries 2^100, the scores 2^12, and the
//    probabilities 2^112 (they are at most 1). kv_append reports what is not finite in float16. The scales of
//    a cache of Q8_0 are float16 and moved alike (cache_blocks.ts).
// 6. A sink starts a query's maximum and sum; a slope is added to the scores of a block (never together
//    with a soft cap, which would come before it).
// 7. Rows past the end of a block are read again from its last row: nothing outside the cache is touched.
//
// Tried and not kept, as fast within 3 % (SmolLM2's heads, 1,024 positions): 3 × 4 and 4 × 4 accumulators,
// caches with the heads stored apart. A float32 cache is no faster than a float16 one either.
import { addressAt, chunksOf, f32At, min, nextChunk, thread, u32At } from "./runtime";
import { exp4, tanh4 } from "./exp";
import { cacheBytes, roundQuery, widenBlocks } from "./cache_blocks";
import { halfMask, movedHalf4 } from "./half";
import { scoresBlocks, valuesBlocks } from "./generated/attention_blocks";
import { scoresHalf, valuesHalf } from "./generated/attention_half";
import { madd, max4, sum4, sums4 } from "./simd";
import {
  ATTENTION_COMBINE_HEADS, ATTENTION_COMBINE_PARTIALS, ATTENTION_COMBINE_POSITIONS, ATTENTION_COMBINE_ROWS,
  ATTENTION_COMBINE_SEGMENT, ATTENTION_COMBINE_SEGMENTS, ATTENTION_COMBINE_SPLIT_ROWS,
  ATTENTION_COMBINE_VALUE_SIZE, ATTENTION_COMBINE_WINDOW, ATTENTION_COMBINE_Y,
  ATTENTION_CAPACITY, ATTENTION_CACHE, ATTENTION_HEAD_SIZE, ATTENTION_HEADS, ATTENTION_K, ATTENTION_KV_HEADS,
  ATTENTION_PARTIALS, ATTENTION_POSITIONS, ATTENTION_Q, ATTENTION_ROWS, ATTENTION_SCALE, ATTENTION_SCRATCH,
  ATTENTION_SCRATCH_BYTES, ATTENTION_SINKS, ATTENTION_SLOPES, ATTENTION_SEGMENT, ATTENTION_SEGMENTS, ATTENTION_SLOT_COUNT, ATTENTION_SLOT_TABLE,
  ATTENTION_SLOTS, ATTENTION_SOFTCAP, ATTENTION_SPLIT_ROWS, ATTENTION_TILE, ATTENTION_V, ATTENTION_VALUE_SIZE,
  ATTENTION_WINDOW, ATTENTION_Y,
} from "./generated/opcodes";

const BLOCK: u32 = 32;
const LOWEST: f32 = -3.0e38;
const TWO_12: f32 = 4096;
const TWO_100: f32 = 1.2676506002282294e30;
const TWO_112: f32 = 5.192296858534828e33;

/** First position that a row sees. */
@inline function firstPosition(position: u32, window: u32): u32 {
  return window && position >= window ? position - window + 1 : 0;
}

/** Positions of a segment of a row that sees `length`: equal parts, at most `most`, of whole blocks. */
@inline function segmentLength(length: u32, shortest: u32, most: u32): u32 {
  const size = chunksOf(chunksOf(length, most), BLOCK) * BLOCK;
  return size > shortest ? size : shortest;
}

/** Number of segments of a row at `position`. */
@inline function segmentCount(position: u32, window: u32, shortest: u32, most: u32): u32 {
  const length = position + 1 - firstPosition(position, window);
  return chunksOf(length, segmentLength(length, shortest, most));
}

export function attention(ip: usize): void {
  const rows = u32At(ip, ATTENTION_ROWS), kvHeads = u32At(ip, ATTENTION_KV_HEADS);
  const positions = addressAt(ip, ATTENTION_POSITIONS), slots = addressAt(ip, ATTENTION_SLOTS);
  if (rows <= u32At(ip, ATTENTION_SPLIT_ROWS)) {
    const window = u32At(ip, ATTENTION_WINDOW);
    const shortest = u32At(ip, ATTENTION_SEGMENT), most = u32At(ip, ATTENTION_SEGMENTS);
    let total: u32 = 0;
    for (let row: u32 = 0; row < rows; row++) {
      total += kvHeads * segmentCount(load<u32>(positions + (<usize>row << 2)), window, shortest, most);
    }
    for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
      let row: u32 = 0, unit = <u32>c;
      let segments = segmentCount(load<u32>(positions), window, shortest, most);
      while (unit >= kvHeads * segments) {
        unit -= kvHeads * segments;
        row++;
        segments = segmentCount(load<u32>(positions + (<usize>row << 2)), window, shortest, most);
      }
      attend(ip, row, row + 1, unit % kvHeads, unit / kvHeads, segments > 1);
    }
    return;
  }
  const tile = u32At(ip, ATTENTION_TILE);
  const total = chunksOf(rows, tile) * kvHeads;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    // the last rows see the most positions: begin with them
    const unit = total - 1 - <u32>c;
    let row = unit / kvHeads * tile;
    const end = min(rows, row + tile);
    while (row < end) { // runs of rows of one slot
      const slot = load<u32>(slots + (<usize>row << 2));
      let next = row + 1;
      while (next < end && load<u32>(slots + (<usize>next << 2)) == slot) next++;
      attend(ip, row, next, unit % kvHeads, 0, false);
      row = next;
    }
  }
}

/** Rows [row, end) of one slot, one KV head, one segment (or, unless partial, everything they see). */
function attend(ip: usize, row: u32, end: u32, kvHead: u32, segment: u32, partial: bool): void {
  const heads = u32At(ip, ATTENTION_HEADS), kvHeads = u32At(ip, ATTENTION_KV_HEADS);
  const size = u32At(ip, ATTENTION_HEAD_SIZE), valueSize = u32At(ip, ATTENTION_VALUE_SIZE);
  const window = u32At(ip, ATTENTION_WINDOW), kind = u32At(ip, ATTENTION_CACHE);
  const positions = addressAt(ip, ATTENTION_POSITIONS), softcap = f32At(ip, ATTENTION_SOFTCAP);
  const group = heads / kvHeads, queries = (end - row) * group, padded = (queries + 1) & ~1;

  let low: u32 = u32.MAX_VALUE, high: u32 = 0;
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
  }

  const q = addressAt(ip, ATTENTION_SCRATCH) + <usize>thread * u32At(ip, ATTENTION_SCRATCH_BYTES);
  const s = q + <usize>padded * size * 4;
  const acc = s + <usize>padded * BLOCK * 4;
  const highest = acc + <usize>padded * valueSize * 4;
  const sums = highest + <usize>padded * 4;
  const factors = sums + <usize>padded * 4;
  const kBlock = (factors + <usize>padded * 4 + 15) & ~15;
  const vBlock = kBlock + <usize>BLOCK * size * 4;

  const isFloat = kind == 0, given = f32At(ip, ATTENTION_SCALE);
  const scale = isFloat ? given : given * TWO_100, weight: f32 = isFloat ? 1 : TWO_112;
  const sinks = addressAt(ip, ATTENTION_SINKS), slopes = addressAt(ip, ATTENTION_SLOPES);
  const direct = !isFloat && queries <= 4, rounded = direct && kind == 2;
  const together = direct ? queries : 2; // queries whose vectors alternate in memory
  const queryFactors = q + <usize>queries * size * 2; // behind queries in 16 bit
  for (let i: u32 = 0; i < padded; i++) {
    const to = q + <usize>(i / together * together * size) * 4 + (<usize>(i % together) << 4);
    const r = row + i / group, head = kvHead * group + i % group;
    const from = addressAt(ip, ATTENTION_Q) + (<usize>r * heads + head) * size * 4;
    if (!rounded) for (let d: usize = 0; d < <usize>size << 2; d += 16) {
      v128.store(to + d * together, i < queries ? f32x4.mul(v128.load(from + d), f32x4.splat(scale)) : f32x4.splat(0));
    }
    else if (i < queries) {
      roundQuery(from, size, given, q + (<usize>i << 4), <usize>queries << 4, queryFactors + (<usize>i << 2));
    }
    // a sink is a score that is seen before all others, once
    const sunk = sinks && segment == 0 && i < queries;
    store<f32>(highest + (<usize>i << 2), sunk ? load<f32>(sinks + (<usize>head << 2)) : LOWEST);
    store<f32>(sums + (<usize>i << 2), sunk ? 1 : 0);
  }
  memory.fill(acc, 0, <usize>padded * valueSize * 4);

  const block = <usize>load<u32>(addressAt(ip, ATTENTION_SLOT_TABLE) + (<usize>slot << 2));
  const kBytes = cacheBytes(kind, size), vBytes = cacheBytes(kind, valueSize);
  const kStride = kBytes * kvHeads, vStride = vBytes * kvHeads;
  const kBase = block + addressAt(ip, ATTENTION_K) + kBytes * kvHead;
  const vBase = block + addressAt(ip, ATTENTION_V) + vBytes * kvHead;

  for (let from = low; from <= high; from += BLOCK) {
    const count = min(BLOCK, high + 1 - from);
    let k = kBase + <usize>from * kStride, v = vBase + <usize>from * vStride;
    let kStep = kStride, vStep = vStride;
    if (!isFloat && !direct) {
      widen(kind, k, kStride, kBlock, count, size);
      widen(kind, v, vStride, vBlock, count, valueSize);
      k = kBlock; v = vBlock;
      kStep = <usize>size << 2; vStep = <usize>valueSize << 2;
    }
    if (rounded) scoresBlocks(queries, q, queryFactors, size, k, kStep, count, s);
    else if (direct) scoresHalf(queries, q, size, k, kStep, count, s);
    else scores(q, padded, size, k, kStep, count, s, isFloat ? 1 : TWO_12);
    for (let i: u32 = 0; i < queries; i++) {
      const p = load<u32>(positions + (<usize>(row + i / group) << 2));
      const first = firstPosition(p, window);
      const at = <usize>i << 2;
      const line = s + <usize>i * BLOCK * 4;
      const begin = first > from ? first - from : 0;
      const stop = p < from ? 0 : min(count, p + 1 - from);
      if (slopes) {
        const slope = load<f32>(slopes + (<usize>(kvHead * group + i % group) << 2));
        lean(line, count, slope, <f32>(<i32>from - <i32>p));
      }
      softmaxStep(line, begin, stop, count, softcap, weight, highest + at, sums + at, factors + at);
    }
    if (rounded) valuesBlocks(queries, s, factors, v, vStep, count, valueSize, acc, kBlock);
    else if (direct) valuesHalf(queries, s, factors, v, vStep, count, valueSize, acc);
    else {
      if (padded > queries) memory.fill(s + <usize>queries * BLOCK * 4, 0, BLOCK * 4);
      values(s, factors, padded, v, vStep, count, valueSize, acc);
    }
  }

  for (let i: u32 = 0; i < queries; i++) {
    const r = row + i / group, head = kvHead * group + i % group, index = <usize>r * heads + head;
    const from = acc + <usize>i * valueSize * 4, sum = load<f32>(sums + (<usize>i << 2));
    if (partial) {
      const to = addressAt(ip, ATTENTION_PARTIALS) +
        (index * u32At(ip, ATTENTION_SEGMENTS) + segment) * (<usize>valueSize + 4) * 4;
      store<f32>(to, load<f32>(highest + (<usize>i << 2)));
      store<f32>(to, sum, 4);
      memory.copy(to + 16, from, <usize>valueSize << 2);
    } else {
      const to = addressAt(ip, ATTENTION_Y) + index * valueSize * 4, factor = f32x4.splat((<f32>1) / sum);
      for (let d: usize = 0; d < <usize>valueSize << 2; d += 16) {
        v128.store(to + d, f32x4.mul(v128.load(from + d), factor));
      }
    }
  }
}

function widen(kind: u32, from: usize, stride: usize, to: usize, count: u32, size: u32): void {
  if (kind == 2) {
    widenBlocks(from, stride, to, count, size);
    return;
  }
  const mask = halfMask();
  for (let j: u32 = 0; j < count; j++, from += stride) {
    for (let d: usize = 0; d < <usize>size; d += 4, to += 16) v128.store(to, movedHalf4(from + (d << 1), mask));
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
function lean(s: usize, count: u32, slope: f32, distance: f32): void {
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
  let top = f32x4.splat(LOWEST);
  for (let p = s; p < end; p += 16) top = f32x4.pmax(top, v128.load(p));
  const before = load<f32>(highest);
  const blockTop = max4(top);
  const after = blockTop > before ? blockTop : before;
  if (begin >= stop) { // sees nothing of this block
    memory.fill(s, 0, end - s);
    store<f32>(factor, 1);
    return;
  }
  const m = f32x4.splat(after), w = f32x4.splat(weight);
  let total = f32x4.splat(0);
  for (let p = s; p < end; p += 16) {
    const e = exp4(f32x4.sub(v128.load(p), m));
    v128.store(p, f32x4.mul(e, w));
    total = f32x4.add(total, e);
  }
  const shrink = f32x4.extract_lane(exp4(f32x4.splat(before - after)), 0);
  store<f32>(highest, after);
  store<f32>(factor, shrink);
  store<f32>(sum, load<f32>(sum) * shrink + sum4(total));
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

/** Merges the segments of each head: weights exp(m - max m), sums l alike. A chunk is four heads. */
export function attention_combine(ip: usize): void {
  const rows = u32At(ip, ATTENTION_COMBINE_ROWS), heads = u32At(ip, ATTENTION_COMBINE_HEADS);
  const positions = addressAt(ip, ATTENTION_COMBINE_POSITIONS), window = u32At(ip, ATTENTION_COMBINE_WINDOW);
  const shortest = u32At(ip, ATTENTION_COMBINE_SEGMENT), most = u32At(ip, ATTENTION_COMBINE_SEGMENTS);
  const parts = chunksOf(heads, 4);
  let total: u32 = 0; // none if no row was cut
  if (rows <= u32At(ip, ATTENTION_COMBINE_SPLIT_ROWS)) {
    for (let row: u32 = 0; row < rows; row++) {
      if (segmentCount(load<u32>(positions + (<usize>row << 2)), window, shortest, most) > 1) total = rows * parts;
    }
  }
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const row = <u32>c / parts, first = <u32>c % parts * 4;
    const segments = segmentCount(load<u32>(positions + (<usize>row << 2)), window, shortest, most);
    if (segments == 1) continue;
    for (let head = first; head < min(heads, first + 4); head++) mergeHead(ip, <usize>row * heads + head, segments);
  }
}

function mergeHead(ip: usize, index: usize, segments: u32): void {
  const size = u32At(ip, ATTENTION_COMBINE_VALUE_SIZE);
  const bytes = (<usize>size + 4) << 2;
  const first = addressAt(ip, ATTENTION_COMBINE_PARTIALS) + index * u32At(ip, ATTENTION_COMBINE_SEGMENTS) * bytes;
  const y = addressAt(ip, ATTENTION_COMBINE_Y) + index * size * 4;
  const end = first + <usize>segments * bytes;
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
  for (let d: usize = 0; d < <usize>size << 2; d += 16) {
    let v = f32x4.splat(0);
    for (let part = first; part < end; part += bytes) {
      v = madd(v128.load(part + d, 16), v128.load32_splat(part, 8), v);
    }
    v128.store(y + d, f32x4.div(v, f32x4.splat(sum)));
  }
}
