// Codes of a file's block on their way into a cell: first as bytes, column after column, then as the planes of
// wasm/weight_layout.ts. Where they lie is told by fields (quant/fields.ts, wasm/format_layouts.ts). A row of a cell at
// a time, the fields of formats that models come in as vectors, others as plain loops.
import { PACKING_BASE_11, PACKING_FIELDS, PACKING_MAGNITUDES } from "../generated/layouts";

const LOWEST: u32 = 0x01010101;
const PAIRS: u32 = 0x03030303;

/** What a word says of a field: its byte, and the logarithms of the bits of an entry and of the bytes of a run. */
@inline export function byteOf(field: u32): usize { return field & 0xffff; }
@inline function logOf(field: u32): u32 { return (field >> 16) & 15; }
@inline export function turnOf(field: u32): u32 { return (field >> 20) & 15; }
@inline function maskOf(bits: u32): u32 { return (<u32>1 << bits) - 1; }
@inline export function bitsOf(field: u32): u32 { return <u32>1 << logOf(field); }
/** Unsigned bytes, kept less 128. */
const UNSIGNED: u32 = 1 << 24;

/** Byte of entry `i`. Divisions are shifts: they would take longer than all else. */
@inline function placeIn(start: usize, log: u32, turn: u32, i: u32): usize {
  return start + (i >> (3 - log + turn) << turn) + (i & maskOf(turn));
}

/** Bit of an entry in its byte. */
@inline function shiftIn(log: u32, turn: u32, i: u32): u32 { return ((i >> turn) & maskOf(3 - log)) << log; }

/** Entry `i` of a field that begins at `start`. */
@inline function entryIn(start: usize, log: u32, turn: u32, i: u32): u32 {
  return (<u32>load<u8>(placeIn(start, log, turn, i)) >> shiftIn(log, turn, i)) & maskOf(1 << log);
}

/** Stores the 32 codes of two vectors, or adds them to what is there, `below` bits up. */
@inline function putVectors(out: usize, first: v128, second: v128, below: u32): void {
  if (below) {
    // No code reaches over its byte, so words may be shifted, which takes one instruction.
    first = v128.or(v128.load(out), i32x4.shl(first, below));
    second = v128.or(v128.load(out, 16), i32x4.shl(second, below));
  }
  v128.store(out, first);
  v128.store(out, second, 16);
}

/** Stores the field of codes `column` to `column + count`; one that is `below` bits up is added to what is there. */
@inline function putField(at: usize, field: u32, column: u32, count: u32, below: u32, out: usize): void {
  const log = logOf(field), turn = turnOf(field), start = at + byteOf(field);
  if (count == 32) {
    if (log == 2 && turn < 5) {
      const bytes = v128.load(start + (column >> 1)), low = v128.and(bytes, i8x16.splat(15)), high = i8x16.shr_u(bytes, 4);
      if (turn == 4) return putVectors(out, low, high, below);
      if (turn == 3) return putVectors(out, v128.shuffle<i64>(low, high, 0, 2), v128.shuffle<i64>(low, high, 1, 3), below);
      const first = i8x16.shuffle(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      const second = i8x16.shuffle(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      return putVectors(out, first, second, below);
    }
    if (turn >= 5) {
      const bytes = placeIn(start, log, turn, column), shift = shiftIn(log, turn, column), mask = i8x16.splat(<i8>maskOf(1 << log));
      const first = i32x4.shr_u(v128.load(bytes), shift), second = i32x4.shr_u(v128.load(bytes, 16), shift);
      return putVectors(out, v128.and(first, mask), v128.and(second, mask), below);
    }
    if (log == 3) {
      const flip = i8x16.splat(field & UNSIGNED ? -128 : 0), bytes = start + column;
      return putVectors(out, v128.xor(v128.load(bytes), flip), v128.xor(v128.load(bytes, 16), flip), 0);
    }
  }
  const flip: u32 = field & UNSIGNED ? 128 : 0;
  for (let j: u32 = 0; j < count; j++) {
    const code = entryIn(start, log, turn, column + j) ^ flip;
    store<u8>(out + j, below ? <u32>load<u8>(out + j) | (code << below) : code);
  }
}

/** Two codes of 0..10 in 7 bits, of eight columns at a time (quant/formats/q3h_b64t1.ts). */
function readBase11(at: usize, column: u32, count: u32, out: usize): void {
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

/** Codes that lie in no fields. */
function readPacking(packing: u32, at: usize, column: u32, count: u32, out: usize): void {
  if (packing == PACKING_BASE_11) return readBase11(at, column, count, out);
  if (packing != PACKING_MAGNITUDES) unreachable();
  for (let j: u32 = 0; j < count; j++) {
    const byte = <i32>load<u8>(at + column + j);
    store<u8>(out + j, byte < 128 ? byte : 128 - byte);
  }
}

/** Codes of columns `column` to `column + count` of the block at `at` as bytes: one field or two, or a packing. */
export function readCodes(at: usize, low: u32, high: u32, column: u32, count: u32, out: usize): void {
  const packing = low >> 25;
  if (packing != PACKING_FIELDS) return readPacking(packing, at + byteOf(low), column, count, out);
  putField(at, low, column, count, 0, out);
  if (high) putField(at, high, column, count, bitsOf(low), out);
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
  if (bits == 6) {
    for (let s: usize = 0; s < 2; s++, target += 96, codes += 16) {
      const fourth = load<u32>(codes + 12);
      store<u32>(target, load<u32>(codes) | ((fourth >> 4) & PAIRS) << 6);
      store<u32>(target + 32, load<u32>(codes + 4) | ((fourth >> 2) & PAIRS) << 6);
      store<u32>(target + 64, load<u32>(codes + 8) | (fourth & PAIRS) << 6);
    }
    return;
  }
  const low = v128.and(v128.load(codes), i8x16.splat(15)), high = v128.and(v128.load(codes, 16), i8x16.splat(15));
  const nibbles = v128.or(low, i32x4.shl(high, 4));
  v128.store_lane<u32>(target, nibbles, 0);
  v128.store_lane<u32>(target, nibbles, 1, 32);
  v128.store_lane<u32>(target, nibbles, 2, 64);
  v128.store_lane<u32>(target, nibbles, 3, 96);
  if (bits == 5) store<u32>(target + 128, plane(codes, 4, LOWEST, 1, 8));
}
