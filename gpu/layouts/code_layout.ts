// What a layout of integer codes with scales is: how codes are stored, how scales are, how many columns share one.
// The three are independent, so a few kinds of each serve every number format, and formats that agree in all of
// them share their shaders whatever their files look like. All of it follows from the description of a format's block
// (quant/block.ts). Every group of 32 columns is one step of a kernel; group g of row r is number r · K/32 + g in every
// plane of codes. Scales keep the precision of the file, and what a format derives from integers is derived by the
// shader: nothing is rounded on the way.

import { type BlockLayout, type CodeBlock, hasFields } from "../../quant/block.ts";
import { blocksOfRun, codeReader, type FileBytes, fileBytes } from "../../quant/code_reader.ts";
import { codeBits } from "../../quant/fields.ts";
import { E2M1_DOUBLED } from "../../quant/e2m1.ts";
import type { NumberFormat } from "../../quant/format.ts";
import { formats, getFormat, rowFormatsOf } from "../../quant/mod.ts";
import {
  scaleBytes,
  scaleCopier,
  type ScaleFacts,
  scaleFactsOf,
  type ScaleKind,
} from "../../quant/scale_kinds.ts";
import type { GpuWeightLayout } from "../packed_layout.ts";
import { CODE_KINDS, type CodeKind, levelPairs, planeWriter, wordsOf } from "./code_planes.ts";
import { POINT_KINDS, pointScales, pointTable, pointWriter } from "./point_planes.ts";

export type { ScaleKind };

/** Columns of a step of a kernel. */
export const GROUP_COLUMNS = 32;

/** What kernels have to know about a layout of codes. */
export interface CodeLayout extends GpuWeightLayout {
  readonly codes: CodeKind;
  readonly scales: ScaleKind;
  /** Columns that share a scale, for kinds that do not say it. */
  readonly span: number | "row";
  /** What is subtracted from a stored code. */
  readonly offset: number;
  /** By which scales of the kinds `n8` and `n16` are multiplied. */
  readonly factor: number;
}

/** Facts of a layout's scales. */
export function scaleFacts({ scales }: Pick<CodeLayout, "scales">): ScaleFacts {
  return scaleFactsOf(scales);
}

type Codes = Pick<CodeLayout, "codes" | "offset" | "factor"> & {
  /** Part of the id where layouts differ in their offset only. */
  readonly variant?: string;
  readonly table?: () => Uint32Array<ArrayBuffer>;
};

/**
 * How codes are stored. Floats of 4 bits, E2M1, are made of their bits and IQ4's levels come from a table of pairs, the
 * fastest of six ways each (bench/results/kernels.md).
 */
function codesOf(block: BlockLayout): Codes {
  if ("grid" in block) {
    const table = () => pointTable(block), codes = POINT_KINDS[block.grid];
    if (!block.shifts && codes !== "p11") return { codes, offset: 0, factor: block.factor, table };
    return { codes, offset: 16, factor: block.factor / 8, table };
  }
  const { levels, offset = 0, signed, codes: packing } = block, factor = 1;
  if ("pack" in packing && packing.name === "base_3") return { codes: "t5", offset, factor };
  if (levels?.length === 2) return { codes: "s1", offset: 0, factor };
  if (levels === E2M1_DOUBLED) return { codes: "f4", offset: 16, factor };
  if (levels) return { codes: "l4", offset, factor, table: () => levelPairs(levels) };
  const bits = codeBits(block);
  if (bits < 8) return { codes: `u${bits}` as CodeKind, offset, factor };
  return { codes: "i8", ...signed ? { offset } : { variant: "u", offset: -128 }, factor };
}

function defineCodeLayout({ block, blockSize, rowFamily }: NumberFormat): CodeLayout {
  const { codes, variant = "", table, offset, factor } = codesOf(block!);
  const scales = block!.scales.kind, own = scaleFactsOf(scales).columns;
  const span = own ? GROUP_COLUMNS : rowFamily ? "row" : blockSize;
  // So many rows make the scales of an odd number of groups whole words.
  const rowGroup = scales === "e8" ? 4 : 2;
  let made: Uint32Array<ArrayBuffer> | undefined;
  return {
    id: `${codes}${variant}_${scales}${span === GROUP_COLUMNS ? "" : `_${span}`}`,
    ...{ codes, scales, span, offset, factor, rowGroup },
    get table() {
      return made ??= table?.();
    },
    planeBytes(columns) {
      const groups = rowGroup * columns / GROUP_COLUMNS;
      return [
        ...CODE_KINDS[codes].map(({ bytes }) => groups * bytes),
        rowGroup * scaleBytes(scales, span === "row" ? columns : span, columns),
      ];
    },
    pack(bytes, { format, rows, columns }, planes) {
      const blocks = rows * columns / getFormat(format).blockSize;
      packBlocks(bytes, { format: getFormat(format), blocks, codes, planes });
    },
  };
}

/** Blocks of a format, and the planes that they go to. */
interface PackedBlocks {
  readonly format: NumberFormat;
  readonly blocks: number;
  readonly codes: CodeKind;
  readonly planes: readonly Uint8Array[];
}

