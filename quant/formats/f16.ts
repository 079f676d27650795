// F16: IEEE binary16, little-endian. Encoding rounds to nearest, ties to even.

import type { NumberFormat } from "../format.ts";
import { readF16, writeF16 } from "../half.ts";

/** IEEE binary16. */
export const f16: NumberFormat = {
  name: "F16",
  ggmlType: 1,
  blockSize: 1,
  blockBytes: 2,
  bounds: { error: 2 ** -11 },
  decode(bytes, out) {
    for (let i = 0; i < out.length; i++) out[i] = readF16(bytes, i * 2);
  },
  encode(values, out) {
    for (let i = 0; i < values.length; i++) writeF16(out, i * 2, values[i]!);
  },
};
