// Attention over a cache of float32 or Q8_0: see attention.ts. On Q8_0 the queries of each row are rounded and multiplied
// by themselves, however many rows there are: a prompt and a single token have the same bits.
import { addressAt, f32At, min, thread, u32At } from "../machine/runtime";
import {
  BLOCK, cellOf, firstPosition, high, lastSeen, lean, low, LOWEST, scores, see, segmentBefore, softmaxStep, storeHead, storeSegment,
  touch, TWO_112, values,
} from "./parts";
import { cacheBytes, roundQuery } from "./cache_blocks";
import { scoresBlocks, valuesBlocks } from "../generated/attention_blocks";
import {
  ATTENTION_CACHE, ATTENTION_HEAD_SIZE, ATTENTION_HEADS, ATTENTION_K, ATTENTION_KV_HEADS,
  ATTENTION_Q, ATTENTION_SCALE, ATTENTION_SCRATCH, ATTENTION_SCRATCH_BYTES, ATTENTION_SEGMENTS, ATTENTION_SINKS,
  ATTENTION_SLOPES, ATTENTION_SOFTCAP, ATTENTION_V, ATTENTION_VALUE_SIZE, ATTENTION_WINDOW,
} from "../generated/opcodes";

/** Queries that the loops of Q8_0 take at once. */
const TOGETHER: u32 = 4;

