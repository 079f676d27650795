// Four rows that fill half of a tile (pack.ts), as vectors: a vector of 16 bytes of each of four rows becomes four
// vectors with a word of each row: 1.3 to 5 times as fast as row by row (bench/results/kernels.md). `row` is the first, 0
// or 4.
// Every function returns the number of half-float scales that are not finite.

import {
  LAYOUT_F32, LAYOUT_Q4_0, LAYOUT_Q4_1, LAYOUT_Q4_K, LAYOUT_Q5_0, LAYOUT_Q5_1, LAYOUT_Q5_K, LAYOUT_Q6_K, LAYOUT_Q8_0,
  cellBytes,
} from "../generated/layouts";

/** Whether `packFour` knows the layout. */
export function packsFour(layout: u32): bool {
  switch (layout) {
    case LAYOUT_F32: case LAYOUT_Q4_0: case LAYOUT_Q4_1: case LAYOUT_Q5_0: case LAYOUT_Q5_1: case LAYOUT_Q8_0:
    case LAYOUT_Q4_K: case LAYOUT_Q5_K: case LAYOUT_Q6_K: return true;
  }
  return false;
}

/** Packs them. */
export function packFour(layout: u32, source: usize, rowBytes: usize, columns: u32, row: u32, target: usize): u32 {
  const blocks = columns >> 5, supers = columns >> 8, bytes = cellBytes(layout);
  switch (layout) {
    case LAYOUT_F32: return packWordsFour(source, rowBytes, columns, target + 4 * row);
    case LAYOUT_Q4_0: return packPlainFour(source, rowBytes, blocks, row, target, 1, false, 4, bytes);
    case LAYOUT_Q4_1: return packPlainFour(source, rowBytes, blocks, row, target, 2, false, 4, bytes);
    case LAYOUT_Q5_0: return packPlainFour(source, rowBytes, blocks, row, target, 1, true, 4, bytes);
    case LAYOUT_Q5_1: return packPlainFour(source, rowBytes, blocks, row, target, 2, true, 4, bytes);
    case LAYOUT_Q8_0: return packPlainFour(source, rowBytes, blocks, row, target, 1, false, 8, bytes);
    case LAYOUT_Q4_K: return packKFour(source, rowBytes, supers, row, target, false, bytes);
    case LAYOUT_Q5_K: return packKFour(source, rowBytes, supers, row, target, true, bytes);
    case LAYOUT_Q6_K: return packQ6KFour(source, rowBytes, supers, row, target, bytes);
  }
  return unreachable();
}

/** Lanes of `v` that are halves but not finite, as -1. */
@inline function notFiniteHalves(v: v128): v128 {
  const exponent = i16x8.splat(0x7c00);
  return i16x8.eq(v128.and(v, exponent), exponent);
}

/** Sum of eight lanes that count down, as far as they can. */
@inline function counted(v: v128): u32 {
  const words = i32x4.extadd_pairwise_i16x8_s(v);
  return -(i32x4.extract_lane(words, 0) + i32x4.extract_lane(words, 1) + i32x4.extract_lane(words, 2) + i32x4.extract_lane(words, 3));
}

/** Words 0 to 3 of four rows: word p of row r becomes lane r of the vector at `at` + p · 32. */
@inline function storeTransposed(a: v128, b: v128, c: v128, d: v128, at: usize): void {
  const ab = v128.shuffle<i32>(a, b, 0, 4, 1, 5), cd = v128.shuffle<i32>(c, d, 0, 4, 1, 5);
  const ef = v128.shuffle<i32>(a, b, 2, 6, 3, 7), gh = v128.shuffle<i32>(c, d, 2, 6, 3, 7);
  v128.store(at, v128.shuffle<i64>(ab, cd, 0, 2));
  v128.store(at, v128.shuffle<i64>(ab, cd, 1, 3), 32);
  v128.store(at, v128.shuffle<i64>(ef, gh, 0, 2), 64);
  v128.store(at, v128.shuffle<i64>(ef, gh, 1, 3), 96);
}

/** A word of each row. */
@inline function wordsAt(at: usize, rowBytes: usize): v128 {
  let words = v128.load32_zero(at);
  words = v128.load32_lane(at + rowBytes, words, 1);
  words = v128.load32_lane(at + 2 * rowBytes, words, 2);
  return v128.load32_lane(at + 3 * rowBytes, words, 3);
}

