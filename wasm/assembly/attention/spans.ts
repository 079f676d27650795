// Attention over a span of rows: of this step (encoders) or of a slot's cache (an encoder's output), with an
// optional table of summands by distance. The loop is attention.ts's, whose parts do the work; what differs:
//
// 1. A row sees [start, end) instead of everything up to its position, so no row is cut into segments:
//    an encoder has many rows, and what a decoder sees of its source is short.
// 2. Rows of a tile go together as far as they read the same memory: the same slot, or the same sequence.
// 3. Of float32 rows of the step, scores and sums are tiles of packed panels, as those of scaled.ts, over blocks of 128
//    keys: 1.3 times as fast for 1,500 rows on a Zen 3, and few rows are no slower.
// 4. Of caches, head sizes that are no multiple of 4 are copied into padded blocks; padding columns of q are 0.
import { addressAt, chunksOf, f32At, min, nextChunk, thread, u32At } from "../machine/runtime";
import { BLOCK, cellOf, LOWEST, scores, softmaxStep, TWO_100, TWO_112, TWO_12, values } from "./parts";
import { cacheBytes, pagesOf, widenBlocks } from "./cache_blocks";
import { floatTiles } from "../generated/float_tiles";
import { halfMask, movedHalf4 } from "../half";
import { packColumns, packTransposed } from "../matmul/nd";
import {
  SPAN_ATTENTION_BIAS, SPAN_ATTENTION_ENDS, SPAN_ATTENTION_CACHE, SPAN_ATTENTION_HEAD_SIZE, SPAN_ATTENTION_HEADS,
  SPAN_ATTENTION_K, SPAN_ATTENTION_KV_HEADS, SPAN_ATTENTION_LIMIT, SPAN_ATTENTION_PAGE_TABLE,
  SPAN_ATTENTION_POSITIONS, SPAN_ATTENTION_Q,
  SPAN_ATTENTION_REACH, SPAN_ATTENTION_ROWS, SPAN_ATTENTION_SCALE, SPAN_ATTENTION_SCRATCH,
  SPAN_ATTENTION_SCRATCH_BYTES, SPAN_ATTENTION_SLOT_COUNT, SPAN_ATTENTION_SLOTS,
  SPAN_ATTENTION_STARTS, SPAN_ATTENTION_TILE, SPAN_ATTENTION_V, SPAN_ATTENTION_VALUE_SIZE, SPAN_ATTENTION_Y,
} from "../generated/opcodes";

/** Keys of a block of packed panels. */
const PACKED: u32 = 128;
/** Fewer queries are not worth packing keys for. */
const LEAST_PACKED: u32 = 4;

/** Entry of an optional list of numbers. */
@inline function at(list: usize, row: u32): u32 {
  return list ? load<u32>(list + (<usize>row << 2)) : 0;
}

@inline function startOf(ip: usize, row: u32): u32 { return at(addressAt(ip, SPAN_ATTENTION_STARTS), row); }
@inline function endOf(ip: usize, row: u32): u32 {
  const ends = addressAt(ip, SPAN_ATTENTION_ENDS);
  return ends ? at(ends, row) : at(addressAt(ip, SPAN_ATTENTION_POSITIONS), row) + 1;
}

export function span_attention(ip: usize): void {
  const rows = u32At(ip, SPAN_ATTENTION_ROWS), kvHeads = u32At(ip, SPAN_ATTENTION_KV_HEADS);
  const tile = u32At(ip, SPAN_ATTENTION_TILE), slots = addressAt(ip, SPAN_ATTENTION_SLOTS);
  const source = slots ? slots : addressAt(ip, SPAN_ATTENTION_STARTS);
  const total = chunksOf(rows, tile) * kvHeads;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    let row = <u32>c / kvHeads * tile;
    const end = min(rows, row + tile);
    while (row < end) {
      let next = row + 1;
      while (next < end && at(source, next) == at(source, row)) next++;
      attend(ip, row, next, <u32>c % kvHeads);
      row = next;
    }
  }
}

