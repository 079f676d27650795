// Attention over a cache of float16: see attention.ts. Up to four queries of a KV head go together through all that
// a run of positions takes; their K and V are read where they lie. Where V8 joins vectors (machine/joining.ts), the
// inner loops are others, with the same bits.
import { joins } from "../machine/joining";
import { addressAt, chunksOf, f32At, min, thread, u32At } from "../machine/runtime";
import {
  BLOCK, cellOf, firstPosition, high, lastSeen, lean, low, LOWEST, NOTHING, see, segmentBefore, softmaxStep, storeHead, storeSegment, touch,
  TWO_100, TWO_112,
} from "./parts";
import { RUN, scoresHalf, valuesHalf } from "../generated/attention_half";
import { orderPlanes, scoresJoined, valuesJoined } from "../generated/attention_joined";
import {
  ATTENTION_HEAD_SIZE, ATTENTION_HEADS, ATTENTION_K, ATTENTION_KV_HEADS, ATTENTION_Q,
  ATTENTION_SCALE, ATTENTION_SCRATCH, ATTENTION_SCRATCH_BYTES, ATTENTION_SEGMENTS, ATTENTION_SINKS, ATTENTION_SLOPES, ATTENTION_SOFTCAP,
  ATTENTION_V, ATTENTION_VALUE_SIZE, ATTENTION_WINDOW,
} from "../generated/opcodes";

/** Most queries that go together. */
const MOST: u32 = 4;
/** Bytes of the scores of a query. */
const LINE: usize = <usize>RUN << 2;

/** Whether results lie in planes while they are summed. */
@inline function joinsValues(size: u32): bool { return joins() && !(size & 7); }

/** Adds values of positions [from, end) of a run; of each block there are factors. */
function addValues(
  queries: u32, s: usize, factors: usize, v: usize, step: usize, from: u32, end: u32, size: u32, acc: usize,
): void {
  if (joinsValues(size)) {
    valuesJoined(
      queries, s + (<usize>from << 2), factors + (<usize>(from / BLOCK) << 4), v + from * step, step, end - from, size, acc);
    return;
  }
  for (; from < end; from += BLOCK) {
    valuesHalf(
      queries, s + (<usize>from << 2), factors + (<usize>(from / BLOCK) << 4), v + from * step, step, min(BLOCK, end - from),
      size, acc);
  }
}

