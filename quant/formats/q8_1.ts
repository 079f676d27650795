// Q8_1: 32 values in 36 bytes. f16 scale d, f16 s = d * sum of codes, 32 signed bytes. x = d * q.
// ggml quantises activations to it and never stores it in files; s serves dot products only.

import { defineBlockFormat } from "../block_format.ts";
import { byteEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";
import { writeF16 } from "../half.ts";

/** 8-bit symmetric with the block's sum, for activations. */
export const q8_1: NumberFormat = defineBlockFormat({
  ...{ name: "Q8_1", ggmlType: 9, blockSize: 32, blockBytes: 36 },
  codes: [{ at: 4, bits: 8, run: 1 }],
  signed: true,
  use: "scratch",
  scales: { kind: "d", floats: [0] },
  bounds: { error: 1 / 254 + 0.0005 },
  encode: byteEncoder(4, (out, b, { sum, d }) => writeF16(out, b + 2, Math.fround(sum * d))),
});
