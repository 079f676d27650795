// The 16 values of the 4-bit float E2M1 that MXFP4 and NVFP4 share, doubled so that they are integers
// (the formats halve their scale instead). OCP Microscaling Formats (MX) v1.0, section 5.3.3.

/** Twice the value of each E2M1 code. */
export const E2M1_DOUBLED: Int8Array = new Int8Array([
  ...[0, 1, 2, 3, 4, 6, 8, 12],
  ...[0, -1, -2, -3, -4, -6, -8, -12],
]);

/** The E2M1 code whose doubled value times `scale` is nearest to `value`; the lowest code of equals. */
export function nearestE2m1(value: number, scale: number): number {
  let best = 0;
  let bestError = Infinity;
  for (let code = 0; code < 16; code++) {
    const error = Math.abs(Math.fround(Math.fround(E2M1_DOUBLED[code]! * scale) - value));
    if (error < bestError) {
      best = code;
      bestError = error;
    }
  }
  return best;
}
