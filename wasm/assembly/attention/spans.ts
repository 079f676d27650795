// Attention over a span of rows: of this step (encoders) or of a slot's cache (an encoder's output), with an
// optional table of summands by distance. The loop is attention.ts's, whose parts do the work; what differs:
//
// 1. A row sees [start, end) instead of everything up to its position, so no row is cut into segments:
//    an encoder has many rows, and what a decoder sees of its source is short.
// 2. Rows of a tile go together as far as they read the same memory: the same slot, or the same sequence.
// 3. Head sizes that are no multiple of 4 are copied into padded blocks; padding columns of q are 0.
import { addressAt, chunksOf, f32At, min, nextChunk, thread, u32At } from "../machine/runtime";
import { cellOf, scores, softmaxStep, values } from "./parts";
import { cacheBytes, pagesOf, widenBlocks } from "./cache_blocks";
import { halfMask, movedHalf4 } from "../half";
import {
  SPAN_ATTENTION_BIAS, SPAN_ATTENTION_ENDS, SPAN_ATTENTION_CACHE, SPAN_ATTENTION_HEAD_SIZE, SPAN_ATTENTION_HEADS,
  SPAN_ATTENTION_K, SPAN_ATTENTION_KV_HEADS, SPAN_ATTENTION_LIMIT, SPAN_ATTENTION_PAGE_TABLE,
  SPAN_ATTENTION_POSITIONS, SPAN_ATTENTION_Q,
  SPAN_ATTENTION_REACH, SPAN_ATTENTION_ROWS, SPAN_ATTENTION_SCALE, SPAN_ATTENTION_SCRATCH,
  SPAN_ATTENTION_SCRATCH_BYTES, SPAN_ATTENTION_SLOT_COUNT, SPAN_ATTENTION_SLOTS,
  SPAN_ATTENTION_STARTS, SPAN_ATTENTION_TILE, SPAN_ATTENTION_V, SPAN_ATTENTION_VALUE_SIZE, SPAN_ATTENTION_Y,
} from "../generated/opcodes";

const BLOCK: u32 = 32;
const LOWEST: f32 = -3.0e38;
// See attention.ts, 5.
const TWO_12: f32 = 4096;
const TWO_100: f32 = 1.2676506002282294e30;
const TWO_112: f32 = 5.192296858534828e33;

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
  const width = (size + 3) & ~3, valueWidth = (valueSize + 3) & ~3;
  const kind = u32At(ip, SPAN_ATTENTION_CACHE), isFloat = kind == 0;
  const group = heads / kvHeads, queries = (end - row) * group, padded = (queries + 1) & ~1;

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
  const acc = s + <usize>padded * BLOCK * 4;
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
    const to = q + <usize>(i / 2 * 2 * width) * 4 + (<usize>(i % 2) << 4);
    const r = row + i / group, head = kvHead * group + i % group;
    const from = addressAt(ip, SPAN_ATTENTION_Q) + (<usize>r * heads + head) * size * 4;
    let d: u32 = 0;
    for (; d + 4 <= size; d += 4) {
      v128.store(to + (<usize>d << 3), f32x4.mul(v128.load(from + (<usize>d << 2)), f32x4.splat(scale)));
    }
    for (let rest: u32 = d; rest < size; rest++) {
      store<f32>(to + (<usize>d << 3) + (<usize>(rest - d) << 2), load<f32>(from + (<usize>rest << 2)) * scale);
    }
  }

  const pages = addressAt(ip, SPAN_ATTENTION_PAGE_TABLE) + ((<usize>slot * pagesOf(u32At(ip, SPAN_ATTENTION_LIMIT))) << 2);
  const kBytes = cacheBytes(kind, size), vBytes = cacheBytes(kind, valueSize);
  const kStride = kBytes * kvHeads, vStride = vBytes * kvHeads;
  const kBase = addressAt(ip, SPAN_ATTENTION_K) + kBytes * kvHead;
  const vBase = addressAt(ip, SPAN_ATTENTION_V) + vBytes * kvHead;

  for (let from = low; from < high; from += BLOCK) {
    const count = min(BLOCK, high - from);
    const cell = slots ? cellOf(pages, from) : from;
    let k = kBase + cell * kStride, v = vBase + cell * vStride;
    let kStep = kStride, vStep = vStride;
    if (!isFloat || width != size) {
      gather(k, kStride, kBlock, count, size, kind);
      k = kBlock; kStep = <usize>width << 2;
    }
    if (!isFloat || valueWidth != valueSize) {
      gather(v, vStride, vBlock, count, valueSize, kind);
      v = vBlock; vStep = <usize>valueWidth << 2;
    }
    scores(q, padded, width, k, kStep, count, s, isFloat ? 1 : TWO_12);
    for (let i: u32 = 0; i < queries; i++) {
      const r = row + i / group, first = startOf(ip, r), last = endOf(ip, r);
      const line = s + <usize>i * BLOCK * 4, index = <usize>i << 2;
      addBias(ip, line, r, kvHead * group + i % group, from - first, count);
      const begin = first > from ? first - from : 0;
      const stop = last < from ? 0 : min(count, last - from);
      softmaxStep(line, begin, stop, count, 0, isFloat ? 1 : TWO_112, highest + index, sums + index, factors + index);
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
