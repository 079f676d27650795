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
  return run > 1 ? readRuns : bits === 4 ? readNibbles : readSequence;
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

/** Four columns are neighbouring bits: twice, half of them move up, until each is in its byte. */
const readSequence: FieldReader = (view, at, blocks, quads, field) => {
  const { bits, below, blockBytes, quads: count } = field;
  const four = (1 << (4 * bits)) - 1, half = 16 - 2 * bits, quarter = 8 - bits;
  const two = ((1 << (2 * bits)) - 1) * 0x00010001, one = ((1 << bits) - 1) * 0x01010101;
  for (let b = 0, to = 0; b < blocks; b++, at = (at + blockBytes) | 0) {
    for (let from = at, end = (to + count) | 0; to < end; from = (from + 4) | 0) {
      const word = view.getInt32(from, true);
      for (let bit = 0; bit < 32; bit = (bit + 4 * bits) | 0, to = (to + 1) | 0) {
        const codes = (word >>> bit) & four, pairs = (codes | (codes << half)) & two;
        const quad = ((pairs | (pairs << quarter)) & one) << below;
        quads[to] = below === 0 ? quad : quads[to]! | quad;
      }
    }
  }
};

/** The same of nibbles in sequence, which are the lowest bits of their codes, without a loop over a word. */
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