/** A half of each row, in the first four lanes. */
@inline function halvesAt(at: usize, rowBytes: usize): v128 {
  let halves = v128.load16_lane(at, i32x4.splat(0), 0);
  halves = v128.load16_lane(at + rowBytes, halves, 1);
  halves = v128.load16_lane(at + 2 * rowBytes, halves, 2);
  return v128.load16_lane(at + 3 * rowBytes, halves, 3);
}

/** Pairs of halves of each row: the first ones to `at`, the second ones behind those of eight rows. */
@inline function storePairs(pairs: v128, at: usize): void {
  const halves = v128.shuffle<i16>(pairs, pairs, 0, 2, 4, 6, 1, 3, 5, 7);
  v128.store64_lane(at, halves, 0);
  v128.store64_lane(at + 16, halves, 1);
}

function packWordsFour(source: usize, rowBytes: usize, columns: u32, target: usize): u32 {
  const whole = columns & ~3;
  for (let k: u32 = 0; k < whole; k += 4, source += 16, target += 128) {
    storeTransposed(
      v128.load(source), v128.load(source + rowBytes), v128.load(source + 2 * rowBytes), v128.load(source + 3 * rowBytes),
      target,
    );
  }
  for (let k = whole; k < columns; k++, source += 4, target += 32) v128.store(target, wordsAt(source, rowBytes));
  return 0;
}

/** Byte k of each row gets bits k, 4 + k, … 28 + k of its word: fifth bits, as spreadBits in pack.ts. */
function spreadBitsFour(bits: v128): v128 {
  let result = i32x4.splat(0);
  for (let k = 0; k < 4; k++) {
    let lane = v128.and(i32x4.shr_u(bits, k), i32x4.splat(0x11111111));
    lane = v128.and(v128.or(lane, i32x4.shr_u(lane, 3)), i32x4.splat(0x03030303));
    lane = v128.and(v128.or(lane, i32x4.shr_u(lane, 6)), i32x4.splat(0x000f000f));
    lane = v128.and(v128.or(lane, i32x4.shr_u(lane, 12)), i32x4.splat(0xff));
    result = v128.or(result, i32x4.shl(lane, 8 * k));
  }
  return result;
}

/** One or two scales, perhaps fifth bits, then `words` code words a block; `bytes` of a cell. */
function packPlainFour(source: usize, rowBytes: usize, blocks: u32, row: u32, target: usize, scales: u32, fifth: bool, words: u32, bytes: u32): u32 {
  const head = 2 * scales + (fifth ? 4 : 0);
  const lane = <usize>(row >> 2 << 4);
  let bad = i32x4.splat(0);
  for (let b: u32 = 0; b < blocks; b++, target += bytes) {
    if (scales == 2) {
      const pairs = wordsAt(source, rowBytes);
      bad = i16x8.add_sat_s(bad, notFiniteHalves(pairs));
      storePairs(pairs, target + 2 * row);
    } else {
      const halves = halvesAt(source, rowBytes);
      bad = i16x8.add_sat_s(bad, notFiniteHalves(halves));
      v128.store64_lane(target + 2 * row, halves, 0);
    }
    const codes = target + 16 * scales + lane;
    if (fifth) v128.store(codes + 128, spreadBitsFour(wordsAt(source + 2 * scales, rowBytes)));
    source += head;
    for (let p: u32 = 0; p < words; p += 4, source += 16) {
      storeTransposed(
        v128.load(source), v128.load(source + rowBytes), v128.load(source + 2 * rowBytes), v128.load(source + 3 * rowBytes),
        codes + 32 * p,
      );
    }
  }
  return counted(bad);
}

@inline function lowNibbles(a: v128, b: v128): v128 {
  const mask = i8x16.splat(15);
  return v128.or(v128.and(a, mask), i32x4.shl(v128.and(b, mask), 4));
}

@inline function highNibbles(a: v128, b: v128): v128 {
  const mask = i8x16.splat(15);
  return v128.or(v128.and(i32x4.shr_u(a, 4), mask), v128.andnot(b, mask));
}

/** Codes of two cells of 32 columns, one in the low and one in the high nibbles of the 32 bytes at `at`. */
@inline function storeNibbles(at: usize, rowBytes: usize, low: usize, high: usize): void {
  const a = v128.load(at), b = v128.load(at + rowBytes);
  const c = v128.load(at + 2 * rowBytes), d = v128.load(at + 3 * rowBytes);
  const e = v128.load(at, 16), f = v128.load(at + rowBytes, 16);
  const g = v128.load(at + 2 * rowBytes, 16), h = v128.load(at + 3 * rowBytes, 16);
  storeTransposed(lowNibbles(a, e), lowNibbles(b, f), lowNibbles(c, g), lowNibbles(d, h), low);
  storeTransposed(highNibbles(a, e), highNibbles(b, f), highNibbles(c, g), highNibbles(d, h), high);
}

