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
import type { GpuWeightLayout, PackSize } from "./packed_layout.ts";

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

/** Memory that packing writes; sizes are whole blocks. */
interface Planes {
  readonly codes: Uint16Array;
  readonly high: Uint32Array;
  readonly scales: Uint16Array;
}

/**
 * How a file's blocks become planes. Matrices have gigabytes, so loops run over halves of words (no block has
 * an odd number of bytes) and take four codes at a time.
 */
interface BlockReader {
  readonly blockBytes: number;
  readonly blockColumns: 32 | 256;
  pack(file: Uint16Array, blocks: number, planes: Planes): void;
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
      // A view of halves needs an even offset.
      const source = file.byteOffset % 2 === 0 ? file : file.slice();
      const { blockBytes, blockColumns } = reader;
      const blocks = rows * columns / blockColumns;
      reader.pack(
        new Uint16Array(source.buffer, source.byteOffset, blocks * blockBytes / 2),
        blocks,
        {
          codes: halvesOf(planes[0]!),
          high: highBytes > 0 ? wordsOf(planes[1]!) : new Uint32Array(),
          scales: halvesOf(planes.at(-1)!),
        },
      );
    },
  };
}

function halvesOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint16Array {
  return new Uint16Array(buffer, byteOffset, byteLength / 2);
}

function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, byteLength / 4);
}

const NIBBLES = 0x0f0f;

/** Nibbles of two halves, one in the low parts of the bytes, one in the high ones. */
function pairOf(low: number, high: number): number {
  return (low & NIBBLES) | ((high & NIBBLES) << 4);
}

/** For the 8 bits of a byte, in which bit b is column 4q + i of two quads: bit 8 i + q. */
const SPREAD_BITS: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let spread = 0;
  for (let b = 0; b < 8; b++) if (byte & (1 << b)) spread |= 1 << (8 * (b & 3) + (b >> 2));
  return spread;
});

/** Blocks of 32: scales, perhaps a word of fifth bits (bit i is column i's), and codes as they are. */
function plainBlocks(
  { scales, codes, fifth = false }: {
    /** Halves of scales and of codes. */
    readonly scales: 1 | 2;
    readonly codes: 8 | 16;
    readonly fifth?: boolean;
  },
): BlockReader {
  const size = scales + codes + (fifth ? 2 : 0);
  return {
    blockBytes: 2 * size,
    blockColumns: 32,
    pack(file, blocks, planes) {
      for (let block = 0, at = 0; block < blocks; block++) {
        for (let i = 0; i < scales; i++) planes.scales[scales * block + i] = file[at++]!;
        if (fifth) {
          const low = file[at++]!, high = file[at++]!;
          planes.high[block] = SPREAD_BITS[low & 255]! | (SPREAD_BITS[low >> 8]! << 2) |
            (SPREAD_BITS[high & 255]! << 4) | (SPREAD_BITS[high >> 8]! << 6);
        }
        for (let i = 0; i < codes; i++) planes.codes[codes * block + i] = file[at++]!;
      }
    },
  };
}

/** Q4_K and Q5_K: 32 bytes hold a group's nibbles low and the next one's high. */
function affineBlocks(fifth: boolean): BlockReader {
  const nibbles = fifth ? 24 : 8, size = fifth ? 88 : 72;
  return {
    blockBytes: 2 * size,
    blockColumns: 256,
    pack(file, blocks, planes) {
      const bytes = new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
      for (let block = 0; block < blocks; block++) {
        const at = size * block;
        for (let pair = 0; pair < 4; pair++) {
          const from = at + nibbles + 16 * pair, to = 64 * block + 16 * pair;
          for (let k = 0; k < 8; k++) {
            const low = file[from + k]!, high = file[from + 8 + k]!;
            planes.codes[to + k] = pairOf(low, high);
            planes.codes[to + 8 + k] = pairOf(low >> 4, high >> 4);
          }
        }
        if (fifth) packSuperFifths(file, at + 8, planes.high, 8 * block);
        affineScales(bytes, 2 * at, planes.scales, 10 * block);
      }
    },
  };
}

/** Fifth bits of Q5_K: bit g of byte l is value 32 g + l's. */
function packSuperFifths(file: Uint16Array, at: number, high: Uint32Array, to: number): void {
  for (let g = 0; g < 8; g++) {
    let bits = 0;
    for (let q = 0; q < 8; q++) {
      const word = file[at + 2 * q]! | (file[at + 2 * q + 1]! << 16);
      bits |= ((word >>> g) & 0x01010101) << q;
    }
    high[to + g] = bits;
  }
}

