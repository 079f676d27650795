// Packs a row of a format of grid points, or of TQ1_0: what the file says of points, signs and scales goes to the
// places of wasm/weight_layout.ts unchanged, only the eighth sign of seven bits is written out.
import {
  LAYOUT_IQ1_M, LAYOUT_IQ1_S, cellBytes, fileBlockBytes, groupColumns, halfOf, hasSevenSigns, indexBits, pointOf,
  pointsOfRow, scaleBytes, scaleOf, signsOf,
} from "../generated/layouts";
import { laneOf, notFinite, spreadBits } from "./pack";

/** Four times seven sign bits, completed to an even number of signs each. */
function completed(word: u32): u32 {
  let signs: u32 = 0;
  for (let p: u32 = 0; p < 4; p++) {
    const seven = (word >> (7 * p)) & 127;
    signs |= (seven | ((popcnt(seven) & 1) << 7)) << (8 * p);
  }
  return signs;
}

/** Adds bits to zeros. Byte by byte: behind a tile another thread packs. */
@inline function addBits(at: usize, bits: u32): void {
  for (; bits; bits >>= 8, at++) store<u8>(at, <u32>load<u8>(at) | bits);
}

/** One row of whole blocks into lanes that are zero. Returns the number of scales that are not finite. */
export function packPoints(layout: u32, source: usize, blocks: u32, row: u32, target: usize): u32 {
  const fileBytes = <usize>fileBlockBytes(layout), bytes = <usize>cellBytes(layout);
  const bits = indexBits(layout), count = pointsOfRow(layout), plane = <usize>scaleBytes(layout);
  const beside = plane + count * bits, bits7 = hasSevenSigns(layout);
  let bad: u32 = 0;
  for (let b: u32 = 0; b < blocks; b++, source += fileBytes) {
    const half = halfOf(layout, source);
    bad += notFinite(half);
    store<u16>(target + 2 * row, half);
    target += 16;
    for (let c: u32 = 0; c < 8; c++, target += bytes) {
      const scale = scaleOf(layout, source, c);
      if (groupColumns(layout) == 16) store<u8>(target + row, scale);
      else addBits(target + (row & 3), scale << (row & 4));
      for (let i: u32 = 0; i < count; i++) {
        const bit = (row * count + i) * bits;
        addBits(target + plane + (bit >> 3), pointOf(layout, source, c, i) << (bit & 7));
      }
      const signs = bits7 ? completed(signsOf(layout, source, c)) : signsOf(layout, source, c);
      if (layout == LAYOUT_IQ1_M) addBits(target + beside + (row & 3), signs << (row & 4));
      else if (layout != LAYOUT_IQ1_S) store<u32>(target + beside + laneOf(row), spreadBits(signs));
    }
  }
  return bad;
}

/** The same of TQ1_0. */
export function packTernary(source: usize, blocks: u32, row: u32, target: usize): u32 {
  let bad: u32 = 0;
  for (let b: u32 = 0; b < blocks; b++, source += 54) {
    const half = <u32>load<u16>(source, 52);
    bad += notFinite(half);
    store<u16>(target + 2 * row, half);
    target += 16;
    for (let k: usize = 0; k < 13; k++, target += 32) {
      store<u32>(target + laneOf(row), load<u32>(source + 4 * k) ^ 0x80808080);
    }
  }
  return bad;
}
