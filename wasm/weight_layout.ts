// How weights lie in WASM memory. Rows are interleaved by eight: a tile holds eight rows, and in it a cell
// holds 32 columns of all eight, so that one 16-byte vector carries four columns of four rows and a dot
// product leaves one row a lane. Scales stand before the codes of their cell and keep the precision of
// the file; nothing is rounded, so decoding a layout gives exactly the numbers of the format.
//
// Codes of a cell, as 16-byte vectors v[p][h], p = 0..3, h = 0..1, byte 4r + i of which belongs to row
// 4h + r:
// - 4 bits and more: the low nibble is column 4p + i, the high nibble column 16 + 4p + i;
// - the fifth bits: vectors b[h]; bit q of a byte is column 4q + i's;
// - the fifth and sixth bits of Q6_K: vectors b[h][q / 4]; bit pair q % 4 is column 4q + i's;
// - 8 bits: vectors v[q][h], q = 0..7, column 4q + i.
// Float formats have cells of one column. Q2_K and Q3_K keep their rows as in the file: only the exact
// path reads them, through a scalar decoder.
//
// Rows are padded with zeros to a multiple of 16, so that matrix products may always take two tiles.

/** Where the parts of a cell are; offsets in bytes from the start of the cell. */
export interface WeightLayout {
  /** Number that kernels get. */
  readonly id: number;
  /** Name of the number format whose weights it holds. */
  readonly format: string;
  /** `codes` are integers with scales, `float` plain numbers, `rows` unchanged rows of the file. */
  readonly kind: "codes" | "float" | "rows";
  /** Bits of a code (kind `codes`). */
  readonly bits: 4 | 5 | 6 | 8;
  /** Columns under one header; rows must be multiples of this. */
  readonly blockColumns: number;
  /** Bytes in front of the cells of a block, for eight rows. */
  readonly headerBytes: number;
  /** Columns of a cell. */
  readonly cellColumns: number;
  /** Bytes of a cell of eight rows, its scales included. */
  readonly cellBytes: number;
  /** Bytes of scales at the start of a cell. */
  readonly scaleBytes: number;
  /** What is subtracted from a code of a symmetric format; 0 for formats with minima. */
  readonly offset: number;
  /** A scale covers this many columns (kind `codes`). */
  readonly groupColumns: 16 | 32;
}

/** Rows of a tile. */
export const TILE_ROWS = 8;
/** Row counts are padded to a multiple of this. */
export const PADDED_ROWS = 16;

function plain(
  bits: 4 | 5 | 8,
  scaleBytes: number,
  offset: number,
): Omit<WeightLayout, "id" | "format"> {
  return {
    kind: "codes",
    bits,
    blockColumns: 32,
    headerBytes: 0,
    cellColumns: 32,
    cellBytes: scaleBytes + 32 * bits,
    scaleBytes,
    offset,
    groupColumns: 32,
  };
}

function super256(bits: 4 | 5 | 6, headerBytes: number): Omit<WeightLayout, "id" | "format"> {
  return {
    ...plain(4, 16, bits === 6 ? 32 : 0),
    bits,
    blockColumns: 256,
    headerBytes,
    cellBytes: 16 + 32 * bits,
    groupColumns: bits === 6 ? 16 : 32,
  };
}

function float(bytes: number): Omit<WeightLayout, "id" | "format"> {
  return {
    ...plain(8, 0, 0),
    kind: "float",
    blockColumns: 1,
    cellColumns: 1,
    cellBytes: TILE_ROWS * bytes,
  };
}

function fileRows(blockBytes: number): Omit<WeightLayout, "id" | "format"> {
  return {
    ...plain(8, 0, 0),
    kind: "rows",
    blockColumns: 256,
    cellColumns: 256,
    cellBytes: TILE_ROWS * blockBytes,
  };
}

const BY_FORMAT = {
  F32: float(4),
  F16: float(2),
  BF16: float(2),
  Q4_0: plain(4, 16, 8),
  Q4_1: plain(4, 32, 0),
  Q5_0: plain(5, 16, 16),
  Q5_1: plain(5, 32, 0),
  Q8_0: plain(8, 16, 128),
  Q4_K: super256(4, 32),
  Q5_K: super256(5, 32),
  Q6_K: super256(6, 16),
  NB4: plain(4, 64, 0),
  Q2_K: fileRows(84),
  Q3_K: fileRows(110),
} as const satisfies Record<string, Omit<WeightLayout, "id" | "format">>;

/** Every layout, in the order of ids. */
export const WEIGHT_LAYOUTS: readonly WeightLayout[] = Object.entries(BY_FORMAT).map(
  ([format, layout], id) => ({ id, format, ...layout }),
);

const layouts: ReadonlyMap<string, WeightLayout> = new Map(
  WEIGHT_LAYOUTS.map((layout) => [layout.format, layout]),
);

/** The layout of a number format, or undefined if no kernel reads that format. */
export function layoutOfFormat(format: string): WeightLayout | undefined {
  return layouts.get(format);
}

/** Whether a format has kernels on 8-bit activations. */
export function hasIntegerKernel(format: string): boolean {
  return layouts.get(format)?.kind === "codes";
}

/** Bytes of one tile of eight rows. */
export function tileBytes(layout: WeightLayout, columns: number): number {
  const blocks = columns / layout.blockColumns;
  const cells = columns / layout.cellColumns;
  return blocks * layout.headerBytes + cells * layout.cellBytes;
}
