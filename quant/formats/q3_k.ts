// Q3_K: 256 values in 110 bytes, 3.4375 bits a value. 32 bytes of third bits (bit h of byte l is value
// 32 h + l's), 64 bytes of low 2 bits laid out as in Q2_K, 12 bytes with sixteen 6-bit scales, f16 d.
// x = d * (scale - 32) * q, where q is the low bits, less 4 if the third bit is clear.

import { defineBlockFormat } from "../block_format.ts";
import { roundHalfEven, signedExtreme } from "../extremes.ts";
import { fitByDescent, fitSymmetric } from "../fit.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";

const f = Math.fround;

/** 3-bit symmetric, 16 sub-blocks of 16 under one super-scale. */
export const q3_k: NumberFormat = defineBlockFormat({
  ...{ name: "Q3_K", ggmlType: 11, blockSize: 256, blockBytes: 110 },
  codes: [{ at: 32, bits: 2, run: 32 }, { at: 0, bits: 1, run: 32 }],
  offset: 4,
  scales: {
    kind: "k16",
    floats: [108],
    integers: { fields: [{ at: 96, bits: 4, run: 8 }, { at: 104, bits: 2, run: 4 }], offset: 32 },
  },
  grid: { codes: 8 },
  usesImportance: true,
  bounds: { error: 1 / 3, settles: true },
  encode({ values, out, options, writeCodes }) {
    const weights = importanceWeights(values, options, 256);
    const block = new Float32Array(256);
    const codes = new Uint8Array(256);
    const scales = new Float32Array(16);
    for (let b = 0, o = 0; o < values.length; b += 110, o += 256) {
      block.set(values.subarray(o, o + 256));
      for (let sub = 0; sub < 16; sub++) {
        scales[sub] = weights
          ? fitSymmetric(block, sub * 16, 16, 4, codes, weights.subarray(o, o + 256))
          : fitByDescent(block, sub * 16, 16, 4, codes);
      }
      out.fill(0, b, b + 110);
      writeHeader(out, b, scales, weights && sumsOf16(weights, o));
      for (let sub = 0; sub < 16; sub++) {
        const d = f(readF16(out, b + 108) * (scaleCode(out, b + 96, sub) - 32));
        if (d === 0) continue;
        for (let i = sub * 16; i < sub * 16 + 16; i++) {
          codes[i] = 4 + Math.max(-4, Math.min(3, roundHalfEven(f(block[i]! / d))));
        }
      }
      writeCodes(codes, out, b);
    }
  },
});

function sumsOf16(weights: Float32Array, start: number): Float32Array {
  return Float32Array.from({ length: 16 }, (_, sub) => {
    const first = start + sub * 16;
    return weights.subarray(first, first + 16).reduce((sum, weight) => sum + weight, 0);
  });
}

// The scale furthest from zero becomes code 0 (= -32), and d takes its sign; with weights d is fitted.
function writeHeader(
  out: Uint8Array,
  at: number,
  scales: Float32Array,
  weights: Float32Array | undefined,
): void {
  const extreme = signedExtreme(scales, 0, 16);
  if (extreme === 0) return;
  const fitted = weights ? fitSymmetric(scales, 0, 16, 32, new Uint8Array(16), weights) : 0;
  const inverse = f(fitted === 0 ? -32 / extreme : 1 / fitted);
  writeF16(out, at + 108, f(1 / inverse));
  for (let i = 0; i < 16; i++) {
    const code = 32 + Math.max(-32, Math.min(31, roundHalfEven(f(inverse * scales[i]!))));
    out[at + 96 + (i & 7)]! |= (code & 15) << (i < 8 ? 0 : 4);
    out[at + 104 + (i & 3)]! |= (code >> 4) << (2 * (i >> 2));
  }
}

/**
 * Scale code 0..63 of sub-block `i` (0..15); `at` is the offset of the 12 bytes: bytes 0..7 hold the low
 * nibbles of scales 0..7 and 8..15, bytes 8..11 the high bit pairs, scale i's in byte 8 + i % 4.
 */
function scaleCode(bytes: Uint8Array, at: number, i: number): number {
  const low = (bytes[at + (i & 7)]! >> (i < 8 ? 0 : 4)) & 15;
  const high = (bytes[at + 8 + (i & 3)]! >> (2 * (i >> 2))) & 3;
  return low | (high << 4);
}
