// Attention over float32 keys and values that are activations: softmax(cap(q·kᵀ·scale) + mask)·v, online
// over blocks of 128 keys (Milakov & Gimelshein 2018).
//
// A chunk of scaled_attention is 32 rows of one head. Blocks of keys and of values are packed by eight,
// and the scores and sums are tiles; up to three rows are computed row by row instead, since packing
// would cost as much. Keys that are new may stand in tensors of their own, behind the others: blocks end where
// those begin.
import { addressAt, chunksOf, f32At, i32At, min, nextSmallChunk, thread, u32At } from "../machine/runtime";
import { exp4, exponentials, tanh4 } from "../exp";
import { floatTiles } from "../generated/float_tiles";
import { packColumns, packTransposed } from "../matmul/nd";
import { madd, max4, sum4 } from "../simd";
import {
  CONTROL_STATUS, SCALED_ATTENTION_BATCH, SCALED_ATTENTION_COUNTS, SCALED_ATTENTION_FLAGS, SCALED_ATTENTION_HEADS,
  SCALED_ATTENTION_K, SCALED_ATTENTION_KEYS, SCALED_ATTENTION_KV_HEADS, SCALED_ATTENTION_MASK,
  SCALED_ATTENTION_MASK_BATCH, SCALED_ATTENTION_MASK_COLUMNS,
  SCALED_ATTENTION_MASK_HEAD, SCALED_ATTENTION_MASK_ROW, SCALED_ATTENTION_OFFSET,
  SCALED_ATTENTION_FRESH, SCALED_ATTENTION_NEW_K, SCALED_ATTENTION_NEW_V, SCALED_ATTENTION_Q, SCALED_ATTENTION_ROWS, SCALED_ATTENTION_SCALE, SCALED_ATTENTION_SCRATCH,
  SCALED_ATTENTION_SCRATCH_BYTES, SCALED_ATTENTION_SINKS, SCALED_ATTENTION_SOFTCAP, SCALED_ATTENTION_V,
  SCALED_ATTENTION_VALUE_WIDTH, SCALED_ATTENTION_WIDTH, SCALED_ATTENTION_WINDOW, SCALED_ATTENTION_Y,
} from "../generated/opcodes";

/** Bits of `flags`: how heads lie, what rows see, 64-bit counts. */
const Q_JOINED: u32 = 1;
const K_JOINED: u32 = 2;
const V_JOINED: u32 = 4;
const CAUSAL: u32 = 8;
const FROM_END: u32 = 16;
const WIDE: u32 = 32;
const NEW_K_JOINED: u32 = 64;
const NEW_V_JOINED: u32 = 128;
const BEHIND_VALID: u32 = 256;
const TRUTHS: u32 = 512;
const ONE_COLUMN: u32 = 1024;
/** Queries, keys and values side by side in rows of one tensor. */
const PACKED: u32 = 2048;
/** A row that sees nothing is NaN, not zeros. */
const SPOILT: u32 = 4096;
const ROWS: u32 = 32;
const BLOCK: u32 = 128;

export function scaled_attention(ip: usize): void {
  const heads = u32At(ip, SCALED_ATTENTION_HEADS), rows = u32At(ip, SCALED_ATTENTION_ROWS);
  const tiles = chunksOf(rows, ROWS), total = u32At(ip, SCALED_ATTENTION_BATCH) * heads * tiles;
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const first = (<u32>c % tiles) * ROWS, plane = <u32>c / tiles;
    attendTile(ip, plane / heads, plane % heads, first, min(ROWS, rows - first));
  }
}

/** Address of row 0 of a head, and in `strideOf` the bytes from row to row; `columns` is 0 for planes of heads. */
@inline function planeOf(base: usize, columns: u32, item: u32, head: u32, heads: u32, rows: u32, width: u32): usize {
  const at = columns ? <usize>item * rows * columns + head * width : (<usize>item * heads + head) * rows * width;
  return base + (at << 2);
}
@inline function strideOf(columns: u32, width: u32): usize {
  return <usize>(columns ? columns : width) << 2;
}

