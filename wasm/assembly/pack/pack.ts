// Rearranges rows of a weight, as files store them, into tiles of eight interleaved rows
// (wasm/weight_layout.ts). Runs while loading, on 32-bit words: the order of nibbles in a cell was chosen
// so that the words of the simple formats move unchanged.
//   for each tile, for each of its rows, for each block: scales to the front, code words to their lane
// Whole halves of tiles are transposed as vectors, four rows at once (four.ts); what is here is for the last rows
// and for rarer formats.
// Every function returns the number of half-float scales that are not finite; kernels cannot read those.
// Formats that are not written out here are packed by points.ts or blocks.ts.

import {
  LAYOUT_BF16, LAYOUT_F16, LAYOUT_F32, LAYOUT_NB4, LAYOUT_Q4_0, LAYOUT_Q4_1, LAYOUT_Q4_K,
  LAYOUT_Q5_0, LAYOUT_Q5_1, LAYOUT_Q5_K, LAYOUT_Q6_K, LAYOUT_Q8_0, LAYOUT_TQ1_0, cellBytes, hasPoints,
} from "../generated/layouts";
import { packFour, packsFour } from "./four";
import { packPoints, packTernary } from "./points";

const NIBBLES: u32 = 0x0f0f0f0f;

export function notFinite(half: u32): u32 { return (half & 0x7c00) == 0x7c00 ? 1 : 0; }

/** Byte k gets bits k, 4 + k, … 28 + k of `bits`: the fifth bits of columns k, 4 + k, …. */
export function spreadBits(bits: u32): u32 {
  let result: u32 = 0;
  for (let k = 0; k < 4; k++) {
    let lane = (bits >> k) & 0x11111111;
    lane = (lane | (lane >> 3)) & 0x03030303;
    lane = (lane | (lane >> 6)) & 0x000f000f;
    lane = (lane | (lane >> 12)) & 0xff;
    result |= lane << (8 * k);
  }
  return result;
}

/** Where the code words of a row stand in a vector of four rows, counted from the first half's. */
@inline export function laneOf(row: u32): usize { return (row >> 2 << 4) + ((row & 3) << 2); }

/** Scales of a block of one row of Q4_0 Q4_1 Q5_0 Q5_1 Q8_0; `second` if it has two. */
@inline function packScales(source: usize, row: u32, target: usize, second: bool): u32 {
  const halves = second ? load<u32>(source) : <u32>load<u16>(source);
  store<u16>(target + 2 * row, halves);
  if (second) store<u16>(target + 16 + 2 * row, halves >> 16);
  return notFinite(halves) + notFinite(halves >> 16);
}

/** One row: `scales` half floats, perhaps fifth bits, then `words` code words a block; `bytes` of a cell. */
function packPlain(source: usize, blocks: u32, row: u32, target: usize, scales: u32, fifth: bool, words: u32, bytes: u32): u32 {
  const head = 2 * scales + (fifth ? 4 : 0);
  const lane = laneOf(row);
  let bad: u32 = 0;
  for (let b: u32 = 0; b < blocks; b++, target += bytes) {
    bad += packScales(source, row, target, scales == 2);
    const codes = target + 16 * scales + lane;
    if (fifth) store<u32>(codes + 128, spreadBits(load<u32>(source + 2 * scales)));
    source += head;
    for (let p: u32 = 0; p < words; p++, source += 4) store<u32>(codes + 32 * p, load<u32>(source));
  }
  return bad;
}

/** One row of blocks with two float32 scales and four code words. */
function packWide(source: usize, blocks: u32, row: u32, target: usize, bytes: u32): u32 {
  const lane = laneOf(row);
  let bad: u32 = 0;
  for (let b: u32 = 0; b < blocks; b++, target += bytes, source += 24) {
    for (let s: usize = 0; s < 2; s++) {
      const scale = load<u32>(source + 4 * s);
      if ((scale & 0x7f800000) == 0x7f800000) bad++;
      store<u32>(target + 32 * s + 4 * row, scale);
    }
    for (let p: usize = 0; p < 4; p++) store<u32>(target + 64 + 32 * p + lane, load<u32>(source + 8 + 4 * p));
  }
  return bad;
}

/** 6-bit scale (`shift` 0) or minimum (4) number `i` out of the 12 bytes of Q4_K and Q5_K. */
function scaleCode(at: usize, i: u32, shift: u32): u32 {
  if (i < 4) return load<u8>(at + i + shift) & 63;
  return ((load<u8>(at + i + 4) >> <u8>shift) & 15) | (load<u8>(at + i - 4 + shift) >> 6 << 4);
}

