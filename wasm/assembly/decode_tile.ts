// Columns of one tile of eight weight rows as float32, column after column: exactly the numbers of the
// format. Serves the float products and the embedding.
//   codes:  unpack, then d · code + m; the product is exact, so the one rounding is the format's own
//   floats: widen
//   rows:   a scalar decoder (Q2_K, Q3_K)
import {
  LAYOUT_BF16, LAYOUT_F16, LAYOUT_F32, LAYOUT_Q2_K, LAYOUT_Q3_K, blockBytes, blockColumns, groupColumns, hasCodes,
} from "./generated/layouts";
import { unpack } from "./generated/unpack";
import { HALF_BITS_AT, HALF_SCALE_AT, LOW_BYTE_AT, halfToFloat } from "./matmul_simd";

/** Most columns of a run; runs start at multiples of it. */
export const RUN: u32 = 256;
/** Bytes of scratch memory that decoding a run takes. */
export const DECODE_BYTES: usize = 256 * 8 + 256 / 16 * 64;

function fromCodes(codes: usize, scales: usize, columns: u32, group: u32, out: usize): void {
  const low = v128.load(LOW_BYTE_AT);
  for (let k: u32 = 0; k < columns; k += group, scales += 64) {
    const d0 = v128.load(scales), d1 = v128.load(scales, 16);
    const m0 = v128.load(scales, 32), m1 = v128.load(scales, 48);
    for (const end = codes + 8 * group; codes < end; codes += 32) {
      const c0 = v128.load(codes), c1 = v128.load(codes, 16);
      for (let i = 0; i < 4; i++, out += 32) {
        const a = f32x4.convert_i32x4_u(v128.and(i32x4.shr_u(c0, 8 * i), low));
        const b = f32x4.convert_i32x4_u(v128.and(i32x4.shr_u(c1, 8 * i), low));
        v128.store(out, f32x4.add(f32x4.mul(a, d0), m0));
        v128.store(out, f32x4.add(f32x4.mul(b, d1), m1), 16);
      }
    }
  }
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

/** One block of 256 of Q2_K, to every eighth float. */
function decodeQ2K(block: usize, out: usize): void {
  const d = halfToFloat(load<u16>(block, 80)), dmin = halfToFloat(load<u16>(block, 82));
  for (let sub: usize = 0; sub < 16; sub++) {
    const packed = load<u8>(block + sub);
    const scale = d * <f32>(packed & 15), minimum = dmin * <f32>(packed >> 4);
    const codes = block + 16 + (sub >> 3) * 32 + (sub & 1) * 16;
    for (let l: usize = 0; l < 16; l++, out += 32) {
      store<f32>(out, scale * <f32>((load<u8>(codes + l) >> <u8>(sub & 6)) & 3) - minimum);
    }
  }
}

/** One block of 256 of Q3_K, to every eighth float. */
function decodeQ3K(block: usize, out: usize): void {
  const d = halfToFloat(load<u16>(block, 108));
  for (let sub: usize = 0; sub < 16; sub++) {
    const low = (load<u8>(block + 96 + (sub & 7)) >> <u8>(sub < 8 ? 0 : 4)) & 15;
    const high = (load<u8>(block + 104 + (sub & 3)) >> <u8>(2 * (sub >> 2))) & 3;
    const scale = d * <f32>(<i32>(low | (high << 4)) - 32);
    const column = (sub & 1) * 16;
    const codes = block + 32 + (sub >> 3) * 32 + column;
    for (let l: usize = 0; l < 16; l++, out += 32) {
      const bits = (load<u8>(codes + l) >> <u8>(sub & 6)) & 3;
      const third = (load<u8>(block + column + l) >> <u8>(sub >> 1)) & 1;
      store<f32>(out, scale * <f32>(<i32>bits - (third ? 0 : 4)));
    }
  }
}

/**
 * Decodes columns `column` to `column + count` (at most RUN, from a multiple of it) of the tile at `w`
 * whose rows have `columns` columns. Returns where they are: `out`, or in place if they are float32.
 */
export function decodeColumns(layout: u32, w: usize, columns: u32, column: u32, count: u32, out: usize, scratch: usize): usize {
  const at = w + <usize>(column / blockColumns(layout)) * blockBytes(layout);
  if (hasCodes(layout)) {
    const scales = scratch + 8 * RUN;
    unpack(layout, at, count, scratch, 32, scales, 64, 0x80);
    fromCodes(scratch, scales, count, groupColumns(layout), out);
  } else if (layout == LAYOUT_F32) return at;
  else if (layout == LAYOUT_F16) fromHalves(at, count, out);
  else if (layout == LAYOUT_BF16) fromBrainFloats(at, count, out);
  else {
    const bytes = <usize>(layout == LAYOUT_Q2_K ? 84 : 110);
    const block = w + <usize>(column >> 8) * bytes;
    const rowBytes = <usize>(columns >> 8) * bytes;
    for (let row: usize = 0; row < 8; row++) {
      if (layout == LAYOUT_Q2_K) decodeQ2K(block + row * rowBytes, out + 4 * row);
      else decodeQ3K(block + row * rowBytes, out + 4 * row);
    }
  }
  return out;
}
