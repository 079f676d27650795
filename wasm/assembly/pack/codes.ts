// Codes of a file's block on their way into a cell: first as bytes, column after column, then as the planes of
// wasm/weight_layout.ts. Orders are those of wasm/format_layouts.ts. A row of a cell at a time, the orders of
// formats that models come in as vectors, others as plain loops.
import {
  ORDER_BASE_11, ORDER_BITS, ORDER_BIT_PAIRS, ORDER_HALVES_16, ORDER_HALVES_32, ORDER_K_2, ORDER_K_3,
  ORDER_MAGNITUDES, ORDER_PAIRS, ORDER_SIGNED, ORDER_SPLIT_1_2, ORDER_SPLIT_1_4, ORDER_SPLIT_2_4, ORDER_UNSIGNED,
} from "../generated/layouts";

const NIBBLES: u32 = 0x0f0f0f0f;
const LOWEST: u32 = 0x01010101;
const PAIRS: u32 = 0x03030303;

/** Adds the fields of `bits` bits that begin at `at` to `count` codes, at bit `shift`. */
function addFields(at: usize, bits: u32, column: u32, count: u32, shift: u32, out: usize): void {
  const each: u32 = 8 / bits, mask: u32 = (1 << bits) - 1;
  for (let j: u32 = 0; j < count; j++) {
    const c = column + j;
    const field = (<u32>load<u8>(at + c / each) >> (bits * (c % each))) & mask;
    store<u8>(out + j, <u32>load<u8>(out + j) | (field << shift));
  }
}

/** Nibbles of groups of `span` columns, the first half of them low. */
function addHalves(at: usize, span: u32, column: u32, count: u32, out: usize): void {
  const half = span >> 1;
  if (count == 32) {
    const bytes = v128.load(at + (column >> 1)), low = v128.and(bytes, i8x16.splat(15)), high = i8x16.shr_u(bytes, 4);
    v128.store(out, half == 16 ? low : v128.shuffle<i64>(low, high, 0, 2));
    v128.store(out, half == 16 ? high : v128.shuffle<i64>(low, high, 1, 3), 16);
    return;
  }
  for (let j: u32 = 0; j < count; j++) {
    const c = column + j, i = c % span;
    const byte = <u32>load<u8>(at + c / span * half + i % half);
    store<u8>(out + j, i < half ? byte & 15 : byte >> 4);
  }
}

/** Two codes of 0..10 in 7 bits, of eight columns at a time (quant/formats/q3h_b64t1.ts). */
function addBase11(at: usize, column: u32, count: u32, out: usize): void {
  for (let c = column; c < column + count; c += 2, out += 2) {
    const r = c >> 3, j = (c & 7) >> 1;
    const high = (<u32>load<u8>(at + (r >> 1)) >> (4 * (r & 1) + j)) & 1;
    const middle = (<u32>load<u8>(at + 4 + r) >> (2 * j)) & 3;
    const low = (<u32>load<u8>(at + 12 + 2 * r + (j >> 1)) >> (4 * (j & 1))) & 15;
    const pair = (high << 6) | (middle << 4) | low, odd = pair / 11;
    store<u8>(out, pair - 11 * odd);
    store<u8>(out, odd, 1);
  }
}

/** Bit pairs of four times 32 columns a byte. */
function addK2(at: usize, column: u32, count: u32, out: usize): void {
  if (count == 32) {
    const bytes = at + (column >> 7 << 5), shift = <i32>(2 * ((column >> 5) & 3)), pair = i8x16.splat(3);
    v128.store(out, v128.and(i8x16.shr_u(v128.load(bytes), shift), pair));
    v128.store(out, v128.and(i8x16.shr_u(v128.load(bytes, 16), shift), pair), 16);
    return;
  }
  for (let j: u32 = 0; j < count; j++) {
    const c = column + j;
    store<u8>(out + j, (<u32>load<u8>(at + (c >> 7 << 5) + (c & 31)) >> (2 * ((c >> 5) & 3))) & 3);
  }
}

/**
 * Codes of columns `column` to `column + count` of a block as bytes; `at` is where its codes begin, `columns` its
 * length.
 */