/** Q4_K, and Q5_K with `fifth`. */
function packK(source: usize, blocks: u32, row: u32, target: usize, fifth: bool, bytes: u32): u32 {
  const lane = laneOf(row);
  let bad: u32 = 0;
  for (let b: u32 = 0; b < blocks; b++) {
    bad += notFinite(load<u16>(source)) + notFinite(load<u16>(source, 2));
    store<u16>(target + 2 * row, load<u16>(source));
    store<u16>(target + 16 + 2 * row, load<u16>(source, 2));
    const high = source + 16;
    const low = high + (fifth ? 32 : 0);
    target += 32;
    for (let cell: u32 = 0; cell < 8; cell++, target += bytes) {
      store<u8>(target + row, scaleCode(source + 4, cell, 0));
      store<u8>(target + 8 + row, scaleCode(source + 4, cell, 4));
      const words = low + 32 * (cell >> 1);
      const shift = 4 * (cell & 1);
      for (let p: usize = 0; p < 4; p++) {
        const first = (load<u32>(words + 4 * p) >> shift) & NIBBLES;
        const second = (load<u32>(words + 4 * p + 16) >> shift) & NIBBLES;
        store<u32>(target + 16 + 32 * p + lane, first | (second << 4));
      }
      if (fifth) {
        let bits: u32 = 0;
        for (let q: u32 = 0; q < 8; q++) bits |= ((load<u32>(high + 4 * q) >> cell) & 0x01010101) << q;
        store<u32>(target + 144 + lane, bits);
      }
    }
    source = low + 128;
  }
  return bad;
}

function packQ6K(source: usize, blocks: u32, row: u32, target: usize, bytes: u32): u32 {
  const lane = laneOf(row);
  let bad: u32 = 0;
  for (let b: u32 = 0; b < blocks; b++, source += 210) {
    const half = load<u16>(source, 208);
    bad += notFinite(half);
    store<u16>(target + 2 * row, half);
    target += 16;
    for (let cell: u32 = 0; cell < 8; cell++, target += bytes) {
      store<u8>(target + row, load<u8>(source + 192 + 2 * cell));
      store<u8>(target + 8 + row, load<u8>(source + 193 + 2 * cell));
      const part = cell >> 2, sub = cell & 3;
      const words = source + 64 * part + 32 * (sub & 1);
      const shift = 4 * (sub >> 1);
      for (let p: usize = 0; p < 4; p++) {
        const first = (load<u32>(words + 4 * p) >> shift) & NIBBLES;
        const second = (load<u32>(words + 4 * p + 16) >> shift) & NIBBLES;
        store<u32>(target + 16 + 32 * p + lane, first | (second << 4));
      }
      const high = source + 128 + 32 * part;
      for (let s: usize = 0; s < 2; s++) {
        let bits: u32 = 0;
        for (let j: u32 = 0; j < 4; j++) {
          bits |= ((load<u32>(high + 16 * s + 4 * j) >> (2 * sub)) & 0x03030303) << (2 * j);
        }
        store<u32>(target + 144 + 32 * s + lane, bits);
      }
    }
  }
  return bad;
}

function packWords(source: usize, columns: u32, row: u32, target: usize): u32 {
  for (let k: usize = 0; k < columns; k++) store<u32>(target + 32 * k + 4 * row, load<u32>(source + 4 * k));
  return 0;
}

function packHalves(source: usize, columns: u32, row: u32, target: usize, refuse: bool): u32 {
  let bad: u32 = 0;
  for (let k: usize = 0; k < columns; k++) {
    const bits = load<u16>(source + 2 * k);
    if (refuse) bad += notFinite(bits);
    store<u16>(target + 16 * k + 2 * row, bits);
  }
  return bad;
}

