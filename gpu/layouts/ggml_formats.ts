// Layouts of ggml's formats of 32 to 128 columns a block: scales, perhaps the bits above a nibble, codes.

import { IQ4_LEVELS } from "../../quant/iq4_fit.ts";
import { type BlockReader, type CodeLayout, defineCodeLayout } from "./code_layout.ts";
import { levelPairs } from "./code_planes.ts";
import { addBits, byteQuads, copyBytes, splitNibbleQuads, wordAt } from "./quads.ts";

/** Blocks of 32: bytes of scales, perhaps 4 bytes of fifth bits, then nibbles. */
function nibbleBlocks(scales: number, fifth = false): BlockReader {
  const codes = scales + (fifth ? 4 : 0);
  return {
    bytes: codes + 16,
    columns: 32,
    ...!fifth && { codesAt: codes },
    codes(file, at, _group, quads) {
      splitNibbleQuads(file, at + codes, quads);
      if (fifth) addBits(file, at + scales, quads, 4);
    },
    scales: (file, at, plane, to) => copyBytes(file, at, plane, to, scales),
  };
}

/** Q8_0. */
const BYTES: BlockReader = {
  bytes: 34,
  columns: 32,
  codesAt: 2,
  codes: (file, at, _group, quads) => byteQuads(file, at + 2, quads),
  scales: (file, at, plane, to) => copyBytes(file, at, plane, to, 2),
};

/** Q1_0: bit i is column i's. */
const SIGNS: BlockReader = {
  bytes: 18,
  columns: 128,
  codes(file, at, group, quads) {
    quads.fill(0);
    addBits(file, at + 2 + 4 * group, quads, 0);
  },
  scales: (file, at, plane, to) => copyBytes(file, at, plane, to, 2),
};

/** NVFP4: four scales, then 8 bytes for 16 columns, of which byte j holds column j low and j + 8 high. */
const SIXTEENS: BlockReader = {
  bytes: 36,
  columns: 64,
  codes(file, at, group, quads) {
    for (let half = 0; half < 2; half++) {
      for (let q = 0; q < 2; q++) {
        const word = wordAt(file, at + 4 + 16 * group + 8 * half + 4 * q);
        quads[4 * half + q] = word & 0x0f0f0f0f;
        quads[4 * half + q + 2] = (word >> 4) & 0x0f0f0f0f;
      }
    }
  },
  scales: (file, at, plane, to) => copyBytes(file, at, plane, to, 4),
};

/**
 * Floats of 4 bits, E2M1, and levels of IQ4_NL and IQ4_XS. E2M1 is made of its
 * bits and IQ4's levels come from a table of pairs, the fastest of six ways each (bench/results/kernels.md).
 */
const FLOATS = { codes: "f4", offset: 16 } as const;
/** The levels. */
export const CURVE = { codes: "l4", table: () => levelPairs(IQ4_LEVELS) } as const;

/** By name of the format. */
export const GGML_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  Q1_0: defineCodeLayout({ codes: "s1", scales: "d", span: 128 }, SIGNS),
  Q4_0: defineCodeLayout({ codes: "u4", scales: "d", offset: 8 }, nibbleBlocks(2)),
  Q4_1: defineCodeLayout({ codes: "u4", scales: "dm" }, nibbleBlocks(4)),
  Q5_0: defineCodeLayout({ codes: "u5", scales: "d", offset: 16 }, nibbleBlocks(2, true)),
  Q5_1: defineCodeLayout({ codes: "u5", scales: "dm" }, nibbleBlocks(4, true)),
  Q8_0: defineCodeLayout({ codes: "i8", scales: "d" }, BYTES),
  IQ4_NL: defineCodeLayout({ ...CURVE, scales: "d" }, nibbleBlocks(2)),
  MXFP4: defineCodeLayout({ ...FLOATS, scales: "e8" }, nibbleBlocks(1)),
  NVFP4: defineCodeLayout({ ...FLOATS, scales: "e4m3" }, SIXTEENS),
};
