// Rows of activations in signed 8 bit, as they lie in memory between quantize and matmul
// (spec LF-3, MD-11). A row of K values, K a multiple of 32, is
//   K int8 codes · K/32 float32 scales · K/32 float32 sums · K/32 float32 half sums · padding to 16 bytes
// where a group of 32 has scale = max|x| / 127, code = x / scale to nearest, ties to even, sum = scale ·
// Σ codes (weights with minima or offsets are multiplied by it: y = s(d Σ qc + m Σ q)), and half sum the
// same over its first 16 codes, for weights with a scale per 16.

/** Values that share a scale. */
export const Q8_GROUP = 32;

/**
 * Bytes of one row of `k` values.
 *
 * @throws {RangeError} If `k` is not a positive multiple of 32.
 */
export function q8RowBytes(k: number): number {
  if (!Number.isInteger(k) || k <= 0 || k % Q8_GROUP !== 0) {
    throw new RangeError(`Cannot quantise rows of ${k} values: give a multiple of ${Q8_GROUP}`);
  }
  return Math.ceil((k + 12 * (k / Q8_GROUP)) / 16) * 16;
}

/**
 * Quantises one row; the definition by which the kernels are judged.
 *
 * @param x `k` values.
 * @param out Receives `q8RowBytes(k)` bytes; its offset in its buffer must be a multiple of 4.
 */
export function quantizeQ8Row(x: Float32Array, out: Uint8Array): void {
  const groups = x.length / Q8_GROUP;
  const codes = new Int8Array(out.buffer, out.byteOffset, x.length);
  const floats = new Float32Array(out.buffer, out.byteOffset + x.length, 3 * groups);
  for (let g = 0; g < groups; g++) {
    const start = g * Q8_GROUP;
    let largest = 0;
    for (let i = start; i < start + Q8_GROUP; i++) largest = Math.max(largest, Math.abs(x[i]!));
    const scale = Math.fround(largest / 127);
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
    floats[2 * groups + g] = scale * firstHalf;
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

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
