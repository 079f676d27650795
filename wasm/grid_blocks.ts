// IQ1, IQ2 and IQ3 on their way into layouts of single codes. A file of these formats names points of grids, four or
// eight columns at once, with signs beside them; looking points up while multiplying would cost a load for every
// four columns of a row. Points have few coordinates, though: six numbers in IQ1 and IQ2, sixteen in IQ3, signs and
// shifts included. So every column gets a code of its own, 3 or 4 bits, and a table or a line has its number; a
// group keeps its scale. That is 1.25 to 2.2 times the bytes of the file, and a tenth of the floats they would be
// otherwise.
//
//   a block of 256: f16 d, 16 scales as whole numbers S (a byte for each 16 columns), then a code a byte
//   x = d · S · factor · level(code)
//
// Codes are found by decoding the block with d = 1, so that quant/ alone knows the grids.

import { getFormat, type NumberFormat } from "../quant/mod.ts";

/** Columns and bytes of a rewritten block. */
export const GRID_BLOCK: Readonly<Record<"columns" | "bytes" | "codesAt", number>> = {
  columns: 256,
  bytes: 2 + 16 + 256,
  codesAt: 18,
};

/** Numbers by code; IQ3_S is a line and needs none. */
export const GRID_LEVELS: Readonly<Record<"iq1" | "iq2" | "iq3", readonly number[]>> = {
  iq1: [-9, -7, -1, 1, 7, 9],
  iq2: [-43, -25, -8, 8, 25, 43],
  iq3: [-62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62],
};

/** 1 as f16. */
const ONE = 0x3c00;

interface GridFormat {
  readonly levels: readonly number[];
  /** What S is multiplied by. */
  readonly factor: number;
  /** Bytes of d, where it is not one f16 in front of the block: highest nibbles, lowest first. */
  readonly dNibbles?: readonly number[];
  /** The bits of a scale for group `g` of 16 columns of the block at `at`; S is twice that and 1. */
  scale(bytes: Uint8Array, at: number, g: number): number;
}

/** Nibbles, one for each `groups` groups, from `first` on. */
function nibbles(first: number, groups: 1 | 2): GridFormat["scale"] {
  return (bytes, at, g) => {
    const i = Math.floor(g / groups);
    return (bytes[at + first + (i >> 1)]! >> (4 * (i & 1))) & 15;
  };
}

/** The top nibbles of words of `bytes` bytes, one for 32 columns. */
function tops(first: number, wordBytes: number): GridFormat["scale"] {
  return (bytes, at, g) => bytes[at + first + wordBytes * (g >> 1) + wordBytes - 1]! >> 4;
}

const FORMATS: ReadonlyMap<string, GridFormat> = new Map<string, GridFormat>([
  [
    "IQ1_S",
    {
      ...{ levels: GRID_LEVELS.iq1, factor: 1 / 8 },
      scale: (bytes, at, g) => (bytes[at + 35 + 2 * (g >> 1)]! >> 4) & 7,
    },
  ],
  [
    "IQ1_M",
    {
      ...{ levels: GRID_LEVELS.iq1, factor: 1 / 8, dNibbles: [49, 51, 53, 55] },
      scale(bytes, at, g) {
        const word = at + 48 + 2 * (g >> 2);
        return ((bytes[word]! | (bytes[word + 1]! << 8)) >> (3 * (g & 3))) & 7;
      },
    },
  ],
  ["IQ2_XXS", { levels: GRID_LEVELS.iq2, factor: 1 / 8, scale: tops(2, 8) }],
  ["IQ2_XS", { levels: GRID_LEVELS.iq2, factor: 1 / 8, scale: nibbles(66, 1) }],
  ["IQ2_S", { levels: GRID_LEVELS.iq2, factor: 1 / 8, scale: nibbles(74, 1) }],
  ["IQ3_XXS", { levels: GRID_LEVELS.iq3, factor: 1 / 4, scale: tops(66, 4) }],
  [
    "IQ3_S",
    { levels: Array.from({ length: 16 }, (_, i) => 2 * i - 15), factor: 1, scale: nibbles(106, 2) },
  ],
]);

function readD(bytes: Uint8Array, { dNibbles }: GridFormat): number {
  if (!dNibbles) return bytes[0]! | (bytes[1]! << 8);
  return dNibbles.reduce((bits, at, i) => bits | ((bytes[at]! >> 4) << (4 * i)), 0);
}

function writeD(bytes: Uint8Array, d: number, { dNibbles }: GridFormat): void {
  if (!dNibbles) {
    bytes[0] = d & 0xff;
    bytes[1] = d >> 8;
  } else dNibbles.forEach((at, i) => bytes[at] = (bytes[at]! & 15) | (((d >> (4 * i)) & 15) << 4));
}

/** Rewrites whole blocks of a file. */
export type GridRewriter = (bytes: Uint8Array, out: Uint8Array) => void;

/** The rewriter of a format of grid points, or undefined for any other format. */
export function gridRewriter(name: string): GridRewriter | undefined {
  const grid = FORMATS.get(name);
  return grid && rewriter(getFormat(name), grid);
}

function rewriter({ blockBytes, decode }: NumberFormat, grid: GridFormat): GridRewriter {
  const { columns, bytes: outBytes, codesAt } = GRID_BLOCK;
  const block = new Uint8Array(blockBytes), values = new Float32Array(columns);
  const codes = new Map(grid.levels.map((level, code) => [level, code]));
  return (bytes, out) => {
    for (let at = 0, to = 0; at < bytes.length; at += blockBytes, to += outBytes) {
      block.set(bytes.subarray(at, at + blockBytes));
      const d = readD(block, grid);
      out[to] = d & 0xff;
      out[to + 1] = d >> 8;
      writeD(block, ONE, grid);
      decode(block, values);
      for (let g = 0; g < 16; g++) {
        const scale = 2 * grid.scale(block, 0, g) + 1;
        out[to + 2 + g] = scale;
        for (let k = 16 * g; k < 16 * g + 16; k++) {
          out[to + codesAt + k] = codes.get(values[k]! / (scale * grid.factor))!;
        }
      }
    }
  };
}
