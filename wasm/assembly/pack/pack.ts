// Rearranges rows of a weight, as files store them, into tiles of eight interleaved rows
// (wasm/weight_layout.ts). Runs while loading, on 32-bit words: the order of nibbles in a cell was chosen
// so that the words of the simple formats move unchanged.
//   for each tile, for each of its rows, for each block: scales to the front, code words to their lane
// Whole halves of tiles of the formats that models come in most often are transposed as vectors, four rows at once
// (four.ts); grid points are packed by points.ts, and all else by blocks.ts.
// Every function returns the number of half-float scales that are not finite; kernels cannot read those.

import { LAYOUT_BF16, LAYOUT_F16, LAYOUT_F32, LAYOUT_NB4, LAYOUT_TQ1_0, cellBytes, hasPoints } from "../generated/layouts";
import { PACK_WEIGHT_KIND, PACK_WEIGHT_LAYOUT } from "../generated/opcodes";
import { u32At } from "../machine/runtime";
import { packBlocks } from "./blocks";
import { packFour, packsFour } from "./four";
import { packPoints, packTernary } from "./points";

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

function packRow(ip: usize, layout: u32, source: usize, columns: u32, row: u32, target: usize, codes: usize): u32 {
  switch (layout) {
    case LAYOUT_F32: return packWords(source, columns, row, target);
    case LAYOUT_F16: return packHalves(source, columns, row, target, true);
    case LAYOUT_BF16: return packHalves(source, columns, row, target, false);
    case LAYOUT_NB4: return packWide(source, columns >> 5, row, target, cellBytes(layout));
    case LAYOUT_TQ1_0: return packTernary(source, columns >> 8, row, target);
  }
  return hasPoints(layout)
    ? packPoints(layout, source, columns >> 8, row, target)
    : packBlocks(ip, source, columns, row, target, codes);
}

/**
 * Packs `rows` rows of `rowBytes` bytes into whole tiles of `tileBytes` at `target`; lanes without a row become zeros.
 * The instruction at `ip` says what a block is like (blocks.ts); `codes` are 32 bytes of scratch memory. Returns the
 * number of scales that are not finite.
 */
export function packRows(
  ip: usize, source: usize, rows: u32, rowBytes: usize, columns: u32, target: usize, tileBytes: usize, codes: usize,
): u32 {
  // Other formats may share a layout with one whose rows are packed by fours.
  const layout = u32At(ip, PACK_WEIGHT_LAYOUT), four = !u32At(ip, PACK_WEIGHT_KIND) && packsFour(layout);
  let bad: u32 = 0;
  for (let first: u32 = 0; first < rows; first += 8, target += tileBytes) {
    const count = rows - first < 8 ? rows - first : 8;
    if (count < 8 || columns & 31 || hasPoints(layout)) memory.fill(target, 0, tileBytes);
    if (count == 8 && (layout == LAYOUT_F16 || layout == LAYOUT_BF16)) {
      bad += packHalvesEight(source, rowBytes, columns, target, layout == LAYOUT_F16);
      source += 8 * rowBytes;
      continue;
    }
    let row: u32 = 0;
    for (; four && row + 4 <= count; row += 4, source += 4 * rowBytes) {
      bad += packFour(layout, source, rowBytes, columns, row, target);
    }
    for (; row < count; row++, source += rowBytes) bad += packRow(ip, layout, source, columns, row, target, codes);
  }
  return bad;
}
