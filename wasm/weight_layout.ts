// How weights lie in WASM memory. Rows are interleaved by eight: a tile holds eight rows, and in it a cell
// holds 32 columns of all eight, so that one 16-byte vector carries four columns of four rows and a dot
// product leaves one row a lane. Scales stand before the codes that they cover and keep the precision of
// the file; nothing is rounded, so decoding a layout gives exactly the numbers of the format. Number formats
// that agree in what kernels have to know share a layout. Layouts follow from the descriptions of blocks
// (quant/block.ts); how a file's bytes get there is in format_layouts.ts.
//
// Codes of a cell, as 16-byte vectors v[p][h], h = 0..1, byte 4r + i of which belongs to row 4h + r:
// - 4 bits and 5: p = 0..3, the low nibble is column 4p + i, the high nibble column 16 + 4p + i;
// - the fifth bits: vectors b[h]; bit q of a byte is column 4q + i's;
// - 6 bits: p = 0..5; the low six bits of v[3s + j] are columns 16s + 4j + i, j = 0..2, and bits 6 and 7 of the three
//   are bits 4 and 5, 2 and 3, 0 and 1 of columns 16s + 12 + i;
// - 2 bits and 3: p = 0..1, bit pair q % 4 of v[q / 4][h] is column 4q + i's; then the third bits like fifth;
// - 1 bit: vectors b[h], bit q of a byte is column 4q + i's;
// - 8 bits: vectors v[q][h], q = 0..7, column 4q + i, as signed bytes (less 128 where the format has 0..255).
// Behind them cells of some formats have bytes that mean nothing and change while weights are read: writing to one
// is what fetches memory ahead of time (gen/gemv.ts).
// Float formats have cells of one column.
//
// Formats of grid points keep points and signs (gen/point_cells.ts). A cell has, behind its scales:
// - the numbers of points, of b bits, row after row, without gaps: 4 of a row with points of 8 columns, 8 of 4;
// - signs, like the 1-bit codes; or, of IQ1_M, shifts: bit p of the low nibble of byte r is up for columns 8p to
//   8p + 7 of row r, of the high nibble for row 4 + r.
// TQ1_0 keeps its bytes of five digits: vectors v[k][h], k = 0..12, byte 4r + i of which is byte 4k + i of row
// 4h + r, its top bit turned (assembly/matmul/ternary.ts).
//
// Rows are padded with zeros to a multiple of 16, so that matrix products may always take two tiles. Columns
// that do not fill a cell (I8PC_40) leave the rest of it unread.

import type { CodeBlock, PointBlock } from "../quant/block.ts";
import { codeBits } from "../quant/fields.ts";
import { E2M1_DOUBLED } from "../quant/e2m1.ts";
import type { NumberFormat } from "../quant/format.ts";
import { IQ4_LEVELS } from "../quant/iq4_fit.ts";
import type { GridName } from "../quant/iq_grids.ts";
import { formats, rowFormatsOf } from "../quant/mod.ts";
import type { ScaleKind } from "../quant/scale_kinds.ts";
import { SCALE_KINDS, type ScaleKind as ScaleFacts, type ScaleName } from "./layout_scales.ts";
import { POINT_GRIDS, POINT_LEVELS } from "./point_grids.ts";

/** Numbers that codes of 4 bit stand for. */
export type CodeTable = "iq4" | "e2m1" | "iq2" | "iq3" | "iq3_s";

/** Where the parts of a cell are; offsets in bytes from the start of the cell. */
export interface WeightLayout {
  /** Number that kernels get. */
  readonly id: number;
  /** That of the first number format that has it, without the columns of a row. */
  readonly name: string;
  /**
   * Layouts with the same kernel differ only in what it is told: length of a block, factor, or table and offset
   * (gen/kernel_layouts.ts).
   */
  readonly kernel: string;
  /** `codes` are integers with scales, `levels` codes of a table of floats, `float` plain numbers. */
  readonly kind: "codes" | "levels" | "float";
  /** Bits of a code; of formats of grid points those of a coordinate with its sign or shift. */
  readonly bits: 1 | 2 | 3 | 4 | 5 | 6 | 8;
  /** Grid whose points a cell names, if any, and what it has for each column or point beside them. */
  readonly points?: { readonly grid: GridName; readonly beside: "signs" | "shifts" | "nothing" };
  /** What a code is looked up in before it is multiplied. */
  readonly table?: CodeTable;
  /** Columns under one header; 0 for a whole row. */
  readonly blockColumns: number;
  /** Bytes in front of the cells of a block, for eight rows. */
  readonly headerBytes: number;
  /** Columns of a cell. */
  readonly cellColumns: number;
  /** Bytes of a cell of eight rows, its scales included; of TQ1_0, whose cells share bytes, an eighth of a block. */
  readonly cellBytes: number;
  readonly scales: ScaleName;
  /** Bytes of scales at the start of a cell. */
  readonly scaleBytes: number;
  /** Bytes at the end of a cell that mean nothing; writing there fetches a cell (gen/gemv.ts). */
  readonly spareBytes: number;
  /** What is subtracted from a code of a symmetric format; 0 for formats with minima or zeros. */
  readonly offset: number;
  /** A scale covers this many columns of a cell (kind `codes`). */
  readonly groupColumns: 16 | 32;
  /** What stored scales are multiplied by, a power of two. */
  readonly factor: number;
}

