// How weights lie in WASM memory. Rows are interleaved by eight: a tile holds eight rows, and in it a cell
// holds 32 columns of all eight, so that one 16-byte vector carries four columns of four rows and a dot
// product leaves one row a lane. Scales stand before the codes that they cover and keep the precision of
// the file; nothing is rounded, so decoding a layout gives exactly the numbers of the format. Number formats
// share layouts; which has which, and how a file's bytes get there, is in format_layouts.ts.
//
// Codes of a cell, as 16-byte vectors v[p][h], h = 0..1, byte 4r + i of which belongs to row 4h + r:
// - 4 bits and more: p = 0..3, the low nibble is column 4p + i, the high nibble column 16 + 4p + i;
// - the fifth bits: vectors b[h]; bit q of a byte is column 4q + i's;
// - the fifth and sixth bits: vectors b[h][q / 4]; bit pair q % 4 is column 4q + i's;
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

import { SCALE_KINDS, type ScaleName } from "./layout_scales.ts";
import type { GridName } from "../quant/iq_grids.ts";
import { POINT_GRIDS } from "./point_grids.ts";

/** Numbers that codes of 4 bit stand for. */
export type CodeTable = "iq4" | "e2m1" | "iq2" | "iq3" | "iq3_s";

/** Where the parts of a cell are; offsets in bytes from the start of the cell. */
export interface WeightLayout {
  /** Number that kernels get. */
  readonly id: number;
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

type Shape = Omit<WeightLayout, "id" | "name">;

function codes(
  kernel: string,
  bits: WeightLayout["bits"],
  scales: ScaleName,
  more: Partial<Pick<Shape, "blockColumns" | "offset" | "table" | "factor" | "spareBytes">> = {},
): Shape {
  const { headerBytes, scaleBytes, groupColumns } = SCALE_KINDS[scales];
  const { spareBytes = 0 } = more;
  return {
    ...{ kernel, kind: "codes", bits, scales, headerBytes, scaleBytes, groupColumns },
    ...{ blockColumns: 32, cellColumns: 32, cellBytes: scaleBytes + 32 * bits + spareBytes },
    ...{ offset: 0, factor: 1, spareBytes, ...more },
  };
}

/** Codes that a table of floats is asked for. */
function levels(kernel: string): Shape {
  return { ...codes(kernel, 8, "none"), kind: "levels" };
}

/** Points of a grid. */
function points(
  grid: GridName,
  scales: ScaleName,
  beside: NonNullable<WeightLayout["points"]>["beside"],
  more: Partial<Pick<Shape, "kernel" | "offset" | "table" | "factor">>,
): Shape {
  const { dimensions, indexBits } = POINT_GRIDS[grid];
  const besideBytes = { signs: 32, shifts: 4, nothing: 0 }[beside];
  const shape = codes(grid, more.table ? 4 : 5, scales, { ...more, blockColumns: 256 });
  const cellBytes = shape.scaleBytes + 32 / dimensions * indexBits + besideBytes;
  return { ...shape, kernel: more.kernel ?? grid, cellBytes, points: { grid, beside } };
}

function float(kernel: string, bytes: number): Shape {
  return {
    ...codes(kernel, 8, "none"),
    ...{ kind: "float", blockColumns: 1, cellColumns: 1, cellBytes: TILE_ROWS * bytes },
  };
}

/**
 * Spare bytes where they pay: codes and halves stay aligned to 4. Not of Q3_K, Q5_B64 and Q6_B64, whose kernels are
 * slower than memory; Z4_64 and Q4_B64, which Q3H is kept in, would take more than an eighth above their files.
 */
const SPARE = 4;

const LAYOUTS: Readonly<Record<string, Shape>> = {
  F32: float("f32", 4),
  F16: float("f16", 2),
  BF16: float("bf16", 2),
  Q4_0: codes("q4_0", 4, "|f16", { offset: 8, spareBytes: SPARE }),
  Q4_1: codes("q4_1", 4, "|f16 f16", { spareBytes: SPARE }),
  Q5_0: codes("q5_0", 5, "|f16", { offset: 16, spareBytes: SPARE }),
  Q5_1: codes("q5_1", 5, "|f16 f16", { spareBytes: SPARE }),
  Q8_0: codes("q8_0", 8, "|f16", { offset: 128, spareBytes: SPARE }),
  Q8_1M: codes("q8_1m", 8, "|f16 f16", { spareBytes: SPARE }),
  NB4: codes("nb4", 4, "|f32 f32", { spareBytes: SPARE }),
  Q2_K: codes("q2_k", 2, "f16 f16|u4+u4 by 16", { blockColumns: 256 }),
  Q3_K: codes("q3_k", 3, "f16|i8 by 16", { blockColumns: 256, offset: 4 }),
  Q4_K: codes("q4_k", 4, "f16 f16|u8 u8", { blockColumns: 256, spareBytes: SPARE }),
  Q5_K: codes("q5_k", 5, "f16 f16|u8 u8", { blockColumns: 256, spareBytes: SPARE }),
  Q6_K: codes("q6_k", 6, "f16|i8 by 16", { blockColumns: 256, offset: 32, spareBytes: SPARE }),
  Q2_B32: codes("q2_b32", 2, "|f16 f16"),
  Q3_B32: codes("q3_b32", 3, "|f16 f16"),
  Q4_B64: codes("q4_b64", 4, "f16 f16|", { blockColumns: 64 }),
  Q5_B64: codes("q5_b64", 5, "f16 f16|", { blockColumns: 64 }),
  Q6_B64: codes("q6_b64", 6, "f16 f16|", { blockColumns: 64 }),
  Q4_B16: codes("q4_b16", 4, "|u8 u8", { spareBytes: SPARE }),
  Z4_32: codes("z4_32", 4, "|f16 z32"),
  Z4_32_EIGHTH: codes("z4_32", 4, "|f16 z32", { factor: 1 / 8 }),
  Z4_32_QUARTER: codes("z4_32", 4, "|f16 z32", { factor: 1 / 4 }),
  Z4_64: codes("z4", 4, "f32 z32|", { blockColumns: 64 }),
  Z4_128: codes("z4", 4, "f32 z32|", { blockColumns: 128 }),
  Z4_256: codes("z4", 4, "f32 z32|", { blockColumns: 256 }),
  Z4_ROW: codes("z4", 4, "f32 z32|", { blockColumns: 0 }),
  S8_256: codes("s8", 8, "f32|", { blockColumns: 256, offset: 128, spareBytes: SPARE }),
  S8_ROW: codes("s8", 8, "f32|", { blockColumns: 0, offset: 128, spareBytes: SPARE }),
  S8_SIGNS: codes("s8_signs", 8, "f32 f32|", { blockColumns: 0, spareBytes: SPARE }),
  Q8_LOG: levels("q8_log"),
  Q1_0: codes("q1_0", 1, "f16|", { blockColumns: 128, offset: 0.5, factor: 2 }),
  TQ2_0: codes("tq2_0", 2, "f16|", { blockColumns: 256, offset: 1 }),
  IQ4_NL: codes("iq4_nl", 4, "|level f16", { table: "iq4", offset: 128, spareBytes: SPARE }),
  IQ4_XS: codes("iq4_xs", 4, "f16|level i8", {
    table: "iq4",
    offset: 128,
    blockColumns: 256,
    spareBytes: SPARE,
  }),
  TQ1_0: { ...codes("tq1_0", 2, "f16|", { blockColumns: 256, offset: 1 }), cellBytes: 52 },
  IQ1_S: points("iq1", "f16|u3 shift", "nothing", { kernel: "iq1_s", factor: 1 / 4 }),
  IQ1_M: points("iq1", "f16|u4 by 16", "shifts", { kernel: "iq1_m", offset: 9, factor: 1 / 4 }),
  IQ2_XXS: points("iq2_xxs", "f16|u4", "signs", { table: "iq2", offset: 43, factor: 1 / 4 }),
  IQ2_XS: points("iq2_xs", "f16|u4 by 16", "signs", { table: "iq2", offset: 43, factor: 1 / 4 }),
  IQ2_S: points("iq2_s", "f16|u4 by 16", "signs", { table: "iq2", offset: 43, factor: 1 / 4 }),
  IQ3_XXS: points("iq3_xxs", "f16|u4", "signs", { table: "iq3", offset: 62, factor: 1 / 2 }),
  IQ3_S: points("iq3_s", "f16|u4", "signs", { table: "iq3_s", offset: 15, factor: 2 }),
  MXFP4: codes("mxfp4", 4, "|level bf16", { table: "e2m1", offset: 12, spareBytes: SPARE }),
  NVFP4: codes("nvfp4", 4, "|level e4m3", { table: "e2m1", offset: 12, spareBytes: SPARE }),
};

/** Every layout, in the order of ids. */
export const WEIGHT_LAYOUTS: readonly WeightLayout[] = Object.entries(LAYOUTS).map(
  ([name, layout], id) => ({ id, name, ...layout }),
);

/** Bits of what a code becomes before it is multiplied. */
export function factorBits(
  { bits, table, scales }: Pick<WeightLayout, "bits" | "table" | "scales">,
): number {
  if (SCALE_KINDS[scales].form === "signs") return 7;
  if (table === "iq2" || table === "iq3") return 7;
  return table === "iq4" ? 8 : table === "e2m1" || table === "iq3_s" ? 5 : bits;
}

/** Bytes of one tile of eight rows. */
export function tileBytes(layout: WeightLayout, columns: number): number {
  const blocks = layout.blockColumns ? Math.ceil(columns / layout.blockColumns) : 1;
  const cells = Math.ceil(columns / layout.cellColumns);
  return blocks * layout.headerBytes + cells * layout.cellBytes;
}