function attendTile(ip: usize, item: u32, head: u32, first: u32, height: u32): void {
  const heads = u32At(ip, SCALED_ATTENTION_HEADS), kvHeads = u32At(ip, SCALED_ATTENTION_KV_HEADS);
  const rows = u32At(ip, SCALED_ATTENTION_ROWS), keys = u32At(ip, SCALED_ATTENTION_KEYS);
  const width = u32At(ip, SCALED_ATTENTION_WIDTH), valueWidth = u32At(ip, SCALED_ATTENTION_VALUE_WIDTH);
  const flags = u32At(ip, SCALED_ATTENTION_FLAGS);
  const all = flags & PACKED ? (heads + 2 * kvHeads) * width : 0;
  const qColumns = all ? all : flags & Q_JOINED ? heads * width : 0, yColumns = qColumns ? heads * valueWidth : 0;
  const kColumns = all ? all : flags & K_JOINED ? kvHeads * width : 0;
  const vColumns = all ? all : flags & V_JOINED ? kvHeads * valueWidth : 0;
  const kvHead = head / (heads / kvHeads);
  const qStride = strideOf(qColumns, width), kStride = strideOf(kColumns, width);
  const vStride = strideOf(vColumns, valueWidth), yStride = strideOf(yColumns, valueWidth);
  const q = planeOf(addressAt(ip, SCALED_ATTENTION_Q), qColumns, item, head, heads, rows, width) + first * qStride;
  const k = planeOf(addressAt(ip, SCALED_ATTENTION_K), kColumns, item, kvHead, kvHeads, keys, width);
  const v = planeOf(addressAt(ip, SCALED_ATTENTION_V), vColumns, item, kvHead, kvHeads, keys, valueWidth);
  const y = planeOf(addressAt(ip, SCALED_ATTENTION_Y), yColumns, item, head, heads, rows, valueWidth) + first * yStride;
  const fresh = u32At(ip, SCALED_ATTENTION_FRESH), valid = validKeys(ip, item, keys + fresh);
  const split = firstNew(ip, valid, keys, fresh);
  const newKColumns = flags & NEW_K_JOINED ? kvHeads * width : 0, newKStride = strideOf(newKColumns, width);
  const newVColumns = flags & NEW_V_JOINED ? kvHeads * valueWidth : 0, newVStride = strideOf(newVColumns, valueWidth);
  const newK = planeOf(addressAt(ip, SCALED_ATTENTION_NEW_K), newKColumns, item, kvHead, kvHeads, fresh, width);
  const newV = planeOf(addressAt(ip, SCALED_ATTENTION_NEW_V), newVColumns, item, kvHead, kvHeads, fresh, valueWidth);
  const own = ownKey(ip, valid, rows) + <i32>first;
  // Keys that any row of the tile may see.
  const causal = (u32At(ip, SCALED_ATTENTION_FLAGS) & CAUSAL), window = i32At(ip, SCALED_ATTENTION_WINDOW);
  let end = <i32>valid;
  if (causal && own + <i32>height < end) end = own + <i32>height;
  let begin = window > 0 ? own - window + 1 : 0;
  if (begin < 0) begin = 0;
  begin &= ~127;

  const scratch = addressAt(ip, SCALED_ATTENTION_SCRATCH) + <usize>thread * u32At(ip, SCALED_ATTENTION_SCRATCH_BYTES);
  const scores = scratch, sums = scores + <usize>ROWS * BLOCK * 4;
  // Rows of the sums are padded to whole panels.
  const padded = <usize>((valueWidth + 7) & ~7), sumStride = padded << 2;
  const largest = sums + <usize>ROWS * sumStride, totals = largest + ROWS * 4, panel = totals + ROWS * 4;
  const sinks = addressAt(ip, SCALED_ATTENTION_SINKS);
  memory.fill(sums, 0, <usize>height * sumStride);
  for (let r: u32 = 0; r < height; r++) {
    store<f32>(largest + (<usize>r << 2), sinks ? load<f32>(sinks + (<usize>head << 2)) : -Infinity);
    store<f32>(totals + (<usize>r << 2), sinks ? 1 : 0);
  }
  let count: u32 = 0;
  for (let key = begin; key < end; key += count) {
    const isNew = fresh && key >= split;
    count = min(BLOCK, <u32>((!fresh || isNew || split > end ? end : split) - key));
    const keysAt = isNew ? newK + <usize>(key - split) * newKStride : k + <usize>key * kStride;
    const valuesAt = isNew ? newV + <usize>(key - split) * newVStride : v + <usize>key * vStride;
    // Rows of scores are whole panels, and no longer than that: few keys stay in the first cache.
    const stride = <usize>((count + 7) & ~7) << 2;
    scoreBlock(ip, q, qStride, height, keysAt, isNew ? newKStride : kStride, count, scores, stride, panel);
    for (let r: u32 = 0; r < height; r++) {
      const at = own + <i32>r, row = scores + <usize>r * stride;
      const m = largest + (<usize>r << 2), t = totals + (<usize>r << 2), sum = sums + <usize>r * sumStride;
      weighBlock(ip, item, head, first + r, at, key, count, valid, row, m, t, sum, valueWidth);
    }
    sumBlock(scores, stride, height, valuesAt, isNew ? newVStride : vStride, count, valueWidth, sums, sumStride, panel);
  }
  const nothing: f32 = flags & SPOILT && valid ? NaN : 0;
  for (let r: u32 = 0; r < height; r++) {
    const total = load<f32>(totals + (<usize>r << 2)), factor: f32 = total == 0 ? nothing : <f32>1 / total;
    scaleRun(sums + <usize>r * sumStride, y + <usize>r * yStride, factor, valueWidth);
  }
}

