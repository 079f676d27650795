// unpack_bits: bytes that hold several unsigned codes as one code a byte, the first code in the low
// bits.

import { choice } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { mul } from "../../graph/dim/mod.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** Words that the attribute may be. */
const WIDTHS = ["1", "2", "4", "8"] as const;

/** (x u8[…, n]) → u8[…, n · 8 / bits]. */
export const unpackBits: OpRecord = defineOp({
  name: "unpack_bits",
  summary: "bytes of several codes as one code a byte",
  attributes: { bits: choice(WIDTHS) },
  infer(inputs, attributes) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: "u8", minRank: 1 });
    const last = mul(x.shape.at(-1)!, 8 / Number(attributes.bits));
    return [{ dtype: "u8", shape: [...x.shape.slice(0, -1), last] }];
  },
  reference({ inputs: [x], outputs: [out], attributes }) {
    const bits = Number(attributes.bits), perByte = 8 / bits, mask = 2 ** bits - 1;
    const codes = out!.data as Uint8Array, bytes = x!.data as Uint8Array;
    for (let i = 0; i < codes.length; i++) {
      codes[i] = bytes[Math.floor(i / perByte)]! >> (i % perByte) * bits & mask;
    }
  },
  cases: (random) =>
    WIDTHS.map((bits) => ({ inputs: [random.codes("u8", [3, 5])], attributes: { bits } })),
  tolerance: { ofLargest: 0, reason: "whole numbers" },
});
