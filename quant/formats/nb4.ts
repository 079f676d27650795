// NB4: 32 values in 24 bytes, 6 bits a value: what onnxruntime's MatMulNBits means with 4 bits, scales
// of float32 and zero points, laid together. f32 scale d, f32 minimum m, then 16 bytes: byte j holds
// value j in its low nibble and value j + 16 in its high one. x = d * q + m. No file holds it; the
// reader of ONNX graphs makes it while weights stream in, since half floats (Q4_1) would round the
// scales. Kernels may or may not round the product before the sum.

import { inverseScale, maximum, minimum } from "../extremes.ts";
import type { NumberFormat } from "../format.ts";
import { writeHalves } from "../nibbles.ts";

/** 4-bit affine, float32 scale and minimum for 32 values. */
export const nb4: NumberFormat = {
  name: "NB4",
  blockSize: 32,
  blockBytes: 24,
  decode(bytes, out) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let b = 0, o = 0; o < out.length; b += 24, o += 32) {
      const d = view.getFloat32(b, true), m = view.getFloat32(b + 4, true);
      for (let j = 0; j < 16; j++) {
        const q = bytes[b + 8 + j]!;
        out[o + j] = d * (q & 15) + m;
        out[o + j + 16] = d * (q >> 4) + m;
      }
    }
  },
  grid: { codes: 16, write: (codes, out, at) => writeHalves(codes, out, at + 8) },
  encode(values, out) {
    const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
    for (let b = 0, o = 0; o < values.length; b += 24, o += 32) {
      const min = minimum(values, o, 32);
      const d = Math.fround(Math.fround(maximum(values, o, 32) - min) / 15);
      const inverse = inverseScale(d);
      const code = (i: number) => Math.min(15, Math.round((values[o + i]! - min) * inverse));
      view.setFloat32(b, d, true);
      view.setFloat32(b + 4, min, true);
      for (let j = 0; j < 16; j++) out[b + 8 + j] = code(j) | (code(j + 16) << 4);
    }
  },
};
