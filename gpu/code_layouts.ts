// Layouts of weights whose values are integer codes with scales: every group of 32 columns is one step of a
// kernel. Groups lie in row order, so group `g` of row `r` is number r · K/32 + g in every plane:
// - codes: 16 bytes of low nibbles, byte 4j + i holding column 4j + i low and column 16 + 4j + i high, so
//   that one mask gives four columns as bytes for a packed dot product; 32 bytes where codes have 8 bits;
// - high: the bits above a nibble. Bit q of byte i is column 4q + i's fifth; for 6 bits, pair q % 4 of byte
//   i of word q / 4: one shift and one mask give the bits of four columns;
// - scales: what is left of the file's header, in the precision of the file. Sub-scales of the K formats
//   stay the integers they are: rounding their product to 16 bits would change the weights.

import { scaleCode as signedScaleCode } from "../quant/q3_k.ts";
import { minimumCode, scaleCode } from "../quant/k_scales.ts";
import type { GpuWeightLayout, PackSize } from "./weight_layout.ts";

/** Columns of a group. */
export const GROUP_COLUMNS = 32;

/**
 * How the scales of a group are stored.
 * - `d`: one float16 a group, x = d (code - offset);
 * - `dm`: two, x = d code + m;
 * - `k`: per 8 groups a float16 pair (d, m), then a byte pair (s, n) for each, x = d s code - m n;
 * - `k16`: the same with two signed bytes, for columns 0..15 and 16..31, x = d s (code - offset).
 */
export type ScaleKind = "d" | "dm" | "k" | "k16";

/** What kernels have to know about a layout of codes. */
export interface CodeLayout extends GpuWeightLayout {
  /** Bits that are stored of a code: 4 to 6 unsigned, 8 signed. */
  readonly bits: 4 | 5 | 6 | 8;
  /** How scales are stored. */
  readonly scales: ScaleKind;
  /** What is subtracted from a code, for kinds without minima. */
  readonly offset: number;
}

/** Unpacks one block of a file. */
interface BlockReader {
  readonly blockBytes: number;
  readonly blockColumns: 32 | 256;
  /** Writes the block's codes, one a byte; absent where `nibbles` says where they are. */
  codes?(file: Uint8Array, at: number, out: Uint8Array): void;
  /** Offset of 16 bytes that lie in the file as in the plane. */
  readonly nibbles?: number;
  /** Writes the block's part of the scales plane. */
  scales(file: Uint8Array, at: number, plane: Uint8Array, target: number): void;
}

const SCALE_BYTES: Readonly<Record<ScaleKind, number>> = { d: 2, dm: 4, k: 20, k16: 20 };

/** Bytes of a block in the scales plane. */
function scaleBytes(kind: ScaleKind, groups: number): number {
  return kind === "k" || kind === "k16"
    ? SCALE_BYTES[kind] * groups / 8
    : SCALE_BYTES[kind] * groups;
}

function defineLayout(
  id: string,
  { bits, scales, offset = 0 }: {
    readonly bits: 4 | 5 | 6 | 8;
    readonly scales: ScaleKind;
    readonly offset?: number;
  },
  reader: BlockReader,
): CodeLayout {
  const codeBytes = bits === 8 ? 32 : 16;
  const highBytes = bits === 5 ? 4 : bits === 6 ? 8 : 0;
  // Two rows make float16 scales of an odd number of groups whole words.
  const rowGroup = 2;
  return {
    id,
    bits,
    scales,
    offset,
    rowGroup,
    planeBytes(columns) {
      const groups = rowGroup * columns / GROUP_COLUMNS;
      return [
        groups * codeBytes,
        ...highBytes ? [groups * highBytes] : [],
        scaleBytes(scales, groups),
      ];
    },
    pack(file, { rows, columns }: PackSize, planes) {
      const codePlane = planes[0]!, scalePlane = planes.at(-1)!;
      const { blockBytes, blockColumns, nibbles } = reader;
      const blocks = rows * columns / blockColumns;
      const groups = blockColumns / GROUP_COLUMNS;
      const blockScaleBytes = scaleBytes(scales, groups);
      const codes = new Uint8Array(blockColumns);
      for (let block = 0; block < blocks; block++) {
        const at = block * blockBytes;
        if (nibbles !== undefined) {
          for (let i = 0; i < 16; i++) codePlane[16 * block + i] = file[at + nibbles + i]!;
        } else {
          reader.codes!(file, at, codes);
          for (let g = 0; g < groups; g++) {
            const group = block * groups + g;
            packCodes(codes, 32 * g, codePlane, { bits, at: codeBytes * group });
            if (highBytes) packHigh(codes, 32 * g, planes[1]!, { bits, at: highBytes * group });
          }
        }
        reader.scales(file, at, scalePlane, block * blockScaleBytes);
      }
    },
  };
}

interface Target {
  readonly bits: number;
  readonly at: number;
}

function packCodes(codes: Uint8Array, from: number, plane: Uint8Array, { bits, at }: Target): void {
  if (bits === 8) {
    for (let i = 0; i < 32; i++) plane[at + i] = codes[from + i]!;
    return;
  }
  for (let i = 0; i < 16; i++) {
    plane[at + i] = (codes[from + i]! & 15) | ((codes[from + 16 + i]! & 15) << 4);
  }
}