@inline function validKeys(ip: usize, item: u32, keys: u32): u32 {
  const counts = addressAt(ip, SCALED_ATTENTION_COUNTS);
  if (!counts) return keys;
  const wide = u32At(ip, SCALED_ATTENTION_FLAGS) & WIDE;
  const count = wide ? <u32>load<u64>(counts + (<usize>item << 3)) : load<u32>(counts + (<usize>item << 2));
  // Rows that are there to be appended to, and not, are an error; a mere length may be too long.
  if (count > keys && (u32At(ip, SCALED_ATTENTION_FLAGS) & BEHIND_VALID)) atomic.or<u32>(CONTROL_STATUS, 2);
  return min(count, keys);
}

/** The key that the first of the new rows is. */
@inline function firstNew(ip: usize, valid: u32, keys: u32, fresh: u32): i32 {
  if (!fresh || !(u32At(ip, SCALED_ATTENTION_FLAGS) & BEHIND_VALID)) return <i32>keys;
  return valid > fresh ? <i32>(valid - fresh) : 0;
}

/** The key that row 0 is at. */
@inline function ownKey(ip: usize, valid: u32, rows: u32): i32 {
  if (!(u32At(ip, SCALED_ATTENTION_FLAGS) & FROM_END)) return i32At(ip, SCALED_ATTENTION_OFFSET);
  return valid > rows ? <i32>(valid - rows) : 0;
}

function scoreBlock(
  ip: usize, q: usize, qStride: usize, height: u32, k: usize, kStride: usize, count: u32, scores: usize, stride: usize,
  panel: usize,
): void {
  const width = u32At(ip, SCALED_ATTENTION_WIDTH), scale = f32At(ip, SCALED_ATTENTION_SCALE);
  if (height <= 3) {
    for (let j: u32 = 0; j < count; j++, k += kStride) {
      for (let r: u32 = 0; r < height; r++) {
        store<f32>(scores + <usize>r * stride + (<usize>j << 2), dot(q + <usize>r * qStride, k, width) * scale);
      }
    }
    return;
  }
  memory.fill(scores, 0, <usize>height * stride);
  for (let j: u32 = 0; j < count; j += 8) {
    packTransposed(k + <usize>j * kStride, kStride, width, min(8, count - j), scale, panel);
    floatTiles(height, q, qStride, width, panel, scores + (<usize>j << 2), stride);
  }
}

function dot(a: usize, b: usize, count: u32): f32 {
  let s0 = f32x4.splat(0), s1 = s0;
  const end = a + (<usize>count << 2);
  for (; a + 32 <= end; a += 32, b += 32) {
    s0 = madd(v128.load(a), v128.load(b), s0);
    s1 = madd(v128.load(a, 16), v128.load(b, 16), s1);
  }
  let sum = sum4(f32x4.add(s0, s1));
  for (; a < end; a += 4, b += 4) sum += load<f32>(a) * load<f32>(b);
  return sum;
}