/** Rows of a tile. */
export const TILE_ROWS = 8;
/** Row counts are padded to a multiple of this. */
export const PADDED_ROWS = 16;

type Shape = Omit<WeightLayout, "id" | "name" | "kernel">;

function shapeOf(bits: WeightLayout["bits"], scales: ScaleName, more: Partial<Shape> = {}): Shape {
  const { headerBytes, scaleBytes, groupColumns } = SCALE_KINDS[scales];
  const spareBytes = hasSpare(bits, scales) ? SPARE : 0;
  return {
    ...{ kind: "codes", bits, scales, headerBytes, scaleBytes, groupColumns, spareBytes },
    ...{ blockColumns: 32, cellColumns: 32, cellBytes: scaleBytes + 32 * bits + spareBytes },
    ...{ offset: 0, factor: 1, ...more },
  };
}

const SPARE = 4;

/**
 * Spare bytes where they pay: codes and halves stay aligned to 4. Not where kernels are slower than memory, and not of
 * scales that stand before blocks of 64, which would take more than an eighth above their files.
 */
function hasSpare(bits: number, scales: ScaleName): boolean {
  return bits >= 4 && !["f16 f16|", "f32 z32|", "|f16 z32", "none"].includes(scales);
}

/** Scales in a cell, and before a block of several cells, by kind (quant/scale_kinds.ts). */
const SCALE_NAMES: Readonly<Record<ScaleKind, readonly [cell: ScaleName, block: ScaleName]>> = {
  d: ["|f16", "f16|"],
  f: ["f32|", "f32|"],
  dm: ["|f16 f16", "f16 f16|"],
  fm: ["|f32 f32", "|f32 f32"],
  dz: ["|f16 z32", "f32 z32|"],
  e1: ["|f16 z32", "f32 z32|"],
  e2: ["|f16 z32", "f32 z32|"],
  sides: ["f32 f32|", "f32 f32|"],
  e8: ["|level bf16", "|level bf16"],
  k: ["f16 f16|u8 u8", "f16 f16|u8 u8"],
  k8: ["f16|level i8", "f16|level i8"],
  n8: ["f16|u4", "f16|u4"],
  n16: ["f16|u4 by 16", "f16|u4 by 16"],
  k16: ["f16|i8 by 16", "f16|i8 by 16"],
  kn16: ["f16 f16|u4+u4 by 16", "f16 f16|u4+u4 by 16"],
  e4m3: ["|level e4m3", "|level e4m3"],
  b16: ["|u8 u8", "|u8 u8"],
};

/** Tables of levels. */
const TABLES: ReadonlyMap<Int8Array, CodeTable> = new Map([
  [IQ4_LEVELS, "iq4"],
  [E2M1_DOUBLED, "e2m1"],
]);

/** What scales in a cell are multiplied by, if not by one: E0M4 counts in sixteenths of a power of two. */
const CELL_FACTORS: Partial<Record<ScaleKind, number>> = { e1: 1 / 8, e2: 1 / 4 };

function codesShape(block: CodeBlock, { blockSize, rowFamily }: NumberFormat): Shape | undefined {
  const { codes, levels, signed, offset = 0, scales: { kind } } = block;
  const inCell = blockSize <= 32 && !rowFamily, bits = codeBits(block) as WeightLayout["bits"];
  const named = SCALE_NAMES[kind][inCell ? 0 : 1];
  const scales = kind === "f" && bits < 8 ? "f32 z32|" : named;
  const columns = SCALE_KINDS[scales].headerBytes === 0 ? 32 : rowFamily ? 0 : blockSize;
  const shape = (more: Partial<Shape>, name = scales) =>
    shapeOf(bits, name, { blockColumns: columns, ...more });
  if (levels?.length === 2) return shape({ offset: 0.5, factor: 2 });
  if (levels) {
    const table = TABLES.get(levels);
    if (!table) return undefined;
    // Codes of IQ4 are signed bytes when they are multiplied, those of E2M1 count from the least.
    const least = table === "iq4" ? 128 : -Math.min(...levels);
    return shape({ table, offset: least }, scales === "|f16" ? "|level f16" : scales);
  }
  if ("name" in codes && codes.name === "base_3") return { ...shape({ offset }), cellBytes: 52 };
  const { form, stored } = SCALE_KINDS[scales];
  if (form === "signs" || form === "zero" && stored) {
    return shape({ factor: inCell ? CELL_FACTORS[kind] ?? 1 : 1 });
  }
  return shape({ offset: bits === 8 && signed ? 128 : offset });
}

