// What a block of a number format is, as data: where its codes lie, what they stand for, and where its scales are. The
// decoder, the order in which encoders write codes, the packing for WebGPU (gpu/layouts/) and for WASM
// (wasm/format_layouts.ts) and the scales that tests draw all follow from it, so that a format is described once.

import type { GridName } from "./iq_grids.ts";
import type { ScaleKind, ScaleSource } from "./scale_kinds.ts";

/**
 * Bits that every code of a block has. A run of bytes holds 8 / bits times as many columns: byte i those of column i
 * lowest, then of column i + run, and so on.
 */
export interface CodeField {
  /** Byte of the block at which the first run begins. */
  readonly at: number;
  readonly bits: 1 | 2 | 4 | 8;
  /** Bytes of a run; 1: columns in sequence. A block is whole runs. */
  readonly run: 1 | 8 | 16 | 32 | 64;
}

/** Codes that lie in no fields. */
export interface CodePacking {
  /** By which packers know it; see wasm/format_layouts.ts. */
  readonly name: "base_11" | "base_3" | "magnitudes";
  /** Of a code once it is unpacked. */
  readonly bits: 2 | 4 | 8;
  /** Byte of the block at which codes begin. */
  readonly at: number;
  /** Writes the codes of a block that begins at `at`. */
  pack(codes: Uint8Array, out: Uint8Array, at: number): void;
  /** Reads them. */
  unpack(bytes: Uint8Array, at: number, codes: Uint8Array): void;
}

/** A block of codes, one a column. */
export interface CodeBlock {
  /** Fields of a code, the lowest bits first. */
  readonly codes: readonly CodeField[] | CodePacking;
  /** Whether codes of 8 bits have a sign. */
  readonly signed?: boolean | undefined;
  /** What codes stand for, if not for themselves. */
  readonly levels?: Int8Array | undefined;
  /** What is subtracted from a code. */
  readonly offset?: number | undefined;
  readonly scales: ScaleSource;
}

/** Bits of a block, counted from its first byte on, lowest first: entry `i` of group `g` of 32 columns. */
export interface BitField {
  /** Of entry 0 of group 0. */
  readonly at: number;
  /** Bits of an entry, at most 16. */
  readonly bits: number;
  /** From entry to entry of a group. */
  readonly step: number;
  /** From group to group. */
  readonly group: number;
  /** From the first of two groups to that of the next two, if it is not twice the above. */
  readonly pair?: number;
}

/** A block of 256 columns whose codes are points. */
export interface PointBlock {
  readonly grid: GridName;
  /** Numbers of points, the field of the lowest bits first. */
  readonly index: readonly BitField[];
  /** Signs of eight columns an entry; where seven bits are stored, the number of minus signs is even. */
  readonly signs?: BitField;
  /** A bit a point: its coordinates are moved down by an eighth, not up. */
  readonly shifts?: BitField;
  /** float16. */
  readonly d: readonly BitField[];
  /** The numbers n: one for 32 columns, or one for each 16. */
  readonly scales: BitField & { readonly kind: Extract<ScaleKind, "n8" | "n16"> };
  readonly factor: number;
}

/** What is known of a block of a format that kernels read by its codes. */
export type BlockLayout = CodeBlock | PointBlock;

/** Whether a block's codes are fields. */
export function hasFields(block: CodeBlock): block is CodeBlock & { codes: readonly CodeField[] } {
  return Array.isArray(block.codes);
}

/** Bits of a code. */
export function codeBits({ codes }: Pick<CodeBlock, "codes">): number {
  return "bits" in codes ? codes.bits : codes.reduce((sum, { bits }) => sum + bits, 0);
}

/** Reads and writes the codes of whole blocks. */
export function codePacking(
  { codes }: Pick<CodeBlock, "codes">,
): Pick<CodePacking, "pack" | "unpack"> {
  if ("pack" in codes) return codes;
  const below = codes.map((_, i) => codeBits({ codes: codes.slice(0, i) }));
  return {
    pack(values, out, block) {
      codes.forEach((field, i) => packField(field, values, below[i]!, out.subarray(block)));
    },
    unpack(bytes, block, values) {
      values.fill(0);
      for (let i = 0; i < codes.length; i++) {
        unpackField(codes[i]!, bytes, block, values, below[i]!);
      }
    },
  };
}

function packField(
  { at, bits, run }: CodeField,
  codes: Uint8Array,
  below: number,
  out: Uint8Array,
): void {
  const each = 8 / bits, mask = (1 << bits) - 1;
  for (let first = 0, byte = at; first < codes.length; first += each * run) {
    for (let j = first; j < first + run; j++, byte++) {
      let value = 0;
      for (let t = 0; t < each; t++) value |= ((codes[j + t * run]! >> below) & mask) << (bits * t);
      out[byte] = value;
    }
  }
}

function unpackField(
  { at, bits, run }: CodeField,
  bytes: Uint8Array,
  block: number,
  codes: Uint8Array,
  below: number,
): void {
  const mask = (1 << bits) - 1, columns = codes.length;
  let byte = block + at;
  if (run === 1) {
    for (let j = 0; j < columns; byte++) {
      const value = bytes[byte]!;
      for (let bit = 0; bit < 8; bit += bits, j++) codes[j]! |= ((value >> bit) & mask) << below;
    }
    return;
  }
  for (let j = 0; j < columns; byte += run) {
    for (let bit = 0; bit < 8; bit += bits, j += run) {
      for (let i = 0; i < run; i++) codes[j + i]! |= ((bytes[byte + i]! >> bit) & mask) << below;
    }
  }
}