/** Scores of a row and block become weights relative to the largest score so far; sums so far are brought along. */
function weighBlock(
  ip: usize, item: u32, head: u32, row: u32, own: i32, key: i32, count: u32, valid: u32, scores: usize,
  largest: usize, totals: usize, sums: usize, valueWidth: u32,
): void {
  const softcap = f32At(ip, SCALED_ATTENTION_SOFTCAP), padded = (count + 3) & ~3;
  if (softcap > 0) {
    const cap = f32x4.splat(softcap), inverse = f32x4.splat(<f32>1 / softcap);
    for (let i: usize = 0; i < <usize>padded << 2; i += 16) {
      v128.store(scores + i, f32x4.mul(cap, tanh4(f32x4.mul(v128.load(scores + i), inverse))));
    }
  }
  addMask(ip, item, head, row, key, count, scores);
  // What lies outside is not seen.
  const window = i32At(ip, SCALED_ATTENTION_WINDOW);
  let end = <i32>valid - key, begin: i32 = window > 0 ? own - window + 1 - key : 0;
  if ((u32At(ip, SCALED_ATTENTION_FLAGS) & CAUSAL) && own + 1 - key < end) end = own + 1 - key;
  if (end > <i32>count) end = <i32>count;
  if (begin > end) begin = end;
  for (let j: i32 = 0; j < begin; j++) store<f32>(scores + (<usize>j << 2), -Infinity);
  for (let j: i32 = end > 0 ? end : 0; j < <i32>padded; j++) store<f32>(scores + (<usize>j << 2), -Infinity);
  let m = f32x4.splat(-Infinity);
  for (let i: usize = 0; i < <usize>padded << 2; i += 16) m = f32x4.pmax(m, v128.load(scores + i));
  const before = load<f32>(largest), highest = Mathf.max(before, max4(m));
  // Nothing seen so far: all weights are 0.
  if (highest == -Infinity) { memory.fill(scores, 0, <usize>padded << 2); return; }
  const total = exponentials(scores, scores + (<usize>padded << 2), f32x4.splat(highest), f32x4.splat(1));
  let factor: f32 = 0;
  if (before != -Infinity) factor = f32x4.extract_lane(exp4(f32x4.splat(before - highest)), 0);
  store<f32>(totals, load<f32>(totals) * factor + sum4(total));
  store<f32>(largest, highest);
  if (factor != 1) scaleRun(sums, sums, factor, valueWidth);
}

function scaleRun(from: usize, to: usize, factor: f32, count: u32): void {
  const f = f32x4.splat(factor), bytes = <usize>count << 2;
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) v128.store(to + i, f32x4.mul(v128.load(from + i), f));
  for (; i < bytes; i += 4) store<f32>(to + i, load<f32>(from + i) * factor);
}

/** Numbers to add, or truth values. Columns that a mask lacks are not seen. */
function addMask(ip: usize, item: u32, head: u32, row: u32, key: i32, count: u32, scores: usize): void {
  const mask = addressAt(ip, SCALED_ATTENTION_MASK), flags = u32At(ip, SCALED_ATTENTION_FLAGS);
  if (!mask) return;
  const columns = u32At(ip, SCALED_ATTENTION_MASK_COLUMNS), step: u32 = flags & ONE_COLUMN ? 0 : 1;
  const isAdded = !(flags & TRUTHS);
  const at = <usize>item * u32At(ip, SCALED_ATTENTION_MASK_BATCH) + <usize>head * u32At(ip, SCALED_ATTENTION_MASK_HEAD) +
    <usize>row * u32At(ip, SCALED_ATTENTION_MASK_ROW);
  let start: u32 = 0;
  if (isAdded && step == 1 && <u32>key + count <= columns) {
    const from = mask + ((at + <usize>key) << 2), none = f32x4.splat(-Infinity);
    for (; start + 4 <= count; start += 4) {
      const target = scores + (<usize>start << 2), added = v128.load(from + (<usize>start << 2));
      // A product may be NaN where it does not count.
      v128.store(target, v128.bitselect(added, f32x4.add(v128.load(target), added), f32x4.eq(added, none)));
    }
  }
  for (let j = start; j < count; j++) {
    const column = <u32>key + j, target = scores + (<usize>j << 2), place = at + <usize>(column * step);
    if (step && column >= columns) store<f32>(target, -Infinity);
    else if (isAdded) {
      const added = load<f32>(mask + (place << 2));
      store<f32>(target, added == -Infinity ? added : load<f32>(target) + added);
    } else if (!load<u8>(mask + place)) store<f32>(target, -Infinity);
  }
}

function sumBlock(
  weights: usize, stride: usize, height: u32, v: usize, vStride: usize, count: u32, width: u32, sums: usize, sumStride: usize,
  panel: usize,
): void {
  if (height <= 3) {
    for (let j: u32 = 0; j < count; j++, v += vStride) {
      for (let r: u32 = 0; r < height; r++) {
        const weight = load<f32>(weights + <usize>r * stride + (<usize>j << 2));
        if (weight != 0) addScaled(sums + <usize>r * sumStride, v, weight, width);
      }
    }
    return;
  }
  for (let i: u32 = 0; i < width; i += 8) {
    packColumns(v + (<usize>i << 2), vStride, count, min(8, width - i), 1, panel);
    floatTiles(height, weights, stride, count, panel, sums + (<usize>i << 2), sumStride);
  }
}

function addScaled(out: usize, x: usize, factor: f32, count: u32): void {
  const f = f32x4.splat(factor), bytes = <usize>count << 2;
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) v128.store(out + i, madd(v128.load(x + i), f, v128.load(out + i)));
  for (; i < bytes; i += 4) store<f32>(out + i, load<f32>(out + i) + load<f32>(x + i) * factor);
}
