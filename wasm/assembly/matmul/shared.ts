// Vector constants of the matmul family, and small pieces that generated and written kernels share.
// Constants lie in memory and are loaded into locals at the start of a function: V8 would build an
// immediate vector anew at every use inside a loop.

/** 0x01 in every byte. */
export const BIT0_AT: usize = memory.data<u32>([0x01010101, 0x01010101, 0x01010101, 0x01010101], 16);
/** 0x03 in every byte. */
export const LOW2_AT: usize = memory.data<u32>([0x03030303, 0x03030303, 0x03030303, 0x03030303], 16);
/** 0x02 in every byte. */
export const BIT1_AT: usize = memory.data<u32>([0x02020202, 0x02020202, 0x02020202, 0x02020202], 16);
/** 0x08 in every byte. */
export const BIT3_AT: usize = memory.data<u32>([0x08080808, 0x08080808, 0x08080808, 0x08080808], 16);
/** Each of the first four bytes, four times. */
export const FOURFOLD_AT: usize = memory.data<u32>([0, 0x01010101, 0x02020202, 0x03030303], 16);
/** 0x04 in every byte. */
export const BIT2_AT: usize = memory.data<u32>([0x04040404, 0x04040404, 0x04040404, 0x04040404], 16);
/** 0x0f in every byte. */
export const LOW4_AT: usize = memory.data<u32>([0x0f0f0f0f, 0x0f0f0f0f, 0x0f0f0f0f, 0x0f0f0f0f], 16);
/** 0x10 in every byte. */
export const BIT4_AT: usize = memory.data<u32>([0x10101010, 0x10101010, 0x10101010, 0x10101010], 16);
/** 0x3f, 0x30, 0x0c and 0x03 in every byte. */
export const SIX_BITS_AT: usize = memory.data<u32>([
  0x3f3f3f3f, 0x3f3f3f3f, 0x3f3f3f3f, 0x3f3f3f3f, 0x30303030, 0x30303030, 0x30303030, 0x30303030,
  0x0c0c0c0c, 0x0c0c0c0c, 0x0c0c0c0c, 0x0c0c0c0c, 0x03030303, 0x03030303, 0x03030303, 0x03030303,
], 16);
/** 1 in every 16-bit lane. */
export const ONES_AT: usize = memory.data<u32>([0x00010001, 0x00010001, 0x00010001, 0x00010001], 16);
/**
 * Bytes 0 to 3, 4 to 7, 8 to 11 and 12 to 15 as 32 bits; 0 to 3 and 4 to 7 twice each as 16 bits; of pairs of 16 bits the
 * first and the second, twice (gen/steps.ts). In the order of joined lanes (gen/gemv_joined.ts): bytes 0 to 7 twice, 8 to 15 as 16
 * bits, and of pairs of bytes the first and the second, twice.
 */
export const SPREAD_AT: usize = memory.data<u32>([
  0xffffff00, 0xffffff01, 0xffffff02, 0xffffff03, 0xffffff04, 0xffffff05, 0xffffff06, 0xffffff07,
  0xffffff08, 0xffffff09, 0xffffff0a, 0xffffff0b, 0xffffff0c, 0xffffff0d, 0xffffff0e, 0xffffff0f,
  0xff00ff00, 0xff01ff01, 0xff02ff02, 0xff03ff03, 0xff04ff04, 0xff05ff05, 0xff06ff06, 0xff07ff07,
  0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c, 0x03020302, 0x07060706, 0x0b0a0b0a, 0x0f0e0f0e,
  0x04040000, 0x05050101, 0x06060202, 0x07070303, 0xff0cff08, 0xff0dff09, 0xff0eff0a, 0xff0fff0b,
  0x08080000, 0x0a0a0202, 0x0c0c0404, 0x0e0e0606, 0x09090101, 0x0b0b0303, 0x0d0d0505, 0x0f0f0707,
  0x09080100, 0x0b0a0302, 0x0d0c0504, 0x0f0e0706,
], 16);
/** All bits of 32-bit lanes 0 and 2. */
export const EVEN_LANES_AT: usize = memory.data<u32>([0xffffffff, 0, 0xffffffff, 0], 16);
/** 0xff in every 16-bit lane. */
export const LOW_BYTES_AT: usize = memory.data<u32>([0x00ff00ff, 0x00ff00ff, 0x00ff00ff, 0x00ff00ff], 16);
/** 0xff in every 32-bit lane. */
export const LOW_BYTE_AT: usize = memory.data<u32>([0xff, 0xff, 0xff, 0xff], 16);
/**
 * A half float, sign-extended to 32 bits and shifted left by 13, has its exponent and mantissa in place
 * and copies of its sign above them. This mask keeps one; multiplying by 2^112 corrects the exponent's
 * bias, and is exact for subnormals too.
 */
export const HALF_BITS_AT: usize = memory.data<u32>([0x8fffffff, 0x8fffffff, 0x8fffffff, 0x8fffffff], 16);
/** 1.5 · 2^23 in every float lane: where sums start that are read as floats (gen/dots.ts). */
export const SUM_START_AT: usize = memory.data<f32>([12582912, 12582912, 12582912, 12582912], 16);
/** 2^112 in every float lane. */
export const HALF_SCALE_AT: usize = memory.data<u32>([0x77800000, 0x77800000, 0x77800000, 0x77800000], 16);
/**
 * E4M3 without its sign, shifted left by 20, has exponent and mantissa in place; this corrects the exponent's
 * bias and halves, because codes are doubled (quant/formats/nvfp4.ts).
 */
export const E4M3_FACTOR: f32 = reinterpret<f32>(0x7b000000);
/** 127 in every byte, and 255: operands of the question in q8.ts. */
export const BYTES_127_AT: usize = memory.data<u32>([0x7f7f7f7f, 0x7f7f7f7f, 0x7f7f7f7f, 0x7f7f7f7f], 16);
export const BYTES_255_AT: usize = memory.data<u32>([0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff], 16);

/** Value of a half float; exact, infinities are not handled. */
@inline export function halfToFloat(bits: u32): f32 {
  const magnitude = reinterpret<f32>((bits & 0x7fff) << 13) * reinterpret<f32>(0x77800000);
  return bits & 0x8000 ? -magnitude : magnitude;
}
/** Of half floats that stand before a block (gen/scales.ts): exponents' difference, 2^-14, sign, magnitude, least exponent. */
export const BLOCK_HALF_AT: usize = memory.data<u32>([
  0x38000000, 0x38000000, 0x38000000, 0x38000000,
  0x38800000, 0x38800000, 0x38800000, 0x38800000,
  0x80000000, 0x80000000, 0x80000000, 0x80000000,
  0x0fffe000, 0x0fffe000, 0x0fffe000, 0x0fffe000,
  0x00800000, 0x00800000, 0x00800000, 0x00800000,
], 16);
