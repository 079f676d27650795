// Filters of a convolution in blocks of up to five, as gen/conv_tiles.ts takes them: heights differ by one at most (16
// filters are four fours), and weights of a block lie as [taps][filters].
import { MOST_FILTERS, convTiles } from "../generated/conv_tiles";
import { panelBytes } from "./conv_gather";
import { madd } from "../simd";
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "../machine/runtime";
import {
  CONV_WEIGHTS_FILTERS, CONV_WEIGHTS_GROUPS, CONV_WEIGHTS_SCRATCH, CONV_WEIGHTS_TAPS, CONV_WEIGHTS_W, CONV_WEIGHTS_Y,
} from "../generated/opcodes";

@inline export function blocksOf(filters: u32): u32 { return chunksOf(filters, MOST_FILTERS); }

/** The first filter of a block; of the one behind the last: how many there are. */
@inline export function firstOf(block: u32, filters: u32): u32 {
  const blocks = blocksOf(filters), least = filters / blocks;
  return block * least + min(block, filters - blocks * least);
}

/** The weights of all groups in blocks; y may be w. */
export function conv_weights(ip: usize): void {
  const filters = u32At(ip, CONV_WEIGHTS_FILTERS), taps = u32At(ip, CONV_WEIGHTS_TAPS), blocks = blocksOf(filters);
  const total = blocks * u32At(ip, CONV_WEIGHTS_GROUPS), row = <usize>taps << 2;
  const copy = addressAt(ip, CONV_WEIGHTS_SCRATCH) + <usize>thread * ((MOST_FILTERS * row + 63) & ~63);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const block = <u32>c % blocks, first = firstOf(block, filters), count = firstOf(block + 1, filters) - first;
    const at = <usize>(<u32>c / blocks * filters + first) * row;
    memory.copy(copy, addressAt(ip, CONV_WEIGHTS_W) + at, count * row);
    blockWeights(copy, row, taps, count, addressAt(ip, CONV_WEIGHTS_Y) + at);
  }
}

/** Interleaves the `count` filters of a block, rows `stride` bytes apart: [taps][count]. */
export function blockWeights(w: usize, stride: usize, taps: u32, count: u32, y: usize): void {
  const next = <usize>count << 2;
  let k: u32 = 0;
  for (; count >= 4 && k + 4 <= taps; k += 4, w += 16, y += 4 * next) {
    const a = v128.load(w), b = v128.load(w + stride), c = v128.load(w + 2 * stride), d = v128.load(w + 3 * stride);
    const low01 = v128.shuffle<i32>(a, b, 0, 4, 1, 5), high01 = v128.shuffle<i32>(a, b, 2, 6, 3, 7);
    const low23 = v128.shuffle<i32>(c, d, 0, 4, 1, 5), high23 = v128.shuffle<i32>(c, d, 2, 6, 3, 7);
    v128.store(y, v128.shuffle<i64>(low01, low23, 0, 2));
    v128.store(y + next, v128.shuffle<i64>(low01, low23, 1, 3));
    v128.store(y + 2 * next, v128.shuffle<i64>(high01, high23, 0, 2));
    v128.store(y + 3 * next, v128.shuffle<i64>(high01, high23, 1, 3));
    if (count == 4) continue;
    const e = v128.load(w + 4 * stride);
    v128.store32_lane(y, e, 0, 16);
    v128.store32_lane(y + next, e, 1, 16);
    v128.store32_lane(y + 2 * next, e, 2, 16);
    v128.store32_lane(y + 3 * next, e, 3, 16);
  }
  for (; k < taps; k++, w += 4) {
    for (let f: u32 = 0; f < count; f++, y += 4) store<f32>(y, load<f32>(w + f * stride));
  }
}

/** Bytes that `convBlock` needs for places that do not fill a panel. */
export const EDGE: usize = 192;

/** A block of filters at `places` places in panels, on top of `base` (0: none); rows of it and of y lie `stride` bytes apart. */
export function convBlock(
  count: u32, w: usize, taps: u32, x: usize, places: u32, bias: usize, y: usize, stride: usize, base: usize, relu: bool,
  edge: usize,
): void {
  const panels = places >> 3, rest = <usize>(places & 7) << 2, done = <usize>panels << 5;
  convTiles(count, w, taps, x, panels, bias, y, stride, base, relu);
  if (!rest) return;
  x += panels * panelBytes(taps); y += done;
  if (base) base += done;
  if (rest == 4 && count >= 4) { onePlace(count, w, taps, x, bias, y, stride, base, relu); return; }
  if (base) {
    for (let f: u32 = 0; f < count; f++) memory.copy(edge + (<usize>f << 5), base + f * stride, rest);
    base = edge;
  }
  convTiles(count, w, taps, x, 1, bias, edge, 32, base, relu);
  for (let f: u32 = 0; f < count; f++) memory.copy(y + f * stride, edge + (<usize>f << 5), rest);
}

/** Four or five filters at the first place of a panel. */
function onePlace(
  count: u32, w: usize, taps: u32, x: usize, bias: usize, y: usize, stride: usize, base: usize, relu: bool,
): void {
  const next = <usize>count << 2, isFive = count == 5, end = x + (<usize>taps << 5), pairs = x + (<usize>(taps & ~1) << 5);
  let a = f32x4.splat(0), b = a, c = a, d = a;
  for (; x < pairs; x += 64, w += 2 * next) {
    const even = v128.load32_splat(x), odd = v128.load32_splat(x, 32);
    a = madd(v128.load(w), even, a); b = madd(v128.load(w + next), odd, b);
    if (isFive) { c = madd(v128.load32_splat(w, 16), even, c); d = madd(v128.load32_splat(w, 36), odd, d); }
  }
  if (x < end) {
    const even = v128.load32_splat(x);
    a = madd(v128.load(w), even, a);
    if (isFive) c = madd(v128.load32_splat(w, 16), even, c);
  }
  // Behind the taps, which other filters read too, a panel has room.
  x = end;
  v128.store(x, f32x4.add(a, b)); v128.store(x, f32x4.add(c, d), 16);
  for (let f: u32 = 0; f < count; f++, x += 4, y += stride) {
    let sum = load<f32>(x);
    if (bias) sum += load<f32>(bias + (<usize>f << 2));
    if (base) { sum += load<f32>(base); base += stride; }
    store<f32>(y, relu ? max<f32>(sum, 0) : sum);
  }
}
