// Columns of one tile of eight weight rows as float32, column after column: exactly the numbers of the
// format. Serves the float products and the embedding.
//   codes:  unpack, then by the layout's form (wasm/layout_scales.ts)
//     minimum      d · code + m; the product is exact, so the one rounding is the format's own
//     zero         (code + z) · d; the sum is exact
//     thousandths  code · (d / 1000) + m / 100 in float64, as the format has it
//     signs        d · code, or -m · code below zero; codes are signed
//   levels: look up
//   floats: widen
import {
  FORM_MINIMUM, FORM_SIGNS, FORM_THOUSANDTHS, FORM_ZERO, LAYOUT_BF16, LAYOUT_F16, LAYOUT_Q8_LOG, blockColumns, cellBytes, cellColumns, formOf, groupColumns,
  hasCodes, headerBytes,
} from "../generated/layouts";
import { Q8_LOG_AT } from "../generated/code_tables";
import { unpack } from "../generated/unpack";
import { HALF_BITS_AT, HALF_SCALE_AT, LOW_BYTE_AT } from "./shared";

/** Most columns of a run; runs start at multiples of it. */
export const RUN: u32 = 256;
/** Bytes of scratch memory that decoding a run takes. */
export const DECODE_BYTES: usize = 256 * 8 + 256 / 16 * 64;

@inline function thousandths(code: v128, d: v128, m: v128): v128 {
  const thousand = f64x2.splat(1000), hundred = f64x2.splat(100);
  const low = f64x2.add(
    f64x2.mul(f64x2.promote_low_f32x4(code), f64x2.div(f64x2.promote_low_f32x4(d), thousand)),
    f64x2.div(f64x2.promote_low_f32x4(m), hundred),
  );
  const code2 = v128.shuffle<i64>(code, code, 1, 1), d2 = v128.shuffle<i64>(d, d, 1, 1), m2 = v128.shuffle<i64>(m, m, 1, 1);
  const high = f64x2.add(
    f64x2.mul(f64x2.promote_low_f32x4(code2), f64x2.div(f64x2.promote_low_f32x4(d2), thousand)),
    f64x2.div(f64x2.promote_low_f32x4(m2), hundred),
  );
  return v128.shuffle<i64>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

@inline function formed(form: u32, code: v128, d: v128, m: v128): v128 {
  if (form == FORM_ZERO) return f32x4.mul(f32x4.add(code, m), d);
  if (form == FORM_SIGNS) {
    const below = f32x4.lt(code, f32x4.splat(0));
    return f32x4.mul(v128.bitselect(f32x4.neg(m), d, below), code);
  }
  if (form == FORM_THOUSANDTHS) return thousandths(code, d, m);
  return f32x4.add(f32x4.mul(code, d), m);
}

/** Bytes `i` of the lanes, which are signed where scales go by sign. */
@inline function codesAt(form: u32, bytes: v128, i: i32, low: v128): v128 {
  if (form == FORM_SIGNS) return f32x4.convert_i32x4_s(i32x4.shr_s(i32x4.shl(bytes, 24 - 8 * i), 24));
  return f32x4.convert_i32x4_u(v128.and(i32x4.shr_u(bytes, 8 * i), low));
}

@inline function formedRun(form: u32, codes: usize, scales: usize, columns: u32, group: u32, out: usize): void {
  const low = v128.load(LOW_BYTE_AT);
  for (let k: u32 = 0; k < columns; k += group, scales += 64) {
    const d0 = v128.load(scales), d1 = v128.load(scales, 16);
    const m0 = v128.load(scales, 32), m1 = v128.load(scales, 48);
    for (const end = codes + 8 * group; codes < end; codes += 32) {
      const c0 = v128.load(codes), c1 = v128.load(codes, 16);
      for (let i = 0; i < 4; i++, out += 32) {
        const a = codesAt(form, c0, i, low), b = codesAt(form, c1, i, low);
        v128.store(out, formed(form, a, d0, m0));
        v128.store(out, formed(form, b, d1, m1), 16);
      }
    }
  }
}

/** Numbers of unpacked codes, column after column. */
export function fromCodes(form: u32, codes: usize, scales: usize, columns: u32, group: u32, out: usize): void {
  if (form == FORM_ZERO) formedRun(FORM_ZERO, codes, scales, columns, group, out);
  else if (form == FORM_SIGNS) formedRun(FORM_SIGNS, codes, scales, columns, group, out);
  else if (form == FORM_THOUSANDTHS) formedRun(FORM_THOUSANDTHS, codes, scales, columns, group, out);
  else formedRun(FORM_MINIMUM, codes, scales, columns, group, out);
}

function fromHalves(w: usize, columns: u32, out: usize): void {
  const bits = v128.load(HALF_BITS_AT), scale = v128.load(HALF_SCALE_AT);
  for (const end = w + 16 * columns; w < end; w += 16, out += 32) {
    const h = v128.load(w);
    const a = v128.and(i32x4.shl(i32x4.extend_low_i16x8_s(h), 13), bits);
    const b = v128.and(i32x4.shl(i32x4.extend_high_i16x8_s(h), 13), bits);
    v128.store(out, f32x4.mul(a, scale));
    v128.store(out, f32x4.mul(b, scale), 16);
  }
}

function fromBrainFloats(w: usize, columns: u32, out: usize): void {
  for (const end = w + 16 * columns; w < end; w += 16, out += 32) {
    const h = v128.load(w);
    v128.store(out, i32x4.shl(i32x4.extend_low_i16x8_u(h), 16));
    v128.store(out, i32x4.shl(i32x4.extend_high_i16x8_u(h), 16), 16);
  }
}

/** Codes of 8 bit, of which a table has the numbers; whole quads of columns. */
function fromLevels(table: usize, w: usize, columns: u32, out: usize): void {
  for (let k: u32 = 0; k < columns; k += 4, w += 32, out += 128) {
    for (let row: usize = 0; row < 8; row++) {
      for (let i: usize = 0; i < 4; i++) {
        const code = <usize>load<u8>(w + 4 * row + i);
        store<f32>(out + 32 * i + 4 * row, load<f32>(table + 4 * code));
      }
    }
  }
}

/**
 * Decodes columns `column` to `column + count` (at most RUN, from a multiple of it) of the tile at `w`. Returns
 * where they are: `out`, or in place if they are float32.
 */
export function decodeColumns(layout: u32, w: usize, column: u32, count: u32, out: usize, scratch: usize): usize {
  const block = blockColumns(layout), bytes = <usize>cellBytes(layout), first = <usize>headerBytes(layout);
  const blocks = block ? column / block : 0, cells = (column - blocks * block) / cellColumns(layout);
  const header = w + blocks * (first + block / cellColumns(layout) * bytes);
  const at = cells ? header + first + cells * bytes : header;
  if (hasCodes(layout)) {
    const scales = scratch + 8 * RUN;
    unpack(layout, header, at, count, scratch, 32, scales, 64, 0x80, true, false);
    fromCodes(formOf(layout), scratch, scales, count, groupColumns(layout), out);
  } else if (layout == LAYOUT_F16) fromHalves(at, count, out);
  else if (layout == LAYOUT_BF16) fromBrainFloats(at, count, out);
  else if (layout == LAYOUT_Q8_LOG) fromLevels(Q8_LOG_AT, at, count, out);
  else return at;
  return out;
}
