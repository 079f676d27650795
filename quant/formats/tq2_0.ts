// TQ2_0: 256 ternary values in 66 bytes, 2.0625 bits a value. 64 bytes of 2-bit codes, f16 d.
// x = d * (q - 1). Codes of each half of 128 share 32 bytes: byte l holds values l, l + 32, l + 64,
// l + 96, low bits first. Code 3 (= 2 d) is legal in a file and never written.

import { defineBlockFormat } from "../block_format.ts";
import { ternaryEncoder } from "../encoders.ts";
import type { NumberFormat } from "../format.ts";

/** Ternary, four values a byte, one scale for 256. */
export const tq2_0: NumberFormat = defineBlockFormat({
  ...{ name: "TQ2_0", ggmlType: 35, blockSize: 256, blockBytes: 66 },
  codes: [{ at: 0, bits: 2, run: 32 }],
  offset: 1,
  scales: { kind: "d", floats: [64] },
  bounds: { error: 1 / 2 + 0.001 },
  encode: ternaryEncoder({ bytes: 66, scaleAt: 64 }),
});