/** d and dmin, then for each group its sub-scale and minimum (quant/k_scales.ts). */
function affineScales(file: Uint8Array, at: number, plane: Uint16Array, to: number): void {
  plane[to] = file[at]! | (file[at + 1]! << 8);
  plane[to + 1] = file[at + 2]! | (file[at + 3]! << 8);
  for (let sub = 0; sub < 8; sub++) {
    plane[to + 2 + sub] = scaleCode(file, at + 4, sub) | (minimumCode(file, at + 4, sub) << 8);
  }
}

/** Q6_K: a half of 128 values has 64 bytes of nibbles, two groups low and two high, and 32 of bit pairs. */
const SIX_BITS: BlockReader = {
  blockBytes: 210,
  blockColumns: 256,
  pack(file, blocks, planes) {
    for (let block = 0; block < blocks; block++) {
      const at = 105 * block;
      for (let g = 0; g < 8; g++) {
        const from = at + 32 * (g >> 2) + 16 * (g & 1), shift = 2 * (g & 2);
        const to = 64 * block + 8 * g;
        for (let k = 0; k < 8; k++) {
          planes.codes[to + k] = pairOf(file[from + k]! >> shift, file[from + 8 + k]! >> shift);
        }
        const pairs = at + 64 + 16 * (g >> 2);
        for (let k = 0; k < 2; k++) {
          let bits = 0;
          for (let q = 0; q < 4; q++) {
            const half = pairs + 8 * k + 2 * q;
            const word = (file[half]! | (file[half + 1]! << 16)) >>> (2 * (g & 3));
            bits |= (word & 0x03030303) << (2 * q);
          }
          planes.high[16 * block + 2 * g + k] = bits;
        }
      }
      planes.scales[10 * block] = file[at + 104]!;
      for (let k = 0; k < 8; k++) planes.scales[10 * block + 2 + k] = file[at + 96 + k]!;
    }
  },
};

/** Q3_K: third bits (bit g of byte l is value 32 g + l's) and 2-bit codes make nibbles. */
const THREE_BITS: BlockReader = {
  blockBytes: 110,
  blockColumns: 256,
  pack(file, blocks, planes) {
    const bytes = new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
    for (let block = 0; block < blocks; block++) {
      const at = 55 * block;
      for (let g = 0; g < 8; g++) {
        const from = at + 16 + 16 * (g >> 2), shift = 2 * (g & 3);
        for (let k = 0; k < 8; k++) {
          const low = ((file[from + k]! >> shift) & 0x0303) |
            (((file[at + k]! >> g) & 0x0101) << 2);
          const high = ((file[from + 8 + k]! >> shift) & 0x0303) |
            (((file[at + 8 + k]! >> g) & 0x0101) << 2);
          planes.codes[64 * block + 8 * g + k] = pairOf(low, high);
        }
      }
      planes.scales[10 * block] = file[at + 54]!;
      for (let k = 0; k < 8; k++) {
        const first = signedScaleCode(bytes, 110 * block + 96, 2 * k) - 32;
        const second = signedScaleCode(bytes, 110 * block + 96, 2 * k + 1) - 32;
        planes.scales[10 * block + 2 + k] = (first & 255) | ((second & 255) << 8);
      }
    }
  },
};

/** Layouts of codes by number format. */
export const CODE_LAYOUTS: Readonly<Record<string, CodeLayout>> = {
  Q4_0: defineLayout(
    "u4_d",
    { bits: 4, scales: "d", offset: 8 },
    plainBlocks({ scales: 1, codes: 8 }),
  ),
  Q4_1: defineLayout("u4_dm", { bits: 4, scales: "dm" }, plainBlocks({ scales: 2, codes: 8 })),
  Q5_0: defineLayout(
    "u5_d",
    { bits: 5, scales: "d", offset: 16 },
    plainBlocks({ scales: 1, codes: 8, fifth: true }),
  ),
  Q5_1: defineLayout(
    "u5_dm",
    { bits: 5, scales: "dm" },
    plainBlocks({ scales: 2, codes: 8, fifth: true }),
  ),
  Q8_0: defineLayout("i8_d", { bits: 8, scales: "d" }, plainBlocks({ scales: 1, codes: 16 })),
  Q3_K: defineLayout("u4_k16", { bits: 4, scales: "k16", offset: 4 }, THREE_BITS),
  Q4_K: defineLayout("u4_k", { bits: 4, scales: "k" }, affineBlocks(false)),
  Q5_K: defineLayout("u5_k", { bits: 5, scales: "k" }, affineBlocks(true)),
  Q6_K: defineLayout("u6_k16", { bits: 6, scales: "k16", offset: 32 }, SIX_BITS),
};
