// BF16: the upper half of a binary32, little-endian. Encoding rounds to nearest, ties to even.

import type { NumberFormat } from "../format.ts";
import { bf16ToF32, f32ToBf16 } from "../half.ts";

/** bfloat16. */
export const bf16: NumberFormat = {
  name: "BF16",
  ggmlType: 30,
  blockSize: 1,
  blockBytes: 2,
  bounds: { error: 2 ** -8, relative: 2 ** -8 },
  decode(bytes, out) {
    for (let i = 0; i < out.length; i++) {
      out[i] = bf16ToF32(bytes[2 * i]! | (bytes[2 * i + 1]! << 8));
    }
  },
  encode(values, out) {
    for (let i = 0; i < values.length; i++) {
      const bits = f32ToBf16(values[i]!);
      out[2 * i] = bits & 0xff;
      out[2 * i + 1] = bits >>> 8;
    }
  },
};