/** Rows [row, end) of one slot, KV heads [kvFirst, kvEnd), one segment (or, unless partial, all they see). */
export function attendHalf(
  ip: usize, row: u32, end: u32, kvFirst: u32, kvEnd: u32, segment: u32, partial: bool,
): void {
  const heads = u32At(ip, ATTENTION_HEADS), kvHeads = u32At(ip, ATTENTION_KV_HEADS);
  const size = u32At(ip, ATTENTION_HEAD_SIZE), valueSize = u32At(ip, ATTENTION_VALUE_SIZE);
  const window = u32At(ip, ATTENTION_WINDOW), softcap = f32At(ip, ATTENTION_SOFTCAP);
  const group = heads / kvHeads, queries = (end - row) * group, groups = kvEnd - kvFirst, total = groups * queries;
  const together = chunksOf(queries, chunksOf(queries, MOST)); // 6 are 3 and 3
  const pages = see(ip, row, end, segment, partial), from0 = low, last = high;

  // of the queries at work: scores, sums of their first channels, factors; of all: themselves, results, maxima, sums,
  // segments that are done
  const s = addressAt(ip, ATTENTION_SCRATCH) + <usize>thread * u32At(ip, ATTENTION_SCRATCH_BYTES);
  const unfinished = s + MOST * LINE, factors = unfinished + MOST * LINE * 4;
  const qBytes = <usize>size << 2, accBytes = <usize>valueSize << 2;
  const q = factors + (RUN / BLOCK << 4), acc = q + total * qBytes;
  const highest = acc + total * accBytes, sums = highest + (<usize>total << 2);
  const segments = u32At(ip, ATTENTION_SEGMENTS), done = sums + (<usize>total << 2);

  const scale = f32x4.splat(f32At(ip, ATTENTION_SCALE) * TWO_100);
  const sinks = addressAt(ip, ATTENTION_SINKS), slopes = addressAt(ip, ATTENTION_SLOPES);
  for (let t: u32 = 0; t < total; t++) {
    const i = t % queries, lane = i % together, alternating = min(together, queries - i + lane);
    const head = (kvFirst + t / queries) * group + i % group;
    const to = q + (t - lane) * qBytes + (<usize>lane << 4);
    const from = addressAt(ip, ATTENTION_Q) + (<usize>(row + i / group) * heads + head) * qBytes;
    for (let d: usize = 0; d < qBytes; d += 16) {
      v128.store(to + d * alternating, f32x4.mul(v128.load(from + d), scale));
    }
    // a sink is a score that is seen before all others, once
    const sunk = sinks && segment == 0;
    store<f32>(highest + (<usize>t << 2), sunk ? load<f32>(sinks + (<usize>head << 2)) : LOWEST);
    store<f32>(sums + (<usize>t << 2), sunk ? 1 : 0);
  }
  memory.fill(acc, 0, total * accBytes);

  const kBytes = <usize>size << 1, vBytes = <usize>valueSize << 1;
  const kStride = kBytes * kvHeads, vStride = vBytes * kvHeads;
  const kBase = addressAt(ip, ATTENTION_K) + kBytes * kvFirst;
  const vBase = addressAt(ip, ATTENTION_V) + vBytes * kvFirst;

  for (let from = from0, next = from; from <= last; from = next) {
    next = from - from % RUN + RUN; // the end of a page
    const count = min(next, last + 1) - from, cell = cellOf(pages, from);
    const kRows = kBase + cell * kStride, vRows = vBase + cell * vStride;
    if (end == row + 1) {
      touch(kRows, kBytes * groups, kStride, count);
      touch(vRows, vBytes * groups, vStride, count);
    }
    for (let t: u32 = 0; t < total;) {
      const g = t / queries, first = t % queries, n = min(together, queries - first);
      if (joins() && !(size & 63)) scoresJoined(n, q + t * qBytes, size, kRows + g * kBytes, kStride, count, s, unfinished);
      else scoresHalf(n, q + t * qBytes, size, kRows + g * kBytes, kStride, count, s, unfinished);
      const sum = acc + t * accBytes, values = vRows + g * vBytes;
      let waiting: u32 = 0; // blocks from here on, whose values are added together up to the end of a segment
      for (let at: u32 = 0; at < count; at += BLOCK) {
        const here = from + at, some = min(BLOCK, count - at), f = factors + (<usize>(at / BLOCK) << 4);
        let seen = NOTHING, ended = -1;
        for (let i: u32 = 0; i < n; i++) {
          const p = lastSeen(ip, row + (first + i) / group);
          const start = firstPosition(p, window);
          const begin = start > here ? start - here : 0;
          const stop = p < here ? 0 : min(some, p + 1 - here);
          const line = s + i * LINE + (<usize>at << 2), index = <usize>(t + i) << 2;
          if (p != seen && !partial) ended = segmentBefore(ip, p, here);
          seen = p;
          if (ended >= 0) {
            const own = sum + i * accBytes;
            if (waiting < at) addValues(n, s, factors, values, vStride, waiting, at, valueSize, sum);
            waiting = at;
            if (joinsValues(valueSize)) orderPlanes(own, accBytes);
            storeSegment(
              done + (<usize>(t + i) * segments + ended) * (accBytes + 16), own, accBytes, highest + index, sums + index);
          }
          if (slopes) {
            const slope = load<f32>(slopes + (<usize>((kvFirst + g) * group + (first + i) % group) << 2));
            lean(line, some, slope, <f32>(<i32>here - <i32>p));
          }
          softmaxStep(line, begin, stop, some, softcap, TWO_112, highest + index, sums + index, f + (<usize>i << 2));
        }
      }
      addValues(n, s, factors, values, vStride, waiting, count, valueSize, sum);
      t += n;
    }
  }

  for (let t: u32 = 0; t < total; t++) {
    const i = t % queries, head = (kvFirst + t / queries) * group + i % group;
    if (joinsValues(valueSize)) orderPlanes(acc + t * accBytes, accBytes);
    storeHead(
      ip, row + i / group, head, acc + t * accBytes, accBytes, highest + (<usize>t << 2), sums + (<usize>t << 2), segment,
      partial, done + <usize>t * segments * (accBytes + 16));
  }
}
