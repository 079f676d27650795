// Products in LF8 on both sides, as LlamaF computes them (algorithm 1): rows of activations are quantised like
// weights (equation 1, groups of 256), the sums of a group are whole numbers, and float32 adds
//   y_i = Σ_j ((Σ_k x_jk · w_ijk) · ws_ij) · xs_j
// in the order of j. The definition of precision "strict": kernels give the same bits.
//   a row of K values: for each 256 of them f32 scale, then signed codes (quant/formats/lf8.ts)

import { roundHalfAway, signedExtreme } from "./extremes.ts";
import { readF32, writeF32 } from "./half.ts";

/** Values that share a scale. */
export const LF8_GROUP = 256;
const GROUP_BYTES = 4 + LF8_GROUP;

/**
 * Bytes of one row of `k` values.
 *
 * @throws {RangeError} If `k` is not a positive multiple of 256.
 */
export function lf8RowBytes(k: number): number {
  if (!Number.isInteger(k) || k <= 0 || k % LF8_GROUP !== 0) {
    throw new RangeError(
      `Cannot store rows of ${k} values as LF8: give a multiple of ${LF8_GROUP}`,
    );
  }
  return k / LF8_GROUP * GROUP_BYTES;
}

/**
 * Quantises one row of activations. A value that is not finite makes the scale of its group NaN, and so the
 * outputs.
 *
 * @param out Receives `lf8RowBytes(x.length)` bytes.
 */
export function quantizeLf8Row(x: Float32Array, out: Uint8Array): void {
  for (let start = 0, at = 0; start < x.length; start += LF8_GROUP, at += GROUP_BYTES) {
    const group = x.subarray(start, start + LF8_GROUP);
    const extreme = group.every(Number.isFinite)
      ? Math.abs(signedExtreme(group, 0, LF8_GROUP))
      : NaN;
    writeF32(out, at, extreme / 127.5);
    for (let k = 0; k < LF8_GROUP; k++) {
      // By the unrounded scale, so that the extremes fall on 127.5 exactly.
      const code = extreme > 0 ? roundHalfAway(group[k]! * 127.5 / extreme) : 0;
      out[at + 4 + k] = Math.max(-128, Math.min(127, code));
    }
  }
}

/** Product of a row of activations and a row of weights, both LF8, in float32 and in the order of the groups. */
export function multiplyLf8Rows(x: Uint8Array, w: Uint8Array): number {
  let total = 0;
  for (let at = 0; at < w.length; at += GROUP_BYTES) {
    let sum = 0;
    for (let k = at + 4; k < at + GROUP_BYTES; k++) {
      sum += ((x[k]! << 24) >> 24) * ((w[k]! << 24) >> 24);
    }
    const scaled = Math.fround(Math.fround(sum * readF32(w, at)) * readF32(x, at));
    total = Math.fround(total + scaled);
  }
  return total;
}
