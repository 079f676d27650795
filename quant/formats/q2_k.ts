// Q2_K: 256 values in 84 bytes, 2.625 bits a value. 16 bytes, one for 16 values: scale in the low
// nibble, minimum in the high; 64 bytes of 2-bit codes; f16 d, f16 dmin. x = d * scale * q - dmin * min.
// Codes of each half of 128 share 32 bytes: byte l holds values l, l + 32, l + 64, l + 96, low bits first.

import { defineBlockFormat } from "../block_format.ts";
import { roundHalfEven } from "../extremes.ts";
import { fitAffine, WEIGHTED_SEARCH } from "../fit.ts";
import { fitMultiples, type Multiples } from "../fit_multiples.ts";
import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";
import { importanceWeights } from "../importance.ts";

const f = Math.fround;
const SEARCH = { maxCode: 3, from: -0.5, trials: 15, absolute: true };

/** 2-bit affine, 16 sub-blocks of 16 under one super-scale. */
export const q2_k: NumberFormat = defineBlockFormat({
  ...{ name: "Q2_K", ggmlType: 10, blockSize: 256, blockBytes: 84 },
  codes: [{ at: 16, bits: 2, run: 32 }],
  scales: { kind: "kn16", floats: [80, 82], integers: 0 },
  grid: { codes: 4 },
  usesImportance: true,
  bounds: { error: 1 / 2, settles: true },
  encode({ values, out, options, writeCodes }) {
    const given = importanceWeights(values, options, 256);
    const block = new Float32Array(256);
    const codes = new Uint8Array(256);
    const trial = new Uint8Array(16);
    const weights = new Float32Array(16);
    const scales = new Float32Array(16);
    const minima = new Float32Array(16);
    const sums = new Float32Array(16);
    for (let b = 0, o = 0; o < values.length; b += 84, o += 256) {
      block.set(values.subarray(o, o + 256));
      for (let sub = 0; sub < 16; sub++) {
        const first = o + sub * 16;
        if (given) weights.set(given.subarray(first, first + 16));
        else for (let i = 0; i < 16; i++) weights[i] = Math.abs(values[first + i]!);
        const search = given ? { ...SEARCH, ...WEIGHTED_SEARCH } : SEARCH;
        const fit = fitAffine(block, sub * 16, weights, search, codes, trial);
        scales[sub] = fit.scale;
        minima[sub] = fit.minimum;
        sums[sub] = weights.reduce((sum, weight) => sum + weight, 0);
      }
      writeHeader(out, b, scales, minima, given && sums);
      chooseCodes(block, out, b, codes);
      writeCodes(codes, out, b);
    }
  },
});

function writeHeader(
  out: Uint8Array,
  at: number,
  scales: Float32Array,
  minima: Float32Array,
  sums: Float32Array | undefined,
): void {
  const fit = (parts: Float32Array) => sums ? fitMultiples(parts, sums, 15) : fourBits(parts);
  const scale = fit(scales);
  const minimum = fit(minima);
  for (let sub = 0; sub < 16; sub++) {
    out[at + sub] = scale.codes[sub]! | (minimum.codes[sub]! << 4);
  }
  writeF16(out, at + 80, scale.unit);
  writeF16(out, at + 82, minimum.unit);
}

function fourBits(parts: Float32Array): Multiples {
  const greatest = Math.max(0, ...parts);
  const inverse = greatest > 0 ? f(15 / greatest) : 0;
  const codes = Uint8Array.from(parts, (part) => roundHalfEven(f(inverse * part)));
  return { unit: f(greatest / 15), codes };
}

// The codes for the scales and minima as they were rounded. A sub-block of scale 0 keeps the codes it has.
function chooseCodes(block: Float32Array, out: Uint8Array, at: number, codes: Uint8Array): void {
  for (let sub = 0; sub < 16; sub++) {
    const d = f(readF16(out, at + 80) * (out[at + sub]! & 15));
    if (d === 0) continue;
    const minimum = f(readF16(out, at + 82) * (out[at + sub]! >> 4));
    for (let i = sub * 16; i < sub * 16 + 16; i++) {
      codes[i] = Math.max(0, Math.min(3, roundHalfEven(f(f(block[i]! + minimum) / d))));
    }
  }
}
