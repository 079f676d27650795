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
    const placed = { ...field, below, count };
    below += field.bits;
    return field.run === 1 && field.bits < 8
      ? sequentialQuads(file, placed)
      : runQuads(file, placed);
  });
  const flip = below === 8 && !block.signed ? 0x80808080 | 0 : 0;
  return (at, quads, to) => {
    quads.fill(flip, to, to + count);
    for (let i = 0; i < readers.length; i++) readers[i]!(at, quads, to);
  };
}

/** A field, the bits below it in a code, and the words of a block. */
interface PlacedField extends CodeField {
  readonly below: number;
  readonly count: number;
}

/** Four columns are the same bits of four bytes. */
function runQuads(
  { view }: FileRows,
  { at: start, bits, run, below, count }: PlacedField,
): QuadReader {
  const mask = ((1 << bits) - 1) * 0x01010101 | 0;
  const bytes = bits === 8 ? 4 * count : run, words = bytes / 4;
  return (at, quads, to) => {
    const end = to + count;
    for (let from = at + start; to < end; from += bytes) {
      for (let bit = 0; bit < 8; bit += bits, to += words) {
        // Two at a time: a third less time than one by one.
        for (let w = 0; w < words; w += 2) {
          const a = view.getInt32(from + 4 * w, true), b = view.getInt32(from + 4 * w + 4, true);
          quads[to + w]! ^= ((a >>> bit) & mask) << below;
          quads[to + w + 1]! ^= ((b >>> bit) & mask) << below;
        }
      }
    }
  };
}

/** Four columns are neighbouring bits of one byte, or of two. */
function sequentialQuads(
  { bytes }: FileRows,
  { at: start, bits, below, count }: PlacedField,
): QuadReader {
  const mask = (1 << bits) - 1, apart = 8 - bits, second = bits === 4 ? 1 : 0;
  return (at, quads, to) => {
    for (let q = 0; q < count; q++) {
      const byte = at + start + (bits * q >> 1);
      const four = (bytes[byte]! | (bytes[byte + second]! << 8)) >> (bits === 1 ? 4 * (q & 1) : 0);
      const quad = (four & mask) | ((four & (mask << bits)) << apart) |
        ((four & (mask << (2 * bits))) << (2 * apart)) |
        ((four & (mask << (3 * bits))) << (3 * apart));
      quads[to + q]! |= quad << below;
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