/** Rows [row, end) that read the same memory, one KV head. */
function attend(ip: usize, row: u32, end: u32, kvHead: u32): void {
  const heads = u32At(ip, SPAN_ATTENTION_HEADS), kvHeads = u32At(ip, SPAN_ATTENTION_KV_HEADS);
  const size = u32At(ip, SPAN_ATTENTION_HEAD_SIZE), valueSize = u32At(ip, SPAN_ATTENTION_VALUE_SIZE);
  const width = (size + 3) & ~3;
  const kind = u32At(ip, SPAN_ATTENTION_CACHE), isFloat = kind == 0;
  const group = heads / kvHeads, queries = (end - row) * group, padded = (queries + 1) & ~1;
  const isPacked = isFloat && !addressAt(ip, SPAN_ATTENTION_SLOTS) && queries >= LEAST_PACKED;
  const block = isPacked ? PACKED : BLOCK, valueWidth = isPacked ? (valueSize + 7) & ~7 : (valueSize + 3) & ~3;

  let low: u32 = u32.MAX_VALUE, high: u32 = 0;
  for (let r = row; r < end; r++) {
    const first = startOf(ip, r), last = endOf(ip, r);
    if (first < low) low = first;
    if (last > high) high = last;
  }
  const slots = addressAt(ip, SPAN_ATTENTION_SLOTS);
  const slot = at(slots, row);
  if (slots) low &= ~(BLOCK - 1); // blocks lie within a page
  if (high > u32At(ip, SPAN_ATTENTION_LIMIT) || (slots && slot >= u32At(ip, SPAN_ATTENTION_SLOT_COUNT))) {
    unreachable();
  }

  const q = addressAt(ip, SPAN_ATTENTION_SCRATCH) + <usize>thread * u32At(ip, SPAN_ATTENTION_SCRATCH_BYTES);
  const s = q + <usize>padded * width * 4;
  const acc = s + <usize>padded * block * 4;
  const highest = acc + <usize>padded * valueWidth * 4;
  const sums = highest + <usize>padded * 4;
  const factors = sums + <usize>padded * 4;
  const kBlock = (factors + <usize>padded * 4 + 15) & ~15;
  const vBlock = kBlock + <usize>BLOCK * width * 4;

  const scale = f32At(ip, SPAN_ATTENTION_SCALE) * (isFloat ? 1 : TWO_100);
  memory.fill(q, 0, acc - q + <usize>padded * valueWidth * 4);
  for (let i: u32 = 0; i < padded; i++) {
    store<f32>(highest + (<usize>i << 2), LOWEST);
    store<f32>(sums + (<usize>i << 2), 0);
    store<f32>(factors + (<usize>i << 2), 1);
    if (i >= queries) break;
    // vectors of two queries alternate, as scores() reads them
    const to = isPacked ? q + <usize>(i * width) * 4 : q + <usize>(i / 2 * 2 * width) * 4 + (<usize>(i % 2) << 4);
    const apart: u32 = isPacked ? 2 : 3;
    const r = row + i / group, head = kvHead * group + i % group;
    const from = addressAt(ip, SPAN_ATTENTION_Q) + (<usize>r * heads + head) * size * 4;
    let d: u32 = 0;
    for (; d + 4 <= size; d += 4) {
      v128.store(to + (<usize>d << apart), f32x4.mul(v128.load(from + (<usize>d << 2)), f32x4.splat(scale)));
    }
    for (let rest: u32 = d; rest < size; rest++) {
      store<f32>(to + (<usize>d << apart) + (<usize>(rest - d) << 2), load<f32>(from + (<usize>rest << 2)) * scale);
    }
  }

  const pages = addressAt(ip, SPAN_ATTENTION_PAGE_TABLE) + ((<usize>slot * pagesOf(u32At(ip, SPAN_ATTENTION_LIMIT))) << 2);
  const kBytes = cacheBytes(kind, size), vBytes = cacheBytes(kind, valueSize);
  const kStride = kBytes * kvHeads, vStride = vBytes * kvHeads;
  const kBase = addressAt(ip, SPAN_ATTENTION_K) + kBytes * kvHead;
  const vBase = addressAt(ip, SPAN_ATTENTION_V) + vBytes * kvHead;

  for (let from = low; from < high; from += block) {
    const count = min(block, high - from);
    const cell = slots ? cellOf(pages, from) : from;
    let k = kBase + cell * kStride, v = vBase + cell * vStride;
    let kStep = kStride, vStep = vStride;
    if (!isPacked && (!isFloat || width != size)) {
      gather(k, kStride, kBlock, count, size, kind);
      k = kBlock; kStep = <usize>width << 2;
    }
    if (!isPacked && (!isFloat || valueWidth != valueSize)) {
      gather(v, vStride, vBlock, count, valueSize, kind);
      v = vBlock; vStep = <usize>valueWidth << 2;
    }
    if (isPacked) packedScores(q, queries, size, k, kStep, count, s, kBlock);
    else scores(q, padded, width, k, kStep, count, s, isFloat ? 1 : TWO_12);
    for (let i: u32 = 0; i < queries; i++) {
      const r = row + i / group, first = startOf(ip, r), last = endOf(ip, r);
      const line = s + <usize>i * block * 4, index = <usize>i << 2;
      addBias(ip, line, r, kvHead * group + i % group, from - first, count);
      const begin = first > from ? first - from : 0;
      const stop = last < from ? 0 : min(count, last - from);
      softmaxStep(line, begin, stop, count, 0, isFloat ? 1 : TWO_112, highest + index, sums + index, factors + index);
    }
    if (isPacked) {
      packedValues(s, factors, queries, v, vStep, count, valueSize, acc, kBlock);
      continue;
    }
    if (padded > queries) memory.fill(s + <usize>queries * BLOCK * 4, 0, BLOCK * 4);
    values(s, factors, padded, v, vStep, count, valueWidth, acc);
  }

  for (let i: u32 = 0; i < queries; i++) {
    const r = row + i / group, head = kvHead * group + i % group;
    const from = acc + <usize>i * valueWidth * 4, sum = load<f32>(sums + (<usize>i << 2));
    const to = addressAt(ip, SPAN_ATTENTION_Y) + (<usize>r * heads + head) * valueSize * 4;
    const factor: f32 = sum > 0 ? (<f32>1) / sum : 0;
    let d: u32 = 0;
    for (; d + 4 <= valueSize; d += 4) {
      v128.store(to + (<usize>d << 2), f32x4.mul(v128.load(from + (<usize>d << 2)), f32x4.splat(factor)));
    }
    for (; d < valueSize; d++) store<f32>(to + (<usize>d << 2), load<f32>(from + (<usize>d << 2)) * factor);
  }
}

