// Unpacking of TQ1_0, whose bytes have five digits of base 3 (quant/formats/tq1_0.ts): digit n is what 3^n times the byte has
// above 8 bits, times 3. Bytes come with their top bit turned, which multiplying by 3 keeps, so that digits are two
// comparisons of signed bytes.
import { HALF_BITS_AT, HALF_SCALE_AT } from "./shared";

/** 85 with the top bit turned, in every byte. */
export const THIRD_AT: usize = memory.data<u8>([213, 213, 213, 213, 213, 213, 213, 213, 213, 213, 213, 213, 213, 213, 213, 213], 16);
/** 170 with the top bit turned. */
export const THIRDS_AT: usize = memory.data<u8>([42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42], 16);

/** `count` digits of four bytes of eight rows, `step` apart. */
function unpackDigits(w: usize, codes: usize, step: usize, count: u32): void {
  const third = v128.load(THIRD_AT), thirds = v128.load(THIRDS_AT), zero = i8x16.splat(0);
  let v0 = v128.load(w), v1 = v128.load(w, 16);
  for (let n: u32 = 0; n < count; n++, codes += step) {
    // Above 85: 3 · v is 256 or more; above 170: 512.
    v128.store(codes, i8x16.sub(i8x16.sub(zero, i8x16.gt_s(v0, third)), i8x16.gt_s(v0, thirds)));
    v128.store(codes, i8x16.sub(i8x16.sub(zero, i8x16.gt_s(v1, third)), i8x16.gt_s(v1, thirds)), 16);
    v0 = i8x16.add(v0, i8x16.add(v0, v0));
    v1 = i8x16.add(v1, i8x16.add(v1, v1));
  }
}

/** As gen/unpack.ts does; `columns` are whole blocks of 256. */
export function unpackTernary(w: usize, columns: usize, codes: usize, codeStride: usize, scales: usize, scaleStride: usize): void {
  const bits = v128.load(HALF_BITS_AT), scale = v128.load(HALF_SCALE_AT);
  for (let k: usize = 0; k < columns; k += 256) {
    const h = v128.load(w);
    const d0 = f32x4.mul(v128.and(i32x4.shl(i32x4.extend_low_i16x8_s(h), 13), bits), scale);
    const d1 = f32x4.mul(v128.and(i32x4.shl(i32x4.extend_high_i16x8_s(h), 13), bits), scale);
    for (let cell = 0; cell < 8; cell++, scales += scaleStride) {
      v128.store(scales, d0);
      v128.store(scales, d1, 16);
      v128.store(scales, f32x4.neg(d0), 32);
      v128.store(scales, f32x4.neg(d1), 48);
    }
    w += 16;
    // Digits of the first eight words are a cell apart, of the next four half a cell, of the last a quad.
    for (let i: usize = 0; i < 8; i++, w += 32) unpackDigits(w, codes + i * codeStride, 8 * codeStride, 5);
    for (let i: usize = 0; i < 4; i++, w += 32) unpackDigits(w, codes + (40 + i) * codeStride, 4 * codeStride, 5);
    unpackDigits(w, codes + 60 * codeStride, codeStride, 4);
    w += 32;
    codes += 64 * codeStride;
  }
}
