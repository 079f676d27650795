// Layouts of ggml's formats of 256 columns a block, in which scales of 16 or 32 columns are integers under one or
// two floats. They stay integers, a byte each: rounding their product to 16 bits would change the weights.

import { minimumCode, scaleCode } from "../../quant/k_scales.ts";
import { scaleCode as signedScaleCode } from "../../quant/formats/q3_k.ts";
import { type BlockReader, type CodeLayout, defineCodeLayout } from "./code_layout.ts";
import { CURVE } from "./ggml_formats.ts";
import { addFields, copyBytes, type FileRows, splitNibbleQuads, wordAt } from "./quads.ts";

/** Adds the pair codes of a group: each half of 128 columns shares 32 bytes. */
function addPairsOf(
  file: FileRows,
  at: number,
  group: number,
  quads: Int32Array,
  up = 0,
): void {
  addFields(file, at + 32 * (group >> 2), quads, 3, 2 * (group & 3), up);
}

/** Q2_K: 16 bytes of scales and minima, codes, then d and dmin. */
const TWO_BITS: BlockReader = {
  bytes: 84,
  columns: 256,
  codes(file, at, group, quads) {
    quads.fill(0);
    addPairsOf(file, at + 16, group, quads);
  },
  scales(file, at, plane, to) {
    copyBytes(file, at + 80, plane, to, 4);
    copyBytes(file, at, plane, to + 4, 16);
  },
};

/** Q3_K: bit g of byte l is the third of column 32 g + l; then the other two, scales, d. */
const THREE_BITS: BlockReader = {
  bytes: 110,
  columns: 256,
  codes(file, at, group, quads) {
    quads.fill(0);
    addPairsOf(file, at + 32, group, quads);
    addFields(file, at, quads, 1, group, 2);
  },
  scales(file, at, plane, to) {
    copyBytes(file, at + 108, plane, to, 2);
    for (let i = 0; i < 16; i++) plane[to + 4 + i] = signedScaleCode(file.bytes, at + 96, i) - 32;
  },
};

/** Q4_K and Q5_K: 32 bytes hold a group's nibbles low and the next one's high. */
function affineBlocks(fifth: boolean): BlockReader {
  const nibbles = fifth ? 48 : 16;
  return {
    bytes: fifth ? 176 : 144,
    columns: 256,
    codes(file, at, group, quads) {
      const from = at + nibbles + 32 * (group >> 1), shift = 4 * (group & 1);
      for (let q = 0; q < 8; q++) {
        quads[q] = (wordAt(file, from + 4 * q) >> shift) & 0x0f0f0f0f;
      }
      if (fifth) addFields(file, at + 16, quads, 1, group, 4);
    },
    scales(file, at, plane, to) {
      copyBytes(file, at, plane, to, 4);
      for (let sub = 0; sub < 8; sub++) {
        plane[to + 4 + 2 * sub] = scaleCode(file.bytes, at + 4, sub);
        plane[to + 5 + 2 * sub] = minimumCode(file.bytes, at + 4, sub);
      }
    },
  };
}

/** Q6_K: a half of 128 columns has 64 bytes of nibbles, two groups low and two high, and 32 of bit pairs. */
const SIX_BITS: BlockReader = {
  bytes: 210,
  columns: 256,
  codes(file, at, group, quads) {
    const from = at + 64 * (group >> 2) + 32 * (group & 1), shift = 2 * (group & 2);
    for (let q = 0; q < 8; q++) quads[q] = (wordAt(file, from + 4 * q) >> shift) & 0x0f0f0f0f;
    addPairsOf(file, at + 128, group, quads, 4);
  },
  scales(file, at, plane, to) {
    copyBytes(file, at + 208, plane, to, 2);
    copyBytes(file, at + 192, plane, to + 4, 16);
  },
};

/** IQ4_XS: d, high pairs of scales, their low nibbles, indices of levels. */
const LEVELS: BlockReader = {
  bytes: 136,
  columns: 256,
  codes: (file, at, group, quads) => splitNibbleQuads(file, at + 8 + 16 * group, quads),
  scales(file, at, plane, to) {
    copyBytes(file, at, plane, to, 2);
    for (let sub = 0; sub < 8; sub++) {
      const low = (file.bytes[at + 4 + (sub >> 1)]! >> (4 * (sub & 1))) & 15;
      const high = (file.bytes[at + 2 + (sub >> 2)]! >> (2 * (sub & 3))) & 3;
      plane[to + 4 + sub] = (low | (high << 4)) - 32;
    }
  },
};

/** TQ2_0: codes, then d. */
const TERNARY: BlockReader = {
  bytes: 66,
  columns: 256,
  codes(file, at, group, quads) {
    quads.fill(0);
    addPairsOf(file, at, group, quads);
  },
  scales: (file, at, plane, to) => copyBytes(file, at + 64, plane, to, 2),
};

/** By name of the format. */
export const K_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  Q2_K: defineCodeLayout({ codes: "u2", scales: "kn16" }, TWO_BITS),
  Q3_K: defineCodeLayout({ codes: "u3", scales: "k16", offset: 4 }, THREE_BITS),
  Q4_K: defineCodeLayout({ codes: "u4", scales: "k" }, affineBlocks(false)),
  Q5_K: defineCodeLayout({ codes: "u5", scales: "k" }, affineBlocks(true)),
  Q6_K: defineCodeLayout({ codes: "u6", scales: "k16", offset: 32 }, SIX_BITS),
  IQ4_XS: defineCodeLayout({ ...CURVE, scales: "k8" }, LEVELS),
  TQ2_0: defineCodeLayout({ codes: "u2", scales: "d", span: 256, offset: 1 }, TERNARY),
};
