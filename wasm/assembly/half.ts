// float16 ↔ float32, four values at a time.

const MASK: usize = memory.data<u32>([0x8fffe000, 0x8fffe000, 0x8fffe000, 0x8fffe000], 16);

/** Second argument of movedHalf4, to be kept in a local. */
@inline export function halfMask(): v128 { return v128.load(MASK); }

/** Four halves at `address`, moved to float32's place: their values times 2^-112, if they are finite. */
@inline export function movedHalf4(address: usize, mask: v128): v128 {
  return v128.and(i32x4.shl(v128.load16x4_s(address), 13), mask);
}

/**
 * Four float32 to halves, round to nearest even, in the low 16 bits of the lanes.
 * 1. Normal results: add 0xfff plus the last kept bit, which carries into the exponent by itself.
 * 2. Subnormal results (below 2^-14): adding 0.5 makes the float unit shift and round.
 * 3. From 65520 on infinity, NaN stays NaN.
 */
@inline export function toHalf4(v: v128): v128 {
  const sign = v128.and(v, i32x4.splat(0x80000000));
  const magnitude = v128.xor(v, sign);
  const odd = v128.and(i32x4.shr_u(magnitude, 13), i32x4.splat(1));
  const rounded = i32x4.add(i32x4.add(magnitude, i32x4.splat(0xfff - (112 << 23))), odd);
  const normal = i32x4.shr_u(rounded, 13);
  const half = f32x4.splat(0.5);
  const small = i32x4.sub(f32x4.add(magnitude, half), half);
  const isSmall = i32x4.lt_s(magnitude, i32x4.splat(0x38800000));
  const isLarge = i32x4.ge_s(magnitude, i32x4.splat(0x477ff000));
  const isNaN = i32x4.gt_s(magnitude, i32x4.splat(0x7f800000));
  const special = v128.or(i32x4.splat(0x7c00), v128.and(isNaN, i32x4.splat(0x200)));
  const finite = v128.bitselect(small, normal, isSmall);
  return v128.or(v128.bitselect(special, finite, isLarge), i32x4.shr_u(sign, 16));
}

/** Stores the low 16 bits of four lanes. */
@inline export function storeHalf4(address: usize, lanes: v128): void {
  const packed = i8x16.shuffle(lanes, lanes, 0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13);
  v128.store64_lane(address, packed, 0);
}