function packBlocks(bytes: Uint8Array, packed: PackedBlocks): void {
  const { format, blocks, codes, planes } = packed, { block, blockSize, blockBytes } = format;
  const copyScales = "grid" in block!
    ? pointScales(block, blockBytes)
    : scaleCopier(block!.scales, format);
  const own = scaleBytes(block!.scales.kind, blockSize, blockSize), run = blocksOfRun(format);
  const plane = planes[CODE_KINDS[codes].length]!;
  const write = codeWriter(fileBytes(bytes), packed);
  for (let first = 0; first < blocks; first += run) {
    const at = first * blockBytes, count = Math.min(run, blocks - first);
    write(at, first, count);
    copyScales(bytes, at, count, plane, first * own);
  }
}

/** Writes the codes of so many blocks, from number `first` on, which is at byte `at` of the file. */
type CodeWriter = (at: number, first: number, blocks: number) => void;

function codeWriter(file: FileBytes, { format, codes, planes }: PackedBlocks): CodeWriter {
  const { blockSize, blockBytes } = format, block = format.block!;
  if ("grid" in block) return pointWriter(block, { blockBytes, bytes: file.bytes, planes });
  const kinds = CODE_KINDS[codes], groups = blockSize / GROUP_COLUMNS;
  // Unsigned bytes are kept less 128.
  const flip = block.signed ? 0 : 0x80808080;
  const quads = new Int32Array(blocksOfRun(format) * blockSize / 4);
  // A field of a block is a plane.
  const writers = kinds.map((kind, i): CodeWriter => {
    const plane = wordsOf(planes[i]!), fields = hasFields(block) ? [block.codes[i]!] : block.codes;
    // Bytes of base 3 keep the arrangement of the file, in which the digits of one are columns far from each other.
    const from = codes === "t5" ? 0 : copiedFrom(fields, block.signed);
    if (from !== undefined) {
      return wordCopier(file, plane, { from, words: groups * kind.bytes / 4, blockBytes });
    }
    const read = codeReader({ codes: fields }, format), write = planeWriter(kind);
    return (at, first, blocks) => {
      read(file, at, blocks, quads);
      write(quads, plane, first * groups, blocks * groups, flip);
    };
  });
  return (at, first, blocks) => {
    for (const write of writers) write(at, first, blocks);
  };
}

/** Where in blocks of a file codes lie as they lie in their plane: the byte, or undefined if they do not. */
function copiedFrom(codes: CodeBlock["codes"], signed = false): number | undefined {
  if ("pack" in codes) return undefined;
  const { at, bits, run } = codes[0]!;
  return bits === 4 && run === 16 || bits === 8 && signed ? at : undefined;
}

/** Copies so many words of each block as they are. */
function wordCopier(
  { view }: FileBytes,
  plane: Int32Array,
  { from: start, words, blockBytes }: {
    readonly from: number;
    readonly words: number;
    readonly blockBytes: number;
  },
): CodeWriter {
  return (at, first, blocks) => {
    let to = first * words, block = at + start;
    for (let b = 0; b < blocks; b++, block = (block + blockBytes) | 0) {
      let from = block;
      const end = (to + words) | 0, fours = (to + (words & -4)) | 0;
      for (; to < fours; to = (to + 4) | 0, from = (from + 16) | 0) {
        plane[to] = view.getInt32(from, true);
        plane[(to + 1) | 0] = view.getInt32((from + 4) | 0, true);
        plane[(to + 2) | 0] = view.getInt32((from + 8) | 0, true);
        plane[(to + 3) | 0] = view.getInt32((from + 12) | 0, true);
      }
      for (; to < end; to = (to + 1) | 0, from = (from + 4) | 0) {
        plane[to] = view.getInt32(from, true);
      }
    }
  };
}

let layouts: ReadonlyMap<string, CodeLayout> | undefined;

/** Layouts of codes by number format, of those whose block is a row by its name without the columns. */
export function codeLayouts(): ReadonlyMap<string, CodeLayout> {
  // Rows of 64 stand for all.
  const all = [...formats.values(), ...rowFormatsOf(64)].filter(({ block }) => block);
  return layouts ??= new Map(
    all.map((format) => [format.rowFamily ?? format.name, defineCodeLayout(format)]),
  );
}

let byId: ReadonlyMap<string, CodeLayout> | undefined;

/** The layout of an id if it holds codes with scales, which integer kernels read; else undefined. */
export function codeLayout(id: string): CodeLayout | undefined {
  byId ??= new Map([...codeLayouts().values()].map((layout) => [layout.id, layout]));
  return byId.get(id);
}

/** The layout of codes of a number format whose rows are whole groups of 32 columns; undefined if there is none. */
export function codeLayoutOf(format: string): CodeLayout | undefined {
  const own = codeLayouts().get(format);
  if (own) return own;
  const [, family = "", columns] = /^(\w+)_(\d+)$/.exec(format) ?? [];
  return Number(columns) % GROUP_COLUMNS === 0 ? codeLayouts().get(family) : undefined;
}
