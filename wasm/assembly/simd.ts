// Small SIMD tools that kernels share. `ASC_FEATURE_RELAXED_SIMD` is a compile-time constant, so one text
// gives both variants.

/** a · b + c; fused in the relaxed variant where the processor can. */
@inline export function madd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c);
  else return f32x4.add(f32x4.mul(a, b), c);
}

/** Whether the relaxed dot is one instruction, as on newer processors: all bits of its second operand count then. */
export function hasDot(): bool {
  if (!ASC_FEATURE_RELAXED_SIMD) return false;
  const dot = i32x4.relaxed_dot_i8x16_i7x16_add_s(i8x16.splat(127), i8x16.splat(-1), i32x4.splat(0));
  const sum = i32x4.extract_lane(dot, 0);
  return sum == 4 * 127 * 255 || sum == -4 * 127;
}

/** Bytes of `table` at indices 0..15. */
@inline export function lookUp(table: v128, indices: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return i8x16.relaxed_swizzle(table, indices);
  else return i8x16.swizzle(table, indices);
}

/** Sum of the four lanes. */
@inline export function sum4(v: v128): f32 {
  const pairs = f32x4.add(v, i8x16.shuffle(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  return f32x4.extract_lane(pairs, 0) + f32x4.extract_lane(pairs, 1);
}

/** Largest of the four lanes; by vectors, since V8 chooses between two floats by a branch, which is guessed wrong. */
@inline export function max4(v: v128): f32 {
  const pairs = f32x4.pmax(v, v128.shuffle<i32>(v, v, 2, 3, 0, 1));
  return f32x4.extract_lane(f32x4.pmax(pairs, v128.shuffle<i32>(pairs, pairs, 1, 0, 3, 2)), 0);
}

/** Sums of the lanes of two vectors, in lanes 0 and 1. */
@inline export function sums2(a: v128, b: v128): v128 {
  const ab = pairSums(a, b);
  return f32x4.add(
    i8x16.shuffle(ab, ab, 0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11),
    i8x16.shuffle(ab, ab, 4, 5, 6, 7, 12, 13, 14, 15, 4, 5, 6, 7, 12, 13, 14, 15),
  );
}

/** Half sums of the lanes of two vectors, two lanes each, for `sumsOfPairs`. */
@inline export function pairSums(a: v128, b: v128): v128 {
  return f32x4.add(
    i8x16.shuffle(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
    i8x16.shuffle(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31),
  );
}

@inline export function sumsOfPairs(ab: v128, cd: v128): v128 {
  return f32x4.add(
    i8x16.shuffle(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
    i8x16.shuffle(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31),
  );
}

/** Sums of the lanes of four vectors, as one vector. */
@inline export function sums4(a: v128, b: v128, c: v128, d: v128): v128 {
  return sumsOfPairs(pairSums(a, b), pairSums(c, d));
}
