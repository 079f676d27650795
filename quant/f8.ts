// The 8-bit floats that checkpoints are stored in (OCP FP8): a code is a number, without scales. Both are exact in
// bfloat16. No encoder: nothing here writes them, since scales of any kind lose less.

import type { NumberFormat } from "./format.ts";
import { decodeSmallFloat, type SmallFloat } from "./small_floats.ts";

function defineF8(name: string, float: SmallFloat): NumberFormat {
  const values = Float32Array.from({ length: 256 }, (_, code) => decodeSmallFloat(float, code));
  return {
    name,
    blockSize: 1,
    blockBytes: 1,
    decode(bytes, out) {
      for (let i = 0; i < out.length; i++) out[i] = values[bytes[i]!]!;
    },
  };
}

/** E4M3 without infinity, and E5M2. */
export const f8: readonly NumberFormat[] = [
  defineF8("F8_E4M3", "f8e4m3fn"),
  defineF8("F8_E5M2", "f8e5m2"),
];
