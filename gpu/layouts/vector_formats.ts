// Layouts of ggml's formats whose codes are points of a set, each for four or eight columns. The points stand in a
// table beside the weights; a code is an index with the signs of its columns, eight bits for eight columns. Some
// files leave the eighth out, because the number of minus signs is even: here it is there again where a byte has
// room for it. Ternary points are shifted by an eighth: eight times their coordinate, and one more or less.

import {
  type Grid,
  iq1Grid,
  iq2SGrid,
  iq2XsGrid,
  iq2XxsGrid,
  iq3SGrid,
  iq3XxsGrid,
} from "../../quant/iq_grids.ts";
import { completeSigns } from "../../quant/iq_points.ts";
import { type CodeLayout, defineCodeLayout, type VectorReader } from "./code_layout.ts";
import { copyBytes, wordAt } from "./quads.ts";

/** Coordinates of all points as bytes. */
function pointTable(grid: () => Grid, byteOf = (coordinate: number) => coordinate) {
  return (): Uint32Array<ArrayBuffer> => {
    const { coordinates } = grid();
    return new Uint32Array(Uint8Array.from(coordinates, byteOf).buffer);
  };
}

/** IQ2_XXS: a group has four bytes of points and a word of four times 7 signs and the scale. */
const XXS_2: VectorReader = {
  bytes: 66,
  columns: 256,
  planes(file, at, [points], block) {
    for (let p = 0, to = 64 * block; p < 32; p++, to += 2) {
      const from = at + 2 + 8 * (p >> 2);
      points![to] = file.bytes[from + (p & 3)]!;
      points![to + 1] = completeSigns((wordAt(file, from + 4) >>> (7 * (p & 3))) & 127);
    }
  },
  scales(file, at, plane, to) {
    copyBytes(file, at, plane, to, 2);
    // The highest nibble of the word of signs, two groups a byte.
    for (let i = 0; i < 4; i++) {
      plane[to + 4 + i] = (file.bytes[at + 9 + 16 * i]! >> 4) |
        (file.bytes[at + 17 + 16 * i]! & 0xf0);
    }
  },
};

/** IQ2_XS: 9 bits of a point and 7 of signs; scales for 16 columns. */
const XS_2: VectorReader = {
  bytes: 74,
  columns: 256,
  planes: (file, at, [points], block) => copyBytes(file, at + 2, points!, 64 * block, 64),
  scales(file, at, plane, to) {
    copyBytes(file, at, plane, to, 2);
    copyBytes(file, at + 66, plane, to + 4, 8);
  },
};

/** IQ2_S: low bytes of points, signs, pairs of upper bits, scales for 16 columns. */
const S_2: VectorReader = {
  bytes: 82,
  columns: 256,
  planes(file, at, [points, upper], block) {
    for (let group = 0; group < 8; group++) {
      const to = 64 * block + 8 * group;
      copyBytes(file, at + 2 + 4 * group, points!, to, 4);
      copyBytes(file, at + 34 + 4 * group, points!, to + 4, 4);
    }
    copyBytes(file, at + 66, upper!, 8 * block, 8);
  },
  scales(file, at, plane, to) {
    copyBytes(file, at, plane, to, 2);
    copyBytes(file, at + 74, plane, to + 4, 8);
  },
};

/** IQ3_XXS: bytes of points, then a word of signs and scale a group. */
const XXS_3: VectorReader = {
  bytes: 98,
  columns: 256,
  planes(file, at, [points], block) {
    for (let group = 0; group < 8; group++) {
      const to = 96 * block + 12 * group;
      copyBytes(file, at + 2 + 8 * group, points!, to, 8);
      const word = wordAt(file, at + 66 + 4 * group);
      for (let i = 0; i < 4; i++) {
        points![to + 8 + i] = completeSigns((word >>> (7 * i)) & 127);
      }
    }
  },
  scales(file, at, plane, to) {
    copyBytes(file, at, plane, to, 2);
    for (let i = 0; i < 4; i++) {
      plane[to + 4 + i] = (file.bytes[at + 69 + 8 * i]! >> 4) |
        (file.bytes[at + 73 + 8 * i]! & 0xf0);
    }
  },
};

