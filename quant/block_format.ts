// Number formats that are described by their block (block.ts): the decoder follows from it, and the encoder only chooses
// codes and scales.

import type { CodeBlock } from "./block.ts";
import { blocksOfRun, RUN_COLUMNS } from "./code_reader.ts";
import { DECODED, lieOf } from "./decode_fields.ts";
import { type BlockSizes, type CodePacking, codePacking } from "./fields.ts";
import type { CodeGrid, EncodeOptions, NumberFormat } from "./format.ts";
import { scaleCopier, scaleFactsOf, type StoredScales } from "./scale_kinds.ts";

// Scales of a run as they are stored, which take no more bytes than a quarter of its columns, and as numbers.
const { buffer } = new Float32Array(RUN_COLUMNS / 16);
const STORED: StoredScales = {
  ...{ bytes: new Uint8Array(buffer), signed: new Int8Array(buffer) },
  ...{ shorts: new Int16Array(buffer), halves: new Float16Array(buffer) },
  singles: new Float32Array(buffer),
};

/** What codes stand for, by code, without scale. */
function valuesOf({ signed, levels, offset = 0 }: CodeBlock): Float64Array {
  return Float64Array.from(
    { length: 256 },
    (_, code) => (levels ? levels[code] ?? 0 : signed ? (code << 24) >> 24 : code) - offset,
  );
}

/**
 * The decoder of a block, as scale_kinds.ts has the formulas. Products of a scale and a code are exact in float64, also
 * those of a scale with an integer, so a number is rounded where it is stored, and at a sum at most once before.
 */
function decoderOf(block: CodeBlock, sizes: BlockSizes): NumberFormat["decode"] {
  const { blockSize, blockBytes } = sizes, { kind } = block.scales;
  const { covers, columns, hasZeros, read } = scaleFactsOf(kind);
  const group = covers === "halves" ? 16 : columns ? 32 : blockSize, groups = blockSize / group;
  const run = blocksOfRun(sizes),
    own = valuesOf(block),
    copyScales = scaleCopier(block.scales, sizes);
  const lie = lieOf(block, sizes, group);
  return (bytes, out) => {
    const { values, minima, zeros } = DECODED;
    values.set(own);
    minima.fill(-0);
    for (let at = 0, o = 0; o < out.length; at += run * blockBytes, o += run * blockSize) {
      const blocks = Math.min(run, (out.length - o) / blockSize);
      copyScales(bytes, at, blocks, STORED.bytes, 0);
      read!(STORED, blocks * groups, DECODED);
      if (!hasZeros) {
        lie.decode(bytes, at, blocks, out, o, 0, lie);
        continue;
      }
      // Codes of such formats are nibbles.
      for (let b = 0; b < blocks; b++) {
        for (let code = 0; code < 16; code++) values[code] = own[code]! - zeros[b]!;
        lie.decode(bytes, at + b * blockBytes, 1, out, o + b * blockSize, b, lie);
      }
    }
  };
}

/** What an encoder of blocks gets. */
export interface EncodeBlocks {
  readonly values: Float32Array;
  readonly out: Uint8Array;
  readonly options: EncodeOptions;
  /** Writes the codes of the block that begins at byte `at`; the rest of the block stays. */
  readonly writeCodes: CodePacking["pack"];
}

/** A number format of codes, described by its block. */
export interface BlockFormat
  extends CodeBlock, Omit<NumberFormat, "block" | "decode" | "encode" | "grid"> {
  /** Codes that quantisers choose among: so many from `first` on (default 0), which may be negative. */
  readonly grid?: { readonly codes: number; readonly first?: number };
  decode?: NumberFormat["decode"];
  encode?(blocks: EncodeBlocks): void;
}

/** The record of a format that is described by its block. */
export function defineBlockFormat(format: BlockFormat): NumberFormat {
  const { codes, signed, levels, offset, scales, grid, encode, decode, ...record } = format;
  const block: CodeBlock = { codes, signed, levels, offset, scales };
  // Most processes use few formats, so what takes time waits.
  let packing: Pick<CodePacking, "pack"> | undefined;
  const writeCodes: CodePacking["pack"] = (codes, out, at) =>
    (packing ??= codePacking(block)).pack(codes, out, at);
  let decoder = decode;
  return {
    ...record,
    block,
    decode: (bytes, out) => (decoder ??= decoderOf(block, record))(bytes, out),
    ...grid && { grid: gridOf(format, writeCodes) },
    ...encode &&
      { encode: (values, out, options = {}) => encode({ values, out, options, writeCodes }) },
  };
}

function gridOf(
  { grid, levels, blockSize }: BlockFormat,
  writeCodes: CodePacking["pack"],
): CodeGrid {
  const { codes, first = 0 } = grid!;
  const stored = new Uint8Array(blockSize);
  return {
    codes,
    ...levels && { places: levels },
    write(codes, out, at) {
      for (let j = 0; j < blockSize; j++) stored[j] = codes[j]! + first;
      writeCodes(stored, out, at);
    },
  };
}
