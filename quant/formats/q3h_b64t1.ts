// Q3H of Inferflow: eleven levels, two values in one code of 7 bits ("3.5 bits"), 64 values in 32 bytes.
// Pair code c = even + 11 * odd, as the program stores it (the paper's equations have the digits the
// other way round). Eight values are four pair codes c0..c3 (r numbers the eights of a block):
//   h[r / 2]: bit 4 (r odd) or 0 (r even) plus j is bit 6 of c_j     4 bytes
//   m[r]:     bits 2j and 2j + 1 are bits 4 and 5 of c_j             8 bytes
//   d[2r]:    low nibbles of c0 and c1; d[2r + 1]: of c2 and c3      16 bytes
// Dividing by 11 is a product and a shift, exact for all codes of 7 bits.

import type { CodePacking } from "../fields.ts";
import { defineInferflowBlock } from "./inferflow_block.ts";
import type { NumberFormat } from "../format.ts";

/** Pair code of two codes of 0 to 10. */
export function joinPair(even: number, odd: number): number {
  return even + 11 * odd;
}

/** The second code of a pair code of 0 to 127; the first is what is left of `pair - 11 * second`. */
export function secondOfPair(pair: number): number {
  return (pair * 187) >> 11;
}

const packing: CodePacking = {
  ...{ name: "base_11", bits: 4, at: 4 },
  pack(codes, out, block) {
    const at = block + 4;
    out.fill(0, at, at + 28);
    for (let r = 0; r < 8; r++) {
      for (let j = 0; j < 4; j++) {
        const pair = joinPair(codes[8 * r + 2 * j]!, codes[8 * r + 2 * j + 1]!);
        out[at + (r >> 1)]! |= (pair >> 6) << (4 * (r & 1) + j);
        out[at + 4 + r]! |= ((pair >> 4) & 3) << (2 * j);
        out[at + 12 + 2 * r + (j >> 1)]! |= (pair & 15) << (4 * (j & 1));
      }
    }
  },
  unpack(bytes, block, codes) {
    const at = block + 4;
    for (let r = 0; r < 8; r++) {
      for (let j = 0; j < 4; j++) {
        const high = (bytes[at + (r >> 1)]! >> (4 * (r & 1) + j)) & 1;
        const middle = (bytes[at + 4 + r]! >> (2 * j)) & 3;
        const low = (bytes[at + 12 + 2 * r + (j >> 1)]! >> (4 * (j & 1))) & 15;
        const pair = (high << 6) | (middle << 4) | low;
        const odd = secondOfPair(pair);
        codes[8 * r + 2 * j] = pair - 11 * odd;
        codes[8 * r + 2 * j + 1] = odd;
      }
    }
  },
};

/** 3.5-bit codes, 64 values under one base and scale, 4 bits a value in all. */
export const q3h_b64t1: NumberFormat = defineInferflowBlock({
  name: "Q3H_B64T1",
  blockSize: 64,
  blockBytes: 32,
  grid: { top: 10 },
  codes: packing,
});
