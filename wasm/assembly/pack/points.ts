// Packs a row of a format of grid points, or of TQ1_0: what the file says of points, signs and scales goes to the
// places of wasm/weight_layout.ts unchanged, only the eighth sign of seven bits is written out.
import {
  LAYOUT_IQ1_M, LAYOUT_IQ1_S, LAYOUT_IQ2_S, LAYOUT_IQ2_XS, LAYOUT_IQ2_XXS, LAYOUT_IQ3_S, LAYOUT_IQ3_XXS,
  cellBytes, fileBlockBytes, groupColumns, indexBits, pointsOfRow, scaleBytes,
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

/** Number of point `i` of cell `c` of the block at `at`. */
function pointOf(layout: u32, at: usize, c: u32, i: u32): u32 {
  switch (layout) {
    case LAYOUT_IQ1_S: return load<u8>(at + 4 * c + i, 2) | (((<u32>load<u16>(at + 2 * c, 34) >> (3 * i)) & 7) << 8);
    case LAYOUT_IQ1_M: {
      const p = 4 * c + i;
      return load<u8>(at + p) | (((<u32>load<u8>(at + (p >> 1), 32) >> (4 * (p & 1))) & 7) << 8);
    }
    case LAYOUT_IQ2_XXS: return load<u8>(at + 8 * c + i, 2);
    case LAYOUT_IQ2_XS: return load<u16>(at + 8 * c + 2 * i, 2) & 511;
    case LAYOUT_IQ2_S: return load<u8>(at + 4 * c + i, 2) | (((<u32>load<u8>(at + c, 66) >> (2 * i)) & 3) << 8);
    case LAYOUT_IQ3_XXS: return load<u8>(at + 8 * c + i, 2);
    case LAYOUT_IQ3_S: return load<u8>(at + 8 * c + i, 2) | (((<u32>load<u8>(at + c, 66) >> i) & 1) << 8);
  }
  return unreachable();
}

/** Signs of the columns of a cell, a bit each; of IQ1_M the shifts of its points, up. */
function signsOf(layout: u32, at: usize, c: u32): u32 {
  switch (layout) {
    case LAYOUT_IQ1_M: {
      const nibbles = <u32>load<u16>(at + 2 * c, 32);
      return ((nibbles >> 3 & 1) | (nibbles >> 6 & 2) | (nibbles >> 9 & 4) | (nibbles >> 12 & 8)) ^ 15;
    }
    case LAYOUT_IQ2_XXS: return completed(load<u32>(at + 8 * c, 6));
    case LAYOUT_IQ2_XS: {
      let sevens: u32 = 0;
      for (let i: u32 = 0; i < 4; i++) sevens |= (<u32>load<u16>(at + 8 * c + 2 * i, 2) >> 9) << (7 * i);
      return completed(sevens);
    }
    case LAYOUT_IQ2_S: return load<u32>(at + 4 * c, 34);
    case LAYOUT_IQ3_XXS: return completed(load<u32>(at + 4 * c, 66));
    case LAYOUT_IQ3_S: return load<u32>(at + 4 * c, 74);
  }
  return 0;
}

/** The scale of a cell, 4 bit, or of its two groups. */
function scaleOf(layout: u32, at: usize, c: u32): u32 {
  switch (layout) {
    // The shift's sign is on top of three bits.
    case LAYOUT_IQ1_S: return <u32>load<u16>(at + 2 * c, 34) >> 12;
    case LAYOUT_IQ1_M: {
      const six = <u32>load<u16>(at + (c >> 1 << 1), 48) >> (6 * (c & 1));
      return (six & 7) | ((six & 56) << 1);
    }
    case LAYOUT_IQ2_XXS: return load<u32>(at + 8 * c, 6) >> 28;
    case LAYOUT_IQ2_XS: return load<u8>(at + c, 66);
    case LAYOUT_IQ2_S: return load<u8>(at + c, 74);
    case LAYOUT_IQ3_XXS: return load<u32>(at + 4 * c, 66) >> 28;
    case LAYOUT_IQ3_S: return (<u32>load<u8>(at + (c >> 1), 106) >> (4 * (c & 1))) & 15;
  }
  return unreachable();
}

function halfOf(layout: u32, at: usize): u32 {
  if (layout != LAYOUT_IQ1_M) return load<u16>(at);
  return (load<u16>(at, 48) >> 12) | (load<u16>(at, 50) >> 8 & 0xf0) | (load<u16>(at, 52) >> 4 & 0xf00) | (load<u16>(at, 54) & 0xf000);
}

/** Adds bits to zeros. Byte by byte: behind a tile another thread packs. */
@inline function addBits(at: usize, bits: u32): void {
  for (; bits; bits >>= 8, at++) store<u8>(at, <u32>load<u8>(at) | bits);
}

/** One row of whole blocks into lanes that are zero. Returns the number of scales that are not finite. */
export function packPoints(layout: u32, source: usize, blocks: u32, row: u32, target: usize): u32 {
  const fileBytes = <usize>fileBlockBytes(layout), bytes = <usize>cellBytes(layout);
  const bits = indexBits(layout), count = pointsOfRow(layout), plane = <usize>scaleBytes(layout);
  const beside = plane + count * bits;
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
      const signs = signsOf(layout, source, c);
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