/** Points of a grid. */
function pointsShape({ grid, signs, shifts, factor, scales: { kind } }: PointBlock): Shape {
  const { dimensions, indexBits, table } = POINT_GRIDS[grid];
  const moved = shifts !== undefined, inScale = moved && kind === "n8";
  const beside = signs ? "signs" : inScale ? "nothing" : "shifts";
  const shape = shapeOf(signs ? 4 : 5, inScale ? "f16|u3 shift" : SCALE_NAMES[kind][1]);
  const besideBytes = { signs: 32, shifts: 4, nothing: 0 }[beside];
  return {
    ...shape,
    ...{ blockColumns: 256, spareBytes: 0, points: { grid, beside } },
    cellBytes: shape.scaleBytes + 32 / dimensions * indexBits + besideBytes,
    ...table ? { table, offset: POINT_LEVELS[table].at(-1)! } : { offset: inScale ? 0 : 9 },
    factor: moved ? factor / 8 : factor,
  };
}

function float(bytes: number): Shape {
  const cellBytes = TILE_ROWS * bytes;
  return { ...shapeOf(8, "none"), kind: "float", blockColumns: 1, cellColumns: 1, cellBytes };
}

/** Layouts of formats without blocks. */
const PLAIN: Readonly<Record<string, Shape>> = {
  ...{ F32: float(4), F16: float(2), BF16: float(2) },
  Q8_LOG: { ...shapeOf(8, "none"), kind: "levels" },
};

function shapeOfFormat(format: NumberFormat): Shape | undefined {
  const { name, block } = format;
  if (!block) return PLAIN[name];
  return "grid" in block ? pointsShape(block) : codesShape(block, format);
}

/** What layouts differ in, or kernels, which are told one thing by their caller. */
function keyOf({ bits, scales, table, points, offset, ...shape }: Shape, kernel: boolean): string {
  const { told } = SCALE_KINDS[scales] as ScaleFacts;
  const blockColumns = kernel && told === "blockColumns" ? "" : shape.blockColumns;
  const factor = kernel && told === "factor" ? "" : shape.factor;
  return `${bits} ${scales} ${table} ${points?.grid} ${points?.beside} ${offset} ${shape.cellBytes} ` +
    `${blockColumns} ${factor}`;
}

/** Every layout, and layouts by format, that of a row without its columns. Formats that agree in all share one. */
function makeLayouts() {
  const byFormat = new Map<string, WeightLayout>();
  const byShape = new Map<string, WeightLayout>(), kernels = new Map<string, string>();
  // Rows of 64 stand for all.
  for (const format of [...formats.values(), ...rowFormatsOf(64)]) {
    const shape = shapeOfFormat(format), name = format.rowFamily ?? format.name;
    if (!shape) continue;
    const kernelKey = format.block ? keyOf(shape, true) : name;
    const key = format.block ? keyOf(shape, false) : name;
    const kernel = kernels.get(kernelKey) ?? name.toLowerCase();
    const layout = byShape.get(key) ?? { id: byShape.size, name, kernel, ...shape };
    kernels.set(kernelKey, kernel);
    byShape.set(key, layout);
    byFormat.set(name, layout);
  }
  return { all: [...byShape.values()], byFormat };
}

const made = makeLayouts();

/** Every layout, in the order of ids. */
export const WEIGHT_LAYOUTS: readonly WeightLayout[] = made.all;

/** Layouts by number format, of those whose block is a row by its name without the columns. */
export const LAYOUTS_BY_FORMAT: ReadonlyMap<string, WeightLayout> = made.byFormat;

/** Bits of what a code becomes before it is multiplied. */
export function factorBits(
  { bits, table, scales }: Pick<WeightLayout, "bits" | "table" | "scales">,
): number {
  if (SCALE_KINDS[scales].form === "signs") return 7;
  if (table === "iq2" || table === "iq3") return 7;
  return table === "iq4" ? 8 : table === "e2m1" || table === "iq3_s" ? 5 : bits;
}

/** Whether codes are signed bytes, with one scale for a cell or more and nothing else. */
export function isSignedBytes(layout: WeightLayout): boolean {
  const { kind, table, scales, offset, groupColumns } = layout;
  return kind === "codes" && factorBits(layout) === 8 && !table && offset === 128 &&
    groupColumns === 32 && SCALE_KINDS[scales].form !== "signs";
}

/** Bytes of one tile of eight rows. */
export function tileBytes(layout: WeightLayout, columns: number): number {
  const blocks = layout.blockColumns ? Math.ceil(columns / layout.blockColumns) : 1;
  const cells = Math.ceil(columns / layout.cellColumns);
  return blocks * layout.headerBytes + cells * layout.cellBytes;
}
