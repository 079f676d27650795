// The definition of 8-bit rows (quant/q8_activation.ts), by which kernels are judged.

import { roundToEven } from "../../functions/special.ts";
import { lowScale, Q8_GROUP } from "../../quant/q8_activation.ts";

/**
 * Quantises one row.
 *
 * @param x `k` values.
 * @param out Receives `q8RowBytes(k)` bytes; its offset in its buffer must be a multiple of 4.
 * @param isLow With low sums.
 */
export function quantizeQ8Row(x: Float32Array, out: Uint8Array, isLow = false): void {
  const groups = x.length / Q8_GROUP;
  const codes = new Int8Array(out.buffer, out.byteOffset, x.length);
  const floats = new Float32Array(out.buffer, out.byteOffset + x.length, 2 * groups);
  const halves = new Int16Array(out.buffer, out.byteOffset + x.length + 8 * groups, 2 * groups);
  for (let g = 0; g < groups; g++) {
    const start = g * Q8_GROUP;
    let largest = 0;
    for (let i = start; i < start + Q8_GROUP; i++) largest = Math.max(largest, Math.abs(x[i]!));
    const plain = Math.fround(largest / 127);
    const scale = isLow ? lowScale(x.subarray(start, start + Q8_GROUP), plain) : plain;
    let sum = 0;
    let firstHalf = 0;
    for (let i = 0; i < Q8_GROUP; i++) {
      const ratio = scale === 0 ? 0 : Math.fround(x[start + i]! / scale);
      const code = Math.min(127, Math.max(-127, roundToEven(ratio)));
      codes[start + i] = code;
      sum += code;
      if (i < Q8_GROUP / 2) firstHalf += code;
    }
    floats[g] = scale;
    floats[groups + g] = scale * sum;
    halves[2 * g] = firstHalf;
    halves[2 * g + 1] = sum - firstHalf;
  }
}

/** The numbers that a quantised row of `out.length` values stands for. */
export function dequantizeQ8Row(bytes: Uint8Array, out: Float32Array): void {
  const codes = new Int8Array(bytes.buffer, bytes.byteOffset, out.length);
  const scales = new Float32Array(
    bytes.buffer,
    bytes.byteOffset + out.length,
    out.length / Q8_GROUP,
  );
  for (let i = 0; i < out.length; i++) out[i] = codes[i]! * scales[Math.floor(i / Q8_GROUP)]!;
}