/** IQ3_S: low bytes of points, ninth bits, signs, scales. */
const S_3: VectorReader = {
  bytes: 110,
  columns: 256,
  planes(file, at, [points, upper], block) {
    for (let group = 0; group < 8; group++) {
      const to = 96 * block + 12 * group;
      copyBytes(file, at + 2 + 8 * group, points!, to, 8);
      copyBytes(file, at + 74 + 4 * group, points!, to + 8, 4);
    }
    copyBytes(file, at + 66, upper!, 8 * block, 8);
  },
  scales(file, at, plane, to) {
    copyBytes(file, at, plane, to, 2);
    copyBytes(file, at + 106, plane, to + 4, 4);
  },
};

/** IQ1_S: low bytes of points, then 16 bits a group: four times 3 upper bits, the scale, the sign of its shift. */
const S_1: VectorReader = {
  bytes: 50,
  columns: 256,
  planes(file, at, [points, upper], block) {
    copyBytes(file, at + 2, points!, 32 * block, 32);
    for (let group = 0; group < 8; group++) {
      const low = file.bytes[at + 34 + 2 * group]!, high = file.bytes[at + 35 + 2 * group]!;
      const bits = low | (high << 8), shift = (high & 0x80) >> 4;
      const nibble = (p: number) => ((bits >> (3 * p)) & 7) | shift;
      upper![16 * block + 2 * group] = nibble(0) | (nibble(1) << 4);
      upper![16 * block + 2 * group + 1] = nibble(2) | (nibble(3) << 4);
    }
  },
  scales(file, at, plane, to) {
    copyBytes(file, at, plane, to, 2);
    const scale = (group: number) => (file.bytes[at + 35 + 2 * group]! >> 4) & 7;
    for (let i = 0; i < 4; i++) plane[to + 4 + i] = scale(2 * i) | (scale(2 * i + 1) << 4);
  },
};

/** IQ1_M: low bytes of points, nibbles of upper bits and shifts, four times 16 bits: four scales, a nibble of d. */
const M_1: VectorReader = {
  bytes: 56,
  columns: 256,
  planes(file, at, [points, upper], block) {
    copyBytes(file, at, points!, 32 * block, 32);
    copyBytes(file, at + 32, upper!, 16 * block, 16);
  },
  scales(file, at, plane, to) {
    plane[to] = (file.bytes[at + 49]! >> 4) | (file.bytes[at + 51]! & 0xf0);
    plane[to + 1] = (file.bytes[at + 53]! >> 4) | (file.bytes[at + 55]! & 0xf0);
    for (let quarter = 0; quarter < 4; quarter++) {
      const bits = file.bytes[at + 48 + 2 * quarter]! | (file.bytes[at + 49 + 2 * quarter]! << 8);
      plane[to + 4 + 2 * quarter] = (bits & 7) | ((bits & 0x38) << 1);
      plane[to + 5 + 2 * quarter] = ((bits >> 6) & 7) | ((bits >> 5) & 0x70);
    }
  },
};

/** Ternary points as bytes without a sign. */
const SHIFTED = { codes: "p11", offset: 16, factor: 0.25 } as const;
const ternaryTable = pointTable(iq1Grid, (coordinate) => 8 * coordinate + 16);

/** By name of the format. */
export const VECTOR_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  IQ1_S: defineCodeLayout({ ...SHIFTED, scales: "n8", table: ternaryTable }, S_1),
  IQ1_M: defineCodeLayout({ ...SHIFTED, scales: "n16", table: ternaryTable }, M_1),
  IQ2_XXS: defineCodeLayout(
    { codes: "p8", scales: "n8", factor: 0.25, table: pointTable(iq2XxsGrid) },
    XXS_2,
  ),
  IQ2_XS: defineCodeLayout(
    { codes: "p9", scales: "n16", factor: 0.25, table: pointTable(iq2XsGrid) },
    XS_2,
  ),
  IQ2_S: defineCodeLayout(
    { codes: "p10", scales: "n16", factor: 0.25, table: pointTable(iq2SGrid) },
    S_2,
  ),
  IQ3_XXS: defineCodeLayout(
    { codes: "q8", scales: "n8", factor: 0.5, table: pointTable(iq3XxsGrid) },
    XXS_3,
  ),
  IQ3_S: defineCodeLayout(
    { codes: "q9", scales: "n8", factor: 2, table: pointTable(iq3SGrid) },
    S_3,
  ),
};
