// How the scales of a layout lie, and what a code means under them. Scales keep the precision of the file. In
// front of a block (`headerBytes`) stand those of all its cells, in front of a cell (`scaleBytes`) its own,
// eight rows side by side:
//   f16, bf16, f32, e4m3, i8, u8   one number a row; u4+u4 two in a byte, the scale low
//   u4                             byte r: row r low, row 4 + r high; n stands for n + 1/2
//   i8 by 16                       bytes 2r and 2r + 1: both groups of row r
//   u4 by 16                       byte r: the first group of row r low, the second high; likewise
//   u3 shift                       as u4, but bit 3 says that z is -9, not -7
// A group is what one scale covers; cells of 32 columns have one or two. `form` says how a number comes from a
// code c, its scale d, and what stands beside it:
//   minimum   d · c + m; a symmetric format has m = -d · offset
//   zero      d · (c + z), rounded once; where no z is stored it is -offset
//   signs     d · c above zero, -m · c below (c is signed, m the negative scale there)
//   thousandths: see decode_tile.ts
// Which of the two: formats that decode by a zero point, and those with scales of 24 bits, would round twice
// as `minimum`.

/** A kind of scales. */
export interface ScaleKind {
  /** Bytes in front of a block of cells, for eight rows. */
  readonly headerBytes: number;
  /** Bytes in front of the codes of a cell. */
  readonly scaleBytes: number;
  /** Columns that a scale covers within a cell. */
  readonly groupColumns: 16 | 32;
  readonly form: "minimum" | "zero" | "thousandths" | "signs";
  /** Whether a minimum or a zero is stored. */
  readonly stored: boolean;
  /** What kernels are told by their caller, because layouts that share them differ in it. */
  readonly told?: "blockColumns" | "factor";
}

function kind(
  headerBytes: number,
  { scaleBytes, form, stored, groupColumns = 32 }: {
    readonly scaleBytes: number;
    readonly form: ScaleKind["form"];
    readonly stored: boolean;
    readonly groupColumns?: 16 | 32 | undefined;
  },
): ScaleKind {
  return { headerBytes, scaleBytes, form, stored, groupColumns };
}

/** Kinds of scales; in front of the bar is what stands before a block, behind it what before a cell. */
export const SCALE_KINDS = {
  "|f16": kind(0, { scaleBytes: 16, form: "minimum", stored: false }),
  "|f16 f16": kind(0, { scaleBytes: 32, form: "minimum", stored: true }),
  "|f32 f32": kind(0, { scaleBytes: 64, form: "minimum", stored: true }),
  "|f16 z32": { ...kind(0, { scaleBytes: 48, form: "zero", stored: true }), told: "factor" },
  "|level f16": kind(0, { scaleBytes: 16, form: "zero", stored: false }),
  "|level bf16": kind(0, { scaleBytes: 16, form: "zero", stored: false }),
  "|level e4m3": kind(0, { scaleBytes: 16, form: "zero", stored: false, groupColumns: 16 }),
  "|u8 u8": kind(0, { scaleBytes: 32, form: "thousandths", stored: true, groupColumns: 16 }),
  "f16|": kind(16, { scaleBytes: 0, form: "minimum", stored: false }),
  "f16 f16|": kind(32, { scaleBytes: 0, form: "minimum", stored: true }),
  "f32|": { ...kind(32, { scaleBytes: 0, form: "zero", stored: false }), told: "blockColumns" },
  "f32 z32|": { ...kind(64, { scaleBytes: 0, form: "zero", stored: true }), told: "blockColumns" },
  "f16|i8 by 16": kind(16, { scaleBytes: 16, form: "minimum", stored: false, groupColumns: 16 }),
  "f16|level i8": kind(16, { scaleBytes: 8, form: "zero", stored: false }),
  "f16|u4": kind(16, { scaleBytes: 4, form: "zero", stored: false }),
  "f16|u4 by 16": kind(16, { scaleBytes: 8, form: "zero", stored: false, groupColumns: 16 }),
  "f16|u3 shift": kind(16, { scaleBytes: 4, form: "zero", stored: true }),
  "f16 f16|u8 u8": kind(32, { scaleBytes: 16, form: "minimum", stored: true }),
  "f16 f16|u4+u4 by 16": kind(32, {
    scaleBytes: 16,
    form: "minimum",
    stored: true,
    groupColumns: 16,
  }),
  "f32 f32|": { ...kind(64, { scaleBytes: 0, form: "signs", stored: true }), told: "blockColumns" },
  none: kind(0, { scaleBytes: 0, form: "minimum", stored: false }),
} as const satisfies Record<string, ScaleKind>;

/** Name of a kind of scales. */
export type ScaleName = keyof typeof SCALE_KINDS;