function packHigh(codes: Uint8Array, from: number, plane: Uint8Array, { bits, at }: Target): void {
  const width = bits - 4, perByte = 8 / width;
  for (let column = 0; column < 32; column++) {
    const quad = column >> 2;
    const byte = 4 * Math.floor(quad / perByte) + (column & 3);
    plane[at + byte]! |= (codes[from + column]! >> 4) << (width * (quad % perByte));
  }
}

/** Copies `bytes` bytes of a block's header at `offset`. */
function copyScales(offset: number, bytes: number): BlockReader["scales"] {
  return (file, at, plane, target) => {
    for (let i = 0; i < bytes; i++) plane[target + i] = file[at + offset + i]!;
  };
}

/** Codes whose nibbles and fifth bits lie as in Q5_0. */
function fiveBitCodes(bitsAt: number): NonNullable<BlockReader["codes"]> {
  return (file, at, out) => {
    for (let i = 0; i < 32; i++) {
      const byte = file[at + bitsAt + 4 + (i & 15)]!;
      const high = (file[at + bitsAt + (i >> 3)]! >> (i & 7)) & 1;
      out[i] = ((byte >> (i >> 4 << 2)) & 15) | (high << 4);
    }
  };
}

/** d and dmin at the start of a block, then twelve bytes of sub-scales and minima (quant/k_scales.ts). */
const affineScales: BlockReader["scales"] = (file, at, plane, target) => {
  for (let i = 0; i < 4; i++) plane[target + i] = file[at + i]!;
  for (let sub = 0; sub < 8; sub++) {
    plane[target + 4 + 2 * sub] = scaleCode(file, at + 4, sub);
    plane[target + 5 + 2 * sub] = minimumCode(file, at + 4, sub);
  }
};

/** d at `dAt`, and sixteen signed scales. */
function signedScales(
  dAt: number,
  scaleOf: (file: Uint8Array, at: number, sub: number) => number,
): BlockReader["scales"] {
  return (file, at, plane, target) => {
    for (let i = 0; i < 2; i++) plane[target + i] = file[at + dAt + i]!;
    for (let sub = 0; sub < 16; sub++) plane[target + 4 + sub] = scaleOf(file, at, sub);
  };
}

/** Layouts of codes by number format. */
export const CODE_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  Q4_0: defineLayout("u4_d", { bits: 4, scales: "d", offset: 8 }, {
    blockBytes: 18,
    blockColumns: 32,
    nibbles: 2,
    scales: copyScales(0, 2),
  }),
  Q4_1: defineLayout("u4_dm", { bits: 4, scales: "dm" }, {
    blockBytes: 20,
    blockColumns: 32,
    nibbles: 4,
    scales: copyScales(0, 4),
  }),
  Q5_0: defineLayout("u5_d", { bits: 5, scales: "d", offset: 16 }, {
    blockBytes: 22,
    blockColumns: 32,
    codes: fiveBitCodes(2),
    scales: copyScales(0, 2),
  }),
  Q5_1: defineLayout("u5_dm", { bits: 5, scales: "dm" }, {
    blockBytes: 24,
    blockColumns: 32,
    codes: fiveBitCodes(4),
    scales: copyScales(0, 4),
  }),
  Q8_0: defineLayout("i8_d", { bits: 8, scales: "d" }, {
    blockBytes: 34,
    blockColumns: 32,
    codes: (file, at, out) => out.set(file.subarray(at + 2, at + 34)),
    scales: copyScales(0, 2),
  }),
  Q3_K: defineLayout("u4_k16", { bits: 4, scales: "k16", offset: 4 }, {
    blockBytes: 110,
    blockColumns: 256,
    codes(file, at, out) {
      for (let i = 0; i < 256; i++) {
        const low = file[at + 32 + (i >> 7) * 32 + (i & 31)]! >> (2 * ((i >> 5) & 3));
        const high = (file[at + (i & 31)]! >> (i >> 5)) & 1;
        out[i] = (low & 3) | (high << 2);
      }
    },
    scales: signedScales(108, (file, at, sub) => signedScaleCode(file, at + 96, sub) - 32),
  }),
  Q4_K: defineLayout("u4_k", { bits: 4, scales: "k" }, {
    blockBytes: 144,
    blockColumns: 256,
    codes(file, at, out) {
      for (let i = 0; i < 256; i++) {
        out[i] = (file[at + 16 + (i >> 6) * 32 + (i & 31)]! >> ((i & 32) >> 3)) & 15;
      }
    },
    scales: affineScales,
  }),
  Q5_K: defineLayout("u5_k", { bits: 5, scales: "k" }, {
    blockBytes: 176,
    blockColumns: 256,
    codes(file, at, out) {
      for (let i = 0; i < 256; i++) {
        const low = (file[at + 48 + (i >> 6) * 32 + (i & 31)]! >> ((i & 32) >> 3)) & 15;
        out[i] = low | (((file[at + 16 + (i & 31)]! >> (i >> 5)) & 1) << 4);
      }
    },
    scales: affineScales,
  }),
  Q6_K: defineLayout("u6_k16", { bits: 6, scales: "k16", offset: 32 }, {
    blockBytes: 210,
    blockColumns: 256,
    codes(file, at, out) {
      for (let i = 0; i < 256; i++) {
        const half = i >> 7;
        const low = file[at + half * 64 + (i & 63)]! >> (4 * ((i >> 6) & 1));
        const high = file[at + 128 + half * 32 + (i & 31)]! >> (2 * ((i >> 5) & 3));
        out[i] = (low & 15) | ((high & 3) << 4);
      }
    },
    scales: signedScales(208, (file, at, sub) => file[at + 192 + sub]!),
  }),
};
