// Number formats that are described by their block (block.ts): the decoder follows from it, and the encoder only chooses
// codes and scales.

import type { CodeBlock } from "./block.ts";
import { type CodePacking, codePacking } from "./fields.ts";
import type { CodeGrid, EncodeOptions, NumberFormat } from "./format.ts";
import { scaleCopier, scaleFactsOf } from "./scale_kinds.ts";

/** What codes stand for, by code, without offset and scale. */
function valuesOf({ signed, levels }: CodeBlock): Int16Array {
  return Int16Array.from(
    { length: 256 },
    (_, code) => levels ? levels[code] ?? 0 : signed ? (code << 24) >> 24 : code,
  );
}

/**
 * The decoder of a block, as scale_kinds.ts has the formulas. Products of a scale and a code are exact in float64, also
 * those of a scale with an integer, so a number is rounded where it is stored, and at a sum at most once before.
 */
function decoderOf(
  block: CodeBlock,
  { blockSize, blockBytes }: Pick<NumberFormat, "blockSize" | "blockBytes">,
): NumberFormat["decode"] {
  const { kind } = block.scales, { covers, columns, step, minimum, zero } = scaleFactsOf(kind);
  const group = covers === "halves" ? 16 : columns ? 32 : blockSize;
  const { unpack } = codePacking(block);
  const copyScales = scaleCopier(block.scales, blockSize);
  const values = valuesOf(block), offset = block.offset ?? 0;
  const codes = new Uint8Array(blockSize), scales = new Uint8Array(24);
  return (bytes, out) => {
    for (let b = 0, o = 0; o < out.length; b += blockBytes, o += blockSize) {
      unpack(bytes, b, codes);
      copyScales(bytes, b, scales, 0);
      for (let g = 0, j = 0; j < blockSize; g++) {
        const d = step!(scales, 0, g), end = j + group;
        if (minimum) {
          const m = minimum(scales, 0, g);
          for (; j < end; j++) out[o + j] = d * values[codes[j]!]! + m;
        } else {
          const z = zero ? zero(scales, 0, g) : offset;
          for (; j < end; j++) out[o + j] = d * (values[codes[j]!]! - z);
        }
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
