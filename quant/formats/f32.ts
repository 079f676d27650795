// F32: IEEE binary32, little-endian. Copied byte for byte, so any alignment of the source will do.

import type { NumberFormat } from "../format.ts";
import { readF32, writeF32 } from "../half.ts";

/** IEEE binary32. */
export const f32: NumberFormat = {
  name: "F32",
  ggmlType: 0,
  blockSize: 1,
  blockBytes: 4,
  bounds: { error: 0 },
  decode(bytes, out) {
    for (let i = 0; i < out.length; i++) out[i] = readF32(bytes, i * 4);
  },
  encode(values, out) {
    for (let i = 0; i < values.length; i++) writeF32(out, i * 4, values[i]!);
  },
};
