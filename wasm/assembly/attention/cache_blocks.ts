// Keys and values in blocks of Q8_0 (quant/formats/q8_0.ts): 32 channels are a float16 scale and 32 codes, 34 bytes.
//
//   store:   scale = max |x| / 127, code = x / scale to nearest, halves away from zero: bytes as quant/ writes
//   widen:   code · scale as float32, times 2^-112 like a float16 that was moved (attention.ts, 5)
//   queries: to 16 bit with one scale a head, so that q · k is a product of integers, exact but for that
//            rounding (2^-16 of the largest channel); a NaN or an infinity in q stays one in every score
import { halfMask, toHalf4 } from "../half";

const BLOCK_BYTES: usize = 34;
/** Rows of a page of any cache: PAGE_ROWS of engine/run/pages/groups.ts. */
export const PAGE: u32 = 64;

/** Pages of a slot in a table. */
@inline export function pagesOf(capacity: u32): u32 { return (capacity + PAGE - 1) / PAGE; }
/** Scales from here on are infinite as float16. */
const TOO_LARGE: f32 = 65520;
const TWO_112: f32 = 5.192296858534828e33;

/** Bytes of channels by the number of the cache's type (CACHE_KINDS). */
@inline export function cacheBytes(kind: u32, channels: usize): usize {
  return kind == 2 ? (channels >> 5) * BLOCK_BYTES : channels << (2 - kind);
}

/** The scale of a block in all lanes, times 2^-112. */
@inline export function movedScale(block: usize, mask: v128): v128 {
  return v128.and(i32x4.shl(i32x4.splat(load<i16>(block)), 13), mask);
}

@inline function away(x: v128): v128 {
  const whole = f32x4.trunc(x), rest = f32x4.sub(x, whole);
  return i32x4.trunc_sat_f32x4_s(f32x4.add(whole, f32x4.trunc(f32x4.add(rest, rest))));
}

@inline function largest8(x: usize): v128 {
  let top = f32x4.abs(v128.load(x));
  for (let d: usize = 16; d < 128; d += 16) top = f32x4.max(top, f32x4.abs(v128.load(x + d)));
  return top;
}

/** Largest lane; NaN if one is. */
@inline function across(top: v128): f32 {
  const pairs = f32x4.max(top, i8x16.shuffle(top, top, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  const all = f32x4.max(pairs, i8x16.shuffle(pairs, pairs, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  return f32x4.extract_lane(all, 0);
}

/** Writes `channels` floats as blocks; false if a scale is not finite as float16. */
export function storeBlocks(x: usize, to: usize, channels: usize): bool {
  let fits = true;
  for (const end = x + (channels << 2); x < end; x += 128, to += BLOCK_BYTES) {
    const scale = across(largest8(x)) / 127;
    if (!(scale < TOO_LARGE)) fits = false;
    store<u16>(to, <u16>i32x4.extract_lane(toHalf4(f32x4.splat(scale)), 0));
    const inverse = f32x4.splat(scale == 0 ? 0 : 1 / scale);
    for (let d: usize = 0; d < 32; d += 16) {
      const from = x + (d << 2);
      const low = i16x8.narrow_i32x4_s(
        away(f32x4.mul(v128.load(from), inverse)), away(f32x4.mul(v128.load(from, 16), inverse)));
      const high = i16x8.narrow_i32x4_s(
        away(f32x4.mul(v128.load(from, 32), inverse)), away(f32x4.mul(v128.load(from, 48), inverse)));
      v128.store(to + d, i8x16.narrow_i16x8_s(low, high), 2);
    }
  }
  return fits;
}

/** `count` rows of `channels` as float32, times 2^-112, one behind the other. */
export function widenBlocks(from: usize, stride: usize, to: usize, count: u32, channels: usize): void {
  const mask = halfMask();
  for (let j: u32 = 0; j < count; j++, from += stride) {
    let block = from;
    for (const end = to + (channels << 2); to < end; block += BLOCK_BYTES) {
      const scale = movedScale(block, mask);
      for (let d: usize = 0; d < 32; d += 8, to += 32) {
        const codes = v128.load8x8_s(block + d, 2);
        v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(codes)), scale));
        v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(codes)), scale), 16);
      }
    }
  }
}

/** Writes one query in 16 bit, every `step` bytes a vector, and stores what makes scores of its products. */
export function roundQuery(from: usize, channels: usize, scale: f32, to: usize, step: usize, factor: usize): void {
  let top = f32x4.splat(0);
  for (let d: usize = 0; d < channels << 2; d += 128) top = f32x4.max(top, largest8(from + d));
  const largest = across(top);
  const inverse = f32x4.splat(largest == 0 ? 0 : 32767 / largest);
  for (let d: usize = 0; d < channels << 2; d += 32, to += step) {
    v128.store(to, i16x8.narrow_i32x4_s(
      i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(from + d), inverse))),
      i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(from + d, 16), inverse))),
    ));
  }
  store<f32>(factor, largest / 32767 * scale * TWO_112);
}
