// Reads the codes of many blocks of a file at once: four columns become a word, a byte each. Decoders and the packing for
// WebGPU (gpu/layouts/) read so. A loop goes over all blocks of a run with one kind of field, so that nothing is asked
// within it that a format says once; runs are short enough to stay in the nearest cache between one loop and the next.
// Blocks may begin at any byte, so words are read through a view; matrices have gigabytes, so nothing here makes an object
// while it reads.

import type { CodeBlock } from "./block.ts";
import { bitsBelow, type BlockSizes, type CodeField, codePacking } from "./fields.ts";

/** Bytes of a file. */
export interface FileBytes {
  readonly bytes: Uint8Array;
  /** Of the same bytes. */
  readonly view: DataView;
}

/** Both views of bytes. */
export function fileBytes(bytes: Uint8Array): FileBytes {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
}

/** Columns that are read at once, at most if a block is not longer. */
export const RUN_COLUMNS = 4096;

/** Blocks that are read at once. Those of small blocks are whole groups of 32 columns. */
export function blocksOfRun({ blockSize }: BlockSizes): number {
  return Math.max(1, Math.floor(RUN_COLUMNS / blockSize));
}

/**
 * Reads the codes of so many blocks, of which the first is at byte `at`, from the begin of `quads` on. Bits above a code are
 * 0, signed codes fill their byte.
 */
export type CodeReader = (file: FileBytes, at: number, blocks: number, quads: Int32Array) => void;

/** The reader of a format's codes. */
export function codeReader(
  { codes }: Pick<CodeBlock, "codes">,
  { blockSize, blockBytes }: BlockSizes,
): CodeReader {
  if ("pack" in codes || codes.some(({ bits }) => bits * blockSize % 32 > 0)) {
    const { unpack } = codePacking({ codes }), own = new Uint8Array(blockSize);
    return ({ bytes }, at, blocks, quads) => {
      const all = new Uint8Array(quads.buffer, quads.byteOffset, quads.byteLength);
      for (let b = 0; b < blocks; b++) {
        unpack(bytes, at + b * blockBytes, own);
        all.set(own, b * blockSize);
      }
    };
  }
  const below = bitsBelow(codes);
  const fields = codes.map((field, i): PlacedField => ({
    ...{ ...field, below: below[i]!, blockBytes, quads: blockSize / 4 },
    read: readerOf(field),
  }));
  return ({ view }, at, blocks, quads) => {
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i]!;
      field.read(view, at + field.at, blocks, quads, field);
    }
  };
}

function readerOf({ bits, run }: CodeField): FieldReader {
  if (bits === 8) return readBytes;
  if (bits === 4) return run > 1 ? readNibbleRuns : readNibbles;
  return run > 1 ? readRuns : readSequence;
}

/** A field among the fields of blocks. */
interface PlacedField extends CodeField {
  /** Bits of a code below those of the field. What has some is added to what is there. */
  readonly below: number;
  readonly blockBytes: number;
  /** Words of a block's codes. */
  readonly quads: number;
  readonly read: FieldReader;
}

/** Reads a field of so many blocks, in the first of which it begins at byte `at`. */
type FieldReader = (
  view: DataView,
  at: number,
  blocks: number,
  quads: Int32Array,
  field: PlacedField,
) => void;

const readBytes: FieldReader = (view, at, blocks, quads, { blockBytes, quads: count }) => {
  for (let b = 0, to = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    for (let w = 0; w < count; w++) quads[(to + w) | 0] = view.getInt32((at + 4 * w) | 0, true);
    to = (to + count) | 0;
  }
};

/** Four columns are the same bits of four bytes. */
const readRuns: FieldReader = (view, at, blocks, quads, field) => {
  const { bits, run, below, blockBytes, quads: count } = field;
  const mask = ((1 << bits) - 1) * 0x01010101 | 0, words = run >> 2;
  for (let b = 0, to = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    for (let from = at, end = (to + count) | 0; to < end; from = (from + run) | 0) {
      for (let bit = 0; bit < 8; bit = (bit + bits) | 0, to = (to + words) | 0) {
        if (below === 0) {
          for (let w = 0; w < words; w++) {
            quads[(to + w) | 0] = (view.getInt32((from + 4 * w) | 0, true) >>> bit) & mask;
          }
        } else {
          for (let w = 0; w < words; w++) {
            const quad = (view.getInt32((from + 4 * w) | 0, true) >>> bit) & mask;
            quads[(to + w) | 0]! |= quad << below;
          }
        }
      }
    }
  }
};

/** Runs of nibbles, which are the lowest bits of their codes: both of a byte at once. */
const readNibbleRuns: FieldReader = (view, at, blocks, quads, field) => {
  const { run, blockBytes, quads: count } = field, mask = 0x0f0f0f0f, words = run >> 2;
  for (let b = 0, to = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    let from = at;
    for (const last = (to + count) | 0; to < last; to = (to + words) | 0) {
      for (const end = (to + words) | 0; to < end; to = (to + 2) | 0, from = (from + 8) | 0) {
        const word = view.getInt32(from, true), next = view.getInt32((from + 4) | 0, true);
        const other = (to + words) | 0;
        quads[to] = word & mask;
        quads[(to + 1) | 0] = next & mask;
        quads[other] = (word >>> 4) & mask;
        quads[(other + 1) | 0] = (next >>> 4) & mask;
      }
    }
  }
};

/** The same of nibbles in sequence: twice, half of the bits move up, until each nibble is in its byte. */
const readNibbles: FieldReader = (view, at, blocks, quads, { blockBytes, quads: count }) => {
  for (let b = 0, to = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    for (
      let from = at, end = (to + count) | 0;
      to < end;
      from = (from + 4) | 0, to = (to + 2) | 0
    ) {
      const word = view.getInt32(from, true), low = word & 0xffff, high = word >>> 16;
      const first = (low | (low << 8)) & 0x00ff00ff, second = (high | (high << 8)) & 0x00ff00ff;
      quads[to] = (first | (first << 4)) & 0x0f0f0f0f;
      quads[(to + 1) | 0] = (second | (second << 4)) & 0x0f0f0f0f;
    }
  }
};

/** One or two bits in sequence. */
const readSequence: FieldReader = (view, at, blocks, quads, field) => {
  const { bits, below, blockBytes, quads: count } = field, keep = below === 0 ? 0 : -1;
  for (let b = 0, to = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    for (let from = at, last = (to + count) | 0; to < last; from = (from + 4) | 0) {
      let word = view.getInt32(from, true);
      if (bits === 1) {
        for (const end = (to + 8) | 0; to < end; to = (to + 1) | 0, word >>>= 4) {
          // Four copies seven bits apart bring bit i of a nibble to byte i.
          const quad = Math.imul(word & 15, 0x00204081) & 0x01010101;
          quads[to] = (quads[to]! & keep) | (quad << below);
        }
      } else {
        for (const end = (to + 4) | 0; to < end; to = (to + 1) | 0, word >>>= 8) {
          const byte = word & 255, far = (byte | (byte << 12)) & 0x000f000f;
          const quad = (far | (far << 6)) & 0x03030303;
          quads[to] = (quads[to]! & keep) | (quad << below);
        }
      }
    }
  }
};