/** `scores` by panels of eight keys. */
function packedScores(
  q: usize, queries: u32, size: u32, k: usize, step: usize, count: u32, s: usize, panel: usize,
): void {
  const stride = <usize>((size + 3) & ~3) << 2;
  memory.fill(s, 0, <usize>queries * PACKED * 4);
  for (let j: u32 = 0; j < count; j += 8) {
    packTransposed(k + <usize>j * step, step, size, min(8, count - j), 1, panel);
    floatTiles(queries, q, stride, size, panel, s + (<usize>j << 2), PACKED * 4);
  }
}

/** `values` by panels of eight channels. */
function packedValues(
  s: usize, factors: usize, queries: u32, v: usize, step: usize, count: u32, size: u32, acc: usize, panel: usize,
): void {
  const stride = <usize>((size + 7) & ~7) << 2;
  for (let i: u32 = 0; i < queries; i++) {
    const factor = load<f32>(factors + (<usize>i << 2));
    if (factor == 1) continue;
    const first = acc + i * stride;
    for (let at = first; at < first + stride; at += 16) {
      v128.store(at, f32x4.mul(v128.load(at), f32x4.splat(factor)));
    }
  }
  for (let d: u32 = 0; d < size; d += 8) {
    packColumns(v + (<usize>d << 2), step, count, min(8, size - d), 1, panel);
    floatTiles(queries, s, PACKED * 4, count, panel, acc + (<usize>d << 2), stride);
  }
}

/** Scores of a block whose first key is `offset` behind the start of the row's span (or before it). */
function addBias(ip: usize, line: usize, row: u32, head: u32, offset: i32, count: u32): void {
  const bias = addressAt(ip, SPAN_ATTENTION_BIAS);
  if (!bias) return;
  const reach = <i32>u32At(ip, SPAN_ATTENTION_REACH);
  const middle = bias + (<usize>head * (2 * reach + 1) + reach) * 4;
  let distance = offset - <i32>at(addressAt(ip, SPAN_ATTENTION_POSITIONS), row);
  for (let j: u32 = 0; j < count; j++, distance++) {
    const near = distance < -reach ? -reach : distance > reach ? reach : distance;
    const to = line + (<usize>j << 2);
    store<f32>(to, load<f32>(to) + load<f32>(middle + (<isize>near << 2)));
  }
}

/** Rows into a block of float32 (less than 32 bit: times 2^-112) whose width is a multiple of 4. */
function gather(from: usize, stride: usize, to: usize, count: u32, size: u32, kind: u32): void {
  if (kind == 2) {
    widenBlocks(from, stride, to, count, size);
    return;
  }
  const mask = halfMask();
  const width = (size + 3) & ~3;
  for (let j: u32 = 0; j < count; j++, from += stride, to += <usize>width << 2) {
    if (kind == 1) { // what is read behind the row meets zeros of q, and is finite
      for (let d: u32 = 0; d < width; d += 4) {
        v128.store(to + (<usize>d << 2), movedHalf4(from + (<usize>d << 1), mask));
      }
    } else {
      memory.copy(to, from, <usize>size << 2);
      for (let d = size; d < width; d++) store<f32>(to + (<usize>d << 2), 0);
    }
  }
}
