// Layouts of Inferflow's blocks: base and scale, then codes in sequence, cut into high and low bits of which the
// high ones stand first. The header is turned round, because elsewhere scales come before minima.

import { secondOfPair } from "../../quant/formats/q3h_b64t1.ts";
import { type BlockReader, type CodeLayout, defineCodeLayout } from "./code_layout.ts";
import { addBits, addPairs, byteQuads, copySwapped, nibbleQuads } from "./quads.ts";

/** Blocks of so many columns and bits. */
function splitBlocks(columns: 32 | 64, bits: 2 | 3 | 4 | 5 | 6): BlockReader {
  const low = bits < 4 ? 2 : 4, high = bits - low;
  const lows = 4 + columns * high / 8;
  return {
    bytes: 4 + columns * bits / 8,
    columns,
    codes(file, at, group, quads) {
      if (low === 4) nibbleQuads(file, at + lows + 16 * group, quads);
      else {
        quads.fill(0);
        addPairs(file, at + lows + 8 * group, quads, 0);
      }
      if (high === 1) addBits(file, at + 4 + 4 * group, quads, low);
      else if (high === 2) addPairs(file, at + 4 + 8 * group, quads, low);
    },
    scales: copySwapped,
  };
}

/** Q8_B32T1: codes 0 to 255, which become signed bytes. */
const BYTES: BlockReader = {
  bytes: 36,
  columns: 32,
  codes(file, at, _group, quads) {
    byteQuads(file, at + 4, quads);
    for (let q = 0; q < 8; q++) quads[q]! ^= 0x80808080;
  },
  scales: copySwapped,
};

/**
 * Q3H: 7 bits for two codes (quant/formats/q3h_b64t1.ts). They become nibbles, 4.5 bits a column for 4 in the file: what
 * the eighth more costs in reading is less than taking pairs apart in every product.
 */
const CODE_PAIRS: BlockReader = {
  bytes: 32,
  columns: 64,
  codes(file, at, group, quads) {
    for (let q = 0; q < 8; q++) {
      // Four columns are two pair codes, and eight the four of a row r.
      const r = 4 * group + (q >> 1), first = 2 * (q & 1);
      const bits = file.bytes[at + 4 + (r >> 1)]! >> (4 * (r & 1));
      const nibbles = file.bytes[at + 16 + 2 * r + (q & 1)]!;
      let quad = 0;
      for (let j = 0; j < 2; j++) {
        const middle = (file.bytes[at + 8 + r]! >> (2 * (first + j))) & 3;
        const pair = (((bits >> (first + j)) & 1) << 6) | (middle << 4) |
          ((nibbles >> (4 * j)) & 15);
        const second = secondOfPair(pair);
        quad |= ((pair - 11 * second) | (second << 8)) << (16 * j);
      }
      quads[q] = quad;
    }
  },
  scales: copySwapped,
};

/** Two blocks of Q4_B16, a group: bytes of base and scale, then nibbles. */
const SIXTEENS: BlockReader = {
  bytes: 20,
  columns: 32,
  codes(file, at, _group, quads) {
    for (let q = 0; q < 8; q++) {
      const from = at + 10 * (q >> 2) + 2 + 2 * (q & 3);
      const low = file.bytes[from]!, high = file.bytes[from + 1]!;
      quads[q] = (low & 15) | ((low & 0xf0) << 4) | ((high & 15) << 16) | ((high & 0xf0) << 20);
    }
  },
  scales(file, at, plane, to) {
    for (let i = 0; i < 4; i++) plane[to + i] = file.bytes[at + 10 * (i >> 1) + (i & 1)]!;
  },
};

const FOUR = defineCodeLayout({ codes: "u4", scales: "dm" }, splitBlocks(32, 4));
const THREE = defineCodeLayout({ codes: "u3", scales: "dm" }, splitBlocks(32, 3));
const TWO = defineCodeLayout({ codes: "u2", scales: "dm" }, splitBlocks(32, 2));

/** By name of the format. */
export const INFERFLOW_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  Q8_B32T1: defineCodeLayout({ codes: "i8", variant: "u", scales: "dm", offset: -128 }, BYTES),
  Q6_B64T1: defineCodeLayout({ codes: "u6", scales: "dm", span: 64 }, splitBlocks(64, 6)),
  Q5_B64T1: defineCodeLayout({ codes: "u5", scales: "dm", span: 64 }, splitBlocks(64, 5)),
  Q4_B64T1: defineCodeLayout({ codes: "u4", scales: "dm", span: 64 }, splitBlocks(64, 4)),
  Q4_B32T1A: FOUR,
  Q4_B32T1B: FOUR,
  Q4_B16: defineCodeLayout({ codes: "u4", scales: "b16" }, SIXTEENS),
  Q3H_B64T1: defineCodeLayout({ codes: "u4", scales: "dm", span: 64 }, CODE_PAIRS),
  Q3_B32T1A: THREE,
  Q3_B32T1B: THREE,
  Q2_B32T1A: TWO,
  Q2_B32T1B: TWO,
};