export function readCodes(order: u32, at: usize, columns: u32, column: u32, count: u32, out: usize): void {
  if (count == 32) {
    // A call of memory.fill takes longer than all else here.
    v128.store(out, i32x4.splat(0));
    v128.store(out, i32x4.splat(0), 16);
  } else memory.fill(out, 0, count);
  switch (order) {
    case ORDER_PAIRS: {
      if (count < 32) return addFields(at, 4, column, count, 0, out);
      const bytes = v128.load(at + (column >> 1)), low4 = i8x16.splat(15);
      const low = v128.and(bytes, low4), high = i8x16.shr_u(bytes, 4);
      v128.store(out, i8x16.shuffle(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
      v128.store(out, i8x16.shuffle(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16);
      return;
    }
    case ORDER_HALVES_32: return addHalves(at, 32, column, count, out);
    case ORDER_HALVES_16: return addHalves(at, 16, column, count, out);
    case ORDER_SIGNED: return memory.copy(out, at + column, count);
    case ORDER_UNSIGNED: {
      for (let j: u32 = 0; j < count; j++) store<u8>(out + j, load<u8>(at + column + j) ^ 0x80);
      return;
    }
    case ORDER_SPLIT_1_4: {
      addFields(at, 1, column, count, 4, out);
      return addFields(at + (columns >> 3), 4, column, count, 0, out);
    }
    case ORDER_SPLIT_2_4: {
      addFields(at, 2, column, count, 4, out);
      return addFields(at + (columns >> 2), 4, column, count, 0, out);
    }
    case ORDER_SPLIT_1_2: {
      addFields(at, 1, column, count, 2, out);
      return addFields(at + (columns >> 3), 2, column, count, 0, out);
    }
    case ORDER_MAGNITUDES: {
      for (let j: u32 = 0; j < count; j++) {
        const byte = <i32>load<u8>(at + column + j);
        store<u8>(out + j, byte < 128 ? byte : 128 - byte);
      }
      return;
    }
    case ORDER_BITS: return addFields(at, 1, column, count, 0, out);
    case ORDER_BIT_PAIRS: return addFields(at, 2, column, count, 0, out);
    case ORDER_BASE_11: return addBase11(at, column, count, out);
    case ORDER_K_2: return addK2(at, column, count, out);
    case ORDER_K_3: {
      addK2(at + 32, column, count, out);
      if (count == 32) {
        const shift = <i32>(column >> 5), one = i8x16.splat(1);
        for (let h: usize = 0; h < 32; h += 16) {
          const thirds = v128.and(i8x16.shr_u(v128.load(at + h), shift), one);
          v128.store(out + h, v128.or(v128.load(out + h), i32x4.shl(thirds, 2)));
        }
        return;
      }
      for (let j: u32 = 0; j < count; j++) {
        const c = column + j, third = (<u32>load<u8>(at + (c & 31)) >> (c >> 5)) & 1;
        store<u8>(out + j, <u32>load<u8>(out + j) | (third << 2));
      }
      return;
    }
  }
  unreachable();
}

/** Field `mask` at bit `shift` of the codes of every fourth column from `codes` on, `width` bits apart, of `count`. */
@inline function plane(codes: usize, shift: u32, mask: u32, width: u32, count: u32): u32 {
  let word: u32 = 0;
  for (let q: u32 = 0; q < count; q++) word |= ((load<u32>(codes + 4 * q) >> shift) & mask) << (width * q);
  return word;
}

/** Stores 32 codes of a row; `target` is the row's lane in the first vector of codes. */
export function storeCodes(bits: u32, codes: usize, target: usize): void {
  if (bits == 8) {
    for (let q: usize = 0; q < 8; q++) store<u32>(target + 32 * q, load<u32>(codes + 4 * q));
    return;
  }
  if (bits == 1) {
    store<u32>(target, plane(codes, 0, LOWEST, 1, 8));
    return;
  }
  if (bits < 4) {
    store<u32>(target, plane(codes, 0, PAIRS, 2, 4));
    store<u32>(target + 32, plane(codes + 16, 0, PAIRS, 2, 4));
    if (bits == 3) store<u32>(target + 64, plane(codes, 2, LOWEST, 1, 8));
    return;
  }
  for (let p: usize = 0; p < 4; p++) {
    const low = load<u32>(codes + 4 * p) & NIBBLES, high = load<u32>(codes + 16 + 4 * p) & NIBBLES;
    store<u32>(target + 32 * p, low | (high << 4));
  }
  if (bits == 5) store<u32>(target + 128, plane(codes, 4, LOWEST, 1, 8));
  if (bits == 6) {
    store<u32>(target + 128, plane(codes, 4, PAIRS, 2, 4));
    store<u32>(target + 160, plane(codes + 16, 4, PAIRS, 2, 4));
  }
}