/** The four words of `v` to every `bytes` bytes. */
@inline function storeWords(v: v128, at: usize, bytes: usize): void {
  v128.store32_lane(at, v, 0);
  v128.store32_lane(at + bytes, v, 1);
  v128.store32_lane(at + 2 * bytes, v, 2);
  v128.store32_lane(at + 3 * bytes, v, 3);
}

/** Bytes of four columns of four rows, turned: word c has byte c of every row. */
@inline function turned(v: v128): v128 {
  return i8x16.shuffle(v, v, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

/** Bits of `a` that `mask` << `shift` covers change places with those of `b` that `mask` covers. */
@inline function moved(a: v128, b: v128, shift: i32, mask: v128): v128 {
  return v128.and(v128.xor(i32x4.shr_u(a, shift), b), mask);
}

/** Bit c of words q of a row, q = 0..7, becomes bit q of the bytes of cell c, cells being `bytes` apart. */
function storeFifths(at: usize, rowBytes: usize, target: usize, bytes: usize): void {
  let a = wordsAt(at, rowBytes), b = wordsAt(at + 4, rowBytes), c = wordsAt(at + 8, rowBytes), d = wordsAt(at + 12, rowBytes);
  let e = wordsAt(at + 16, rowBytes), f = wordsAt(at + 20, rowBytes), g = wordsAt(at + 24, rowBytes), h = wordsAt(at + 28, rowBytes);
  // A square of eight by eight bits is turned by exchanging quarters, then quarters of those.
  let mask = i8x16.splat(0x0f), t = moved(a, e, 4, mask);
  e = v128.xor(e, t); a = v128.xor(a, i32x4.shl(t, 4)); t = moved(b, f, 4, mask);
  f = v128.xor(f, t); b = v128.xor(b, i32x4.shl(t, 4)); t = moved(c, g, 4, mask);
  g = v128.xor(g, t); c = v128.xor(c, i32x4.shl(t, 4)); t = moved(d, h, 4, mask);
  h = v128.xor(h, t); d = v128.xor(d, i32x4.shl(t, 4));
  mask = i8x16.splat(0x33); t = moved(a, c, 2, mask);
  c = v128.xor(c, t); a = v128.xor(a, i32x4.shl(t, 2)); t = moved(b, d, 2, mask);
  d = v128.xor(d, t); b = v128.xor(b, i32x4.shl(t, 2)); t = moved(e, g, 2, mask);
  g = v128.xor(g, t); e = v128.xor(e, i32x4.shl(t, 2)); t = moved(f, h, 2, mask);
  h = v128.xor(h, t); f = v128.xor(f, i32x4.shl(t, 2));
  mask = i8x16.splat(0x55); t = moved(a, b, 1, mask);
  v128.store(target + bytes, v128.xor(b, t)); v128.store(target, v128.xor(a, i32x4.shl(t, 1))); t = moved(c, d, 1, mask);
  v128.store(target + 3 * bytes, v128.xor(d, t)); v128.store(target + 2 * bytes, v128.xor(c, i32x4.shl(t, 1))); t = moved(e, f, 1, mask);
  v128.store(target + 5 * bytes, v128.xor(f, t)); v128.store(target + 4 * bytes, v128.xor(e, i32x4.shl(t, 1))); t = moved(g, h, 1, mask);
  v128.store(target + 7 * bytes, v128.xor(h, t)); v128.store(target + 6 * bytes, v128.xor(g, i32x4.shl(t, 1)));
}

/** Q4_K, and Q5_K with `fifth`. */
function packKFour(source: usize, rowBytes: usize, blocks: u32, row: u32, target: usize, fifth: bool, bytes: u32): u32 {
  const lane = <usize>(row >> 2 << 4);
  let bad = i32x4.splat(0);
  for (let b: u32 = 0; b < blocks; b++, target += 8 * bytes) {
    const pairs = wordsAt(source, rowBytes);
    bad = i16x8.add_sat_s(bad, notFiniteHalves(pairs));
    storePairs(pairs, target + 2 * row);
    target += 32;
    // 6-bit scales and minima of eight cells in twelve bytes.
    const first = wordsAt(source + 4, rowBytes), second = wordsAt(source + 8, rowBytes), third = wordsAt(source + 12, rowBytes);
    const six = i8x16.splat(63), four = i8x16.splat(15), top = i8x16.splat(48);
    const at = target + row;
    storeWords(turned(v128.and(first, six)), at, bytes);
    storeWords(turned(v128.and(second, six)), at + 8, bytes);
    const later = v128.or(v128.and(third, four), v128.and(i32x4.shr_u(first, 2), top));
    storeWords(turned(later), at + 4 * bytes, bytes);
    const minima = v128.or(v128.and(i32x4.shr_u(third, 4), four), v128.and(i32x4.shr_u(second, 2), top));
    storeWords(turned(minima), at + 4 * bytes + 8, bytes);
    source += 16;
    if (fifth) {
      storeFifths(source, rowBytes, target + 144 + lane, bytes);
      source += 32;
    }
    for (let cell: u32 = 0; cell < 8; cell += 2, source += 32) {
      const codes = target + cell * bytes + 16 + lane;
      storeNibbles(source, rowBytes, codes, codes + bytes);
    }
  }
  return counted(bad);
}

/** 16 codes of 6 bit of a row: nibbles at `low`, above them pairs of bits at `high`. */
@inline function sixBitCodes(low: usize, nibble: i32, high: usize, pair: i32): v128 {
  const nibbles = v128.and(i16x8.shr_u(v128.load(low), nibble), i8x16.splat(15));
  return v128.or(nibbles, i16x8.shl(v128.and(i16x8.shr_u(v128.load(high), pair), i8x16.splat(3)), 4));
}

/** 16 columns of four rows: three words of a row with a part of the fourth above each. */
@inline function storeSixBits(low: usize, nibble: i32, high: usize, pair: i32, rowBytes: usize, target: usize): void {
  const a = sixBitCodes(low, nibble, high, pair), b = sixBitCodes(low + rowBytes, nibble, high + rowBytes, pair);
  const c = sixBitCodes(low + 2 * rowBytes, nibble, high + 2 * rowBytes, pair);
  const d = sixBitCodes(low + 3 * rowBytes, nibble, high + 3 * rowBytes, pair);
  const ab = v128.shuffle<i32>(a, b, 0, 4, 1, 5), cd = v128.shuffle<i32>(c, d, 0, 4, 1, 5);
  const ef = v128.shuffle<i32>(a, b, 2, 6, 3, 7), gh = v128.shuffle<i32>(c, d, 2, 6, 3, 7);
  const fourth = v128.shuffle<i64>(ef, gh, 1, 3), top = i8x16.splat(-64);
  v128.store(target, v128.or(v128.shuffle<i64>(ab, cd, 0, 2), v128.and(i16x8.shl(fourth, 2), top)));
  v128.store(target, v128.or(v128.shuffle<i64>(ab, cd, 1, 3), v128.and(i16x8.shl(fourth, 4), top)), 32);
  v128.store(target, v128.or(v128.shuffle<i64>(ef, gh, 0, 2), v128.and(i16x8.shl(fourth, 6), top)), 64);
}

function packQ6KFour(source: usize, rowBytes: usize, blocks: u32, row: u32, target: usize, bytes: u32): u32 {
  const lane = <usize>(row >> 2 << 4);
  let bad = i32x4.splat(0);
  for (let b: u32 = 0; b < blocks; b++, source += 210, target += 8 * bytes) {
    const halves = halvesAt(source + 208, rowBytes);
    bad = i16x8.add_sat_s(bad, notFiniteHalves(halves));
    v128.store64_lane(target + 2 * row, halves, 0);
    target += 16;
    // Sixteen scales, two a cell.
    for (let i: usize = 0; i < 4; i++) {
      const pairs = wordsAt(source + 192 + 4 * i, rowBytes), at = target + 2 * i * bytes + 2 * row;
      const scales = v128.shuffle<i16>(pairs, pairs, 0, 2, 4, 6, 1, 3, 5, 7);
      v128.store64_lane(at, scales, 0);
      v128.store64_lane(at + bytes, scales, 1);
    }
    for (let cell: u32 = 0; cell < 8; cell++) {
      const part = cell >> 2, low = source + 64 * part + 32 * (cell & 1), high = source + 128 + 32 * part;
      const codes = target + cell * bytes + 16 + lane, nibble = (cell & 2) << 1, pair = (cell & 3) << 1;
      storeSixBits(low, nibble, high, pair, rowBytes, codes);
      storeSixBits(low + 16, nibble, high + 16, pair, rowBytes, codes + 96);
    }
  }
  return counted(bad);
}