/** Rows [row, end) of one slot, KV heads [kvFirst, kvEnd), one segment (or, unless partial, all they see). */
export function attendRows(
  ip: usize, row: u32, end: u32, kvFirst: u32, kvEnd: u32, segment: u32, partial: bool,
): void {
  const heads = u32At(ip, ATTENTION_HEADS), kvHeads = u32At(ip, ATTENTION_KV_HEADS);
  const size = u32At(ip, ATTENTION_HEAD_SIZE), valueSize = u32At(ip, ATTENTION_VALUE_SIZE);
  const window = u32At(ip, ATTENTION_WINDOW), kind = u32At(ip, ATTENTION_CACHE);
  const softcap = f32At(ip, ATTENTION_SOFTCAP);
  const group = heads / kvHeads, queries = (end - row) * group, padded = (queries + 1) & ~1;
  const groups = kvEnd - kvFirst;
  const pages = see(ip, row, end, segment, partial), from0 = low, last = high;

  // of every KV head: queries, results, maxima, sums, segments that are done; of the one at work: scores, factors, weights
  const qBytes = <usize>padded * size * 4, accBytes = <usize>padded * valueSize * 4, numbers = <usize>padded << 2;
  const q = addressAt(ip, ATTENTION_SCRATCH) + <usize>thread * u32At(ip, ATTENTION_SCRATCH_BYTES);
  const acc = q + qBytes * groups;
  const highest = acc + accBytes * groups;
  const sums = highest + numbers * groups;
  const segments = u32At(ip, ATTENTION_SEGMENTS), doneBytes = <usize>segments * ((<usize>valueSize << 2) + 16);
  const done = (sums + numbers * groups + 15) & ~15;
  const s = done + doneBytes * padded * groups;
  const factors = s + numbers * BLOCK;
  const weights = (factors + numbers + 15) & ~15;

  const isFloat = kind == 0, scale = f32At(ip, ATTENTION_SCALE), weight: f32 = isFloat ? 1 : TWO_112;
  const sinks = addressAt(ip, ATTENTION_SINKS), slopes = addressAt(ip, ATTENTION_SLOPES);
  for (let g: u32 = 0; g < groups; g++) {
    const to = q + qBytes * g;
    for (let i: u32 = 0; i < padded; i++) {
      const head = (kvFirst + g) * group + i % group;
      const from = addressAt(ip, ATTENTION_Q) + (<usize>(row + i / group) * heads + head) * size * 4;
      if (isFloat) { // vectors of two queries alternate in memory
        const pair = to + <usize>(i / 2 * 2 * size) * 4 + (<usize>(i % 2) << 4);
        for (let d: usize = 0; d < <usize>size << 2; d += 16) {
          v128.store(pair + 2 * d, i < queries ? f32x4.mul(v128.load(from + d), f32x4.splat(scale)) : f32x4.splat(0));
        }
      } else if (i < queries) { // those that go together alternate; factors stand behind them
        const place = i % group % TOGETHER, first = i - place, count = together(first, group);
        const vectors = to + <usize>(first * size) * 4;
        roundQuery(
          from, size, scale, vectors + (<usize>place << 4), <usize>count << 4,
          vectors + <usize>(count * size) * 2 + (<usize>place << 2));
      }
      // a sink is a score that is seen before all others, once
      const sunk = sinks && segment == 0 && i < queries, at = numbers * g + (<usize>i << 2);
      store<f32>(highest + at, sunk ? load<f32>(sinks + (<usize>head << 2)) : LOWEST);
      store<f32>(sums + at, sunk ? 1 : 0);
    }
  }
  memory.fill(acc, 0, accBytes * groups);

  const kBytes = cacheBytes(kind, size), vBytes = cacheBytes(kind, valueSize);
  const kStride = kBytes * kvHeads, vStride = vBytes * kvHeads;
  const kBase = addressAt(ip, ATTENTION_K) + kBytes * kvFirst;
  const vBase = addressAt(ip, ATTENTION_V) + vBytes * kvFirst;

  for (let from = from0; from <= last; from += BLOCK) {
    const count = min(BLOCK, last + 1 - from), cell = cellOf(pages, from);
    const kRows = kBase + cell * kStride, vRows = vBase + cell * vStride;
    if (end == row + 1) {
      touch(kRows, kBytes * groups, kStride, count);
      touch(vRows, vBytes * groups, vStride, count);
    }
    for (let g: u32 = 0; g < groups; g++) {
      const query = q + qBytes * g, result = acc + accBytes * g;
      const k = kRows + kBytes * g, v = vRows + vBytes * g;
      if (isFloat) scores(query, padded, size, k, kStride, count, s, 1);
      else {
        for (let i: u32 = 0, n: u32 = 0; i < queries; i += n) {
          n = together(i, group);
          const vectors = query + <usize>(i * size) * 4;
          scoresBlocks(n, vectors, vectors + <usize>(n * size) * 2, size, k, kStride, count, s + <usize>i * BLOCK * 4);
        }
      }
      for (let i: u32 = 0; i < queries; i++) {
        const p = lastSeen(ip, row + i / group);
        const first = firstPosition(p, window);
        const at = numbers * g + (<usize>i << 2), line = s + <usize>i * BLOCK * 4;
        const begin = first > from ? first - from : 0;
        const stop = p < from ? 0 : min(count, p + 1 - from);
        const ended = partial ? -1 : segmentBefore(ip, p, from);
        if (ended >= 0) {
          const bytes = <usize>valueSize << 2;
          storeSegment(
            done + doneBytes * (<usize>padded * g + i) + (bytes + 16) * ended, result + bytes * i, bytes, highest + at,
            sums + at);
        }
        if (slopes) {
          const slope = load<f32>(slopes + (<usize>((kvFirst + g) * group + i % group) << 2));
          lean(line, count, slope, <f32>(<i32>from - <i32>p));
        }
        softmaxStep(line, begin, stop, count, softcap, weight, highest + at, sums + at, factors + (<usize>i << 2));
      }
      if (isFloat) {
        if (padded > queries) memory.fill(s + <usize>queries * BLOCK * 4, 0, BLOCK * 4);
        values(s, factors, padded, v, vStride, count, valueSize, result);
      } else {
        for (let i: u32 = 0, n: u32 = 0; i < queries; i += n) {
          n = together(i, group);
          valuesBlocks(
            n, s + <usize>i * BLOCK * 4, factors + (<usize>i << 2), v, vStride, count, valueSize,
            result + <usize>(i * valueSize) * 4, weights);
        }
      }
    }
  }

  for (let g: u32 = 0; g < groups; g++) {
    for (let i: u32 = 0; i < queries; i++) {
      const head = (kvFirst + g) * group + i % group, at = numbers * g + (<usize>i << 2);
      storeHead(
        ip, row + i / group, head, acc + accBytes * g + <usize>i * valueSize * 4, <usize>valueSize << 2, highest + at,
        sums + at, segment, partial, done + doneBytes * (<usize>padded * g + i));
    }
  }
}

/** How many queries of a row go together, from this one on. */
@inline function together(query: u32, group: u32): u32 {
  return min(TOGETHER, group - query % group);
}