@inline function interleaveLow(a: v128, b: v128): v128 { return v128.shuffle<i16>(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
@inline function interleaveHigh(a: v128, b: v128): v128 { return v128.shuffle<i16>(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

/** Lanes of `v` that are halves but not finite. */
@inline function notFiniteLanes(v: v128): u32 {
  const exponent = i16x8.splat(0x7c00);
  return popcnt(i16x8.bitmask(i16x8.eq(v128.and(v, exponent), exponent)));
}

/** A whole tile of 16-bit numbers: eight rows by eight columns are transposed as vectors. */
function packHalvesEight(source: usize, rowBytes: usize, columns: u32, target: usize, refuse: bool): u32 {
  let bad: u32 = 0;
  const whole = columns & ~7;
  for (let k: u32 = 0; k < whole; k += 8, source += 16, target += 128) {
    const r0 = v128.load(source), r1 = v128.load(source + rowBytes);
    const r2 = v128.load(source + 2 * rowBytes), r3 = v128.load(source + 3 * rowBytes);
    const r4 = v128.load(source + 4 * rowBytes), r5 = v128.load(source + 5 * rowBytes);
    const r6 = v128.load(source + 6 * rowBytes), r7 = v128.load(source + 7 * rowBytes);
    if (refuse) {
      bad += notFiniteLanes(r0) + notFiniteLanes(r1) + notFiniteLanes(r2) + notFiniteLanes(r3);
      bad += notFiniteLanes(r4) + notFiniteLanes(r5) + notFiniteLanes(r6) + notFiniteLanes(r7);
    }
    // Interleaving rows i and i + 4, three times, is a transposition.
    const a0 = interleaveLow(r0, r4), a1 = interleaveHigh(r0, r4), a2 = interleaveLow(r1, r5), a3 = interleaveHigh(r1, r5);
    const a4 = interleaveLow(r2, r6), a5 = interleaveHigh(r2, r6), a6 = interleaveLow(r3, r7), a7 = interleaveHigh(r3, r7);
    const b0 = interleaveLow(a0, a4), b1 = interleaveHigh(a0, a4), b2 = interleaveLow(a1, a5), b3 = interleaveHigh(a1, a5);
    const b4 = interleaveLow(a2, a6), b5 = interleaveHigh(a2, a6), b6 = interleaveLow(a3, a7), b7 = interleaveHigh(a3, a7);
    v128.store(target, interleaveLow(b0, b4));
    v128.store(target, interleaveHigh(b0, b4), 16);
    v128.store(target, interleaveLow(b1, b5), 32);
    v128.store(target, interleaveHigh(b1, b5), 48);
    v128.store(target, interleaveLow(b2, b6), 64);
    v128.store(target, interleaveHigh(b2, b6), 80);
    v128.store(target, interleaveLow(b3, b7), 96);
    v128.store(target, interleaveHigh(b3, b7), 112);
  }
  for (let row: u32 = 0; row < 8; row++) bad += packHalves(source + row * rowBytes, columns - whole, row, target, refuse);
  return bad;
}

function packRow(layout: u32, source: usize, columns: u32, row: u32, target: usize): u32 {
  const blocks = columns >> 5, supers = columns >> 8, bytes = cellBytes(layout);
  switch (layout) {
    case LAYOUT_F32: return packWords(source, columns, row, target);
    case LAYOUT_F16: return packHalves(source, columns, row, target, true);
    case LAYOUT_BF16: return packHalves(source, columns, row, target, false);
    case LAYOUT_Q4_0: return packPlain(source, blocks, row, target, 1, false, 4, bytes);
    case LAYOUT_Q4_1: return packPlain(source, blocks, row, target, 2, false, 4, bytes);
    case LAYOUT_Q5_0: return packPlain(source, blocks, row, target, 1, true, 4, bytes);
    case LAYOUT_Q5_1: return packPlain(source, blocks, row, target, 2, true, 4, bytes);
    case LAYOUT_Q8_0: return packPlain(source, blocks, row, target, 1, false, 8, bytes);
    case LAYOUT_Q4_K: return packK(source, supers, row, target, false, bytes);
    case LAYOUT_Q5_K: return packK(source, supers, row, target, true, bytes);
    case LAYOUT_Q6_K: return packQ6K(source, supers, row, target, bytes);
    case LAYOUT_NB4: return packWide(source, blocks, row, target, bytes);
    case LAYOUT_TQ1_0: return packTernary(source, supers, row, target);
  }
  return packPoints(layout, source, supers, row, target);
}

/**
 * Packs `rows` rows of `rowBytes` bytes into whole tiles of `tileBytes` at `target`; lanes without a row
 * become zeros. Returns the number of scales that are not finite.
 */
export function packRows(layout: u32, source: usize, rows: u32, rowBytes: usize, columns: u32, target: usize, tileBytes: usize): u32 {
  const four = packsFour(layout);
  let bad: u32 = 0;
  for (let first: u32 = 0; first < rows; first += 8, target += tileBytes) {
    const count = rows - first < 8 ? rows - first : 8;
    if (count < 8 || hasPoints(layout)) memory.fill(target, 0, tileBytes);
    if (count == 8 && (layout == LAYOUT_F16 || layout == LAYOUT_BF16)) {
      bad += packHalvesEight(source, rowBytes, columns, target, layout == LAYOUT_F16);
      source += 8 * rowBytes;
      continue;
    }
    let row: u32 = 0;
    for (; four && row + 4 <= count; row += 4, source += 4 * rowBytes) {
      bad += packFour(layout, source, rowBytes, columns, row, target);
    }
    for (; row < count; row++, source += rowBytes) bad += packRow(layout, source, columns, row, target);
  }
  return bad;
}
