// Codes of a file's block on their way into planes: words of four neighbouring columns, a byte each.
// Blocks may begin at any byte, so words are read through a view; matrices have gigabytes, so nothing here
// makes an object while it packs.

import { type CodeBlock, hasFields } from "../../quant/block.ts";
import { type CodeField, codePacking } from "../../quant/fields.ts";
import type { NumberFormat } from "../../quant/format.ts";

/** Rows of a file. */
export interface FileRows {
  readonly bytes: Uint8Array;
  /** Of the same bytes. */
  readonly view: DataView;
}

/** Columns of a step of a kernel. */
export const GROUP_COLUMNS = 32;

/** Reads the block at byte `at` into words from `to` on. Bits above a code are 0, signed codes fill their byte. */
export type QuadReader = (at: number, quads: Int32Array, to: number) => void;

/** The sizes of a format, as far as readers go by them. */
export type BlockSizes = Pick<NumberFormat, "blockSize" | "blockBytes">;

/** Columns and bytes that are read as one block: small blocks are put together. */
export function unitOf({ blockSize, blockBytes }: BlockSizes): { columns: number; bytes: number } {
  const times = Math.max(1, GROUP_COLUMNS / blockSize);
  return { columns: times * blockSize, bytes: times * blockBytes };
}

/** Where in the units of a file codes lie as they lie in their one plane: the byte, or undefined if they do not. */
export function copiedFrom({ codes, signed }: CodeBlock): number | undefined {
  const [field, ...others] = Array.isArray(codes) ? codes : [];
  if (!field || others.length > 0) return undefined;
  const asInPlane = field.bits === 4 && field.run === 16 || field.bits === 8 && signed;
  return asInPlane ? field.at : undefined;
}

/** The reader of a format's codes. */
export function quadReader(
  file: FileRows,
  block: CodeBlock,
  { blockSize }: Pick<NumberFormat, "blockSize">,
): QuadReader {
  if (!hasFields(block)) return packedQuads(file, block, blockSize);
  const count = blockSize / 4;
  let below = 0;
  const readers = block.codes.map((field) => {
    const flip = field.bits === 8 && !block.signed ? 0x80808080 | 0 : 0;
    const placed = { ...field, below, count, flip };
    below += field.bits;
    return field.run === 1 && field.bits < 8
      ? sequentialQuads(file, placed)
      : runQuads(file, placed);
  });
  return (at, quads, to) => {
    for (let i = 0; i < readers.length; i++) readers[i]!(at, quads, to);
  };
}

/** A field, the bits below it in a code, and the words of a block. The lowest field is stored, others are added. */
interface PlacedField extends CodeField {
  readonly below: number;
  readonly count: number;
  /** Bits that are turned: the highest of unsigned bytes, which are kept less 128. */
  readonly flip: number;
}

/** Four columns are the same bits of four bytes. */
function runQuads(
  { view }: FileRows,
  { at: start, bits, run, below, count, flip }: PlacedField,
): QuadReader {
  const mask = ((1 << bits) - 1) * 0x01010101 | 0;
  const bytes = bits === 8 ? 4 * count : run, words = bytes / 4;
  return (at, quads, to) => {
    const end = to + count;
    for (let from = at + start; to < end; from += bytes) {
      for (let bit = 0; bit < 8; bit += bits, to += words) {
        // Two at a time: a third less time than one by one.
        for (let w = 0; w < words; w += 2) {
          const a = view.getInt32(from + 4 * w, true) ^ flip;
          const b = view.getInt32(from + 4 * w + 4, true) ^ flip;
          const first = ((a >>> bit) & mask) << below, second = ((b >>> bit) & mask) << below;
          quads[to + w] = first | (below ? quads[to + w]! : 0);
          quads[to + w + 1] = second | (below ? quads[to + w + 1]! : 0);
        }
      }
    }
  };
}

/** Four columns are neighbouring bits of one byte, or of two. */
function sequentialQuads({ bytes }: FileRows, field: PlacedField): QuadReader {
  const { at: start, bits, below, count } = field;
  if (bits === 4) {
    return (at, quads, to) => {
      for (let q = 0, from = at + start; q < count; q++, from += 2) {
        const a = bytes[from]!, b = bytes[from + 1]!;
        const quad = (a & 15) | ((a & 0xf0) << 4) | ((b & 15) << 16) | ((b & 0xf0) << 20);
        quads[to + q] = (below ? quads[to + q]! : 0) | (quad << below);
      }
    };
  }
  if (bits === 2) {
    return (at, quads, to) => {
      for (let q = 0, from = at + start; q < count; q++, from++) {
        const a = bytes[from]!;
        quads[to + q] = (below ? quads[to + q]! : 0) |
          ((a & 3) | ((a & 12) << 6) | ((a & 48) << 12) | ((a & 192) << 18)) <<
            below;
      }
    };
  }
  return (at, quads, to) => {
    for (let q = 0, from = at + start; q < count; q += 2, from++) {
      // Four copies seven bits apart bring bit i of a nibble to byte i.
      const a = bytes[from]!,
        low = Math.imul(a & 15, 0x00204081),
        high = Math.imul(a >> 4, 0x00204081);
      quads[to + q] = (below ? quads[to + q]! : 0) | (low & 0x01010101) << below;
      quads[to + q + 1] = (below ? quads[to + q + 1]! : 0) | (high & 0x01010101) << below;
    }
  };
}

/** Codes that lie in no fields: a block at a time. */
function packedQuads({ bytes }: FileRows, block: CodeBlock, columns: number): QuadReader {
  const codes = new Uint8Array(columns), words = new Int32Array(codes.buffer);
  const { unpack } = codePacking(block);
  return (at, quads, to) => {
    unpack(bytes, at, codes);
    quads.set(words, to);
  };
}
