// NB4: 32 values in 24 bytes, 6 bits a value: what onnxruntime's MatMulNBits means with 4 bits, scales
// of float32 and zero points, laid together. f32 scale d, f32 minimum m, then 16 bytes: byte j holds
// value j in its low nibble and value j + 16 in its high one. x = d * q + m. No file holds it; the
// reader of ONNX graphs makes it while weights stream in, since half floats (Q4_1) would round the
// scales. Kernels may or may not round the product before the sum.

import { defineBlockFormat } from "../block_format.ts";
import { inverseScale, maximum, minimum } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { writeF32 } from "../half.ts";

/** 4-bit affine, float32 scale and minimum for 32 values. */
export const nb4: NumberFormat = defineBlockFormat({
  ...{ name: "NB4", blockSize: 32, blockBytes: 24 },
  codes: [{ at: 8, bits: 4, run: 16 }],
  scales: { kind: "fm", floats: [0, 4] },
  grid: { codes: 16 },
  // The float32 scale is found from rounded ends.
  bounds: { error: 1 / 15 + 0.0001, shrink: 1e-6 },
  use: "scratch",
  encode({ values, out, writeCodes }) {
    const codes = new Uint8Array(32);
    for (let b = 0, o = 0; o < values.length; b += 24, o += 32) {
      const min = minimum(values, o, 32);
      const d = Math.fround(Math.fround(maximum(values, o, 32) - min) / 15);
      const inverse = inverseScale(d);
      writeF32(out, b, d);
      writeF32(out, b + 4, min);
      for (let j = 0; j < 32; j++) {
        codes[j] = Math.min(15, Math.round((values[o + j]! - min) * inverse));
      }
      writeCodes(codes, out, b);
    }
  },
});
