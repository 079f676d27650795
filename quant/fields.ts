// Integers of a few bits, as blocks of number formats hold them: fields of bits that follow a rule, or packings that have
// loops of their own. Single blocks are read and written by one pair of loops (codePacking), runs of blocks by loops over
// words of four codes (code_reader.ts).

/**
 * Bits that every code of a block has. A run of bytes holds 8 / bits times as many columns: byte i those of column i
 * lowest, then of column i + run, and so on.
 */
export interface CodeField {
  /** Byte of the block at which the first run begins. */
  readonly at: number;
  readonly bits: 1 | 2 | 4 | 8;
  /** Bytes of a run; 1: columns in sequence. A block is whole runs. */
  readonly run: 1 | 4 | 8 | 16 | 32 | 64;
}

/** Names of packings; wasm/assembly/pack/codes.ts has a reader of each. */
export const CODE_PACKINGS = ["base_11", "magnitudes", "base_3"] as const;

/** The sizes of a format, as far as readers go by them. */
export interface BlockSizes {
  readonly blockSize: number;
  readonly blockBytes: number;
}

/** Codes that lie in no fields. */
export interface CodePacking {
  /** By which packers know it. */
  readonly name: typeof CODE_PACKINGS[number];
  /** Of a code once it is unpacked: they choose the layout. */
  readonly bits: 2 | 3 | 4 | 5 | 6 | 8;
  /** Byte of the block at which codes begin. */
  readonly at: number;
  /** Writes the codes of a block that begins at `at`. */
  pack(codes: Uint8Array, out: Uint8Array, at: number): void;
  /** Reads them. */
  unpack(bytes: Uint8Array, at: number, codes: Uint8Array): void;
}

/**
 * Codes in fields, the lowest bits first, or in a packing. Of two fields the lower one is the wider, as planes of WebGPU have
 * it (gpu/layouts/code_planes.ts), and runs have 8 bytes or more: code_reader.ts counts on both.
 */
export type Codes = readonly CodeField[] | CodePacking;

/** Bits of a code. */
export function codeBits({ codes }: { readonly codes: Codes }): number {
  return "bits" in codes ? codes.bits : codes.reduce((sum, { bits }) => sum + bits, 0);
}

/** Reads and writes the codes of whole blocks. */
export function codePacking(
  { codes }: { readonly codes: Codes },
): Pick<CodePacking, "pack" | "unpack"> {
  if ("pack" in codes) return codes;
  const below = bitsBelow(codes);
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

/** Where column `column` of a field lies in a block. */
export function placeOf({ at, bits, run }: CodeField, column: number) {
  const turn = Math.floor(column / run), each = 8 / bits;
  return { byte: at + Math.floor(turn / each) * run + column % run, shift: turn % each * bits };
}

/** How many bits of a code lie below each of its fields. */
export function bitsBelow(codes: readonly CodeField[]): number[] {
  return codes.map((_, i) => codeBits({ codes: codes.slice(0, i) }));
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
