// Which layout the weights of a number format get, and how the bytes of a file's block become its codes and
// scales. A format that packs its codes in one of the orders below and has scales of a known kind is one line
// here. `order` undefined: the packer is written for the format (assembly/pack/pack.ts).

import { getFormat } from "../quant/mod.ts";
import { WEIGHT_LAYOUTS, type WeightLayout } from "./weight_layout.ts";

/** Ways in which a block's codes lie in a file; see assembly/pack/codes.ts. */
export const CODE_ORDERS = [
  "pairs", // nibbles, the even column low
  "halves_32", // nibbles, column j low and 16 + j high
  "halves_16", // nibbles, column j low and 8 + j high
  "signed", // bytes
  "unsigned", // bytes, 128 above what is stored
  "split_1_4", // the fifth bits of all columns, then nibbles as in `pairs`
  "split_2_4", // bit pairs above nibbles
  "split_1_2", // third bits, then bit pairs
  "bits", // one bit a column, the first column lowest
  "bit_pairs", // bit pairs, the first column lowest
  "base_11", // two codes of 0..10 in 7 bits (quant/formats/q3h_b64t1.ts)
  "k_2", // bit pairs of four times 32 columns a byte
  "magnitudes", // bytes, from 128 on negative: 128 less the byte
  "k_3", // third bits of eight times 32 columns a byte, then as k_2
] as const;

/** What a block's scales are in a file; see assembly/pack/scales.ts. */
export const SCALE_SOURCES = [
  "half", // f16 d
  "base_scale", // f16 m, f16 d
  "single", // f32 d
  "above_below", // f32 d above zero, f32 d below
  "none",
  "single_8", // f32 d, zero is 8
  "e0m4_1", // f16 inverse, f16 bias, of numbers in [2, 4)
  "e0m4_2", // the same of numbers in [4, 8)
  "int4", // f16 d, i16 zero point
  "e8m0", // an exponent, halved
  "e4m3", // a float of 8 bit for each 16 columns, halved
  "bytes", // base and scale of fixed point (quant/formats/q4_b16.ts)
  "q2_k",
  "q3_k",
  "iq4_xs",
] as const;

/** How a file's block is read. */
export interface BlockSource {
  readonly order: typeof CODE_ORDERS[number];
  /** Bytes of a block before its codes. */
  readonly codesAt: number;
  readonly scales: typeof SCALE_SOURCES[number];
  /** Bytes of a block before its scales. */
  readonly scalesAt: number;
}

/** Layout and source of a format. */
export interface FormatLayout {
  readonly layout: WeightLayout;
  readonly source: BlockSource | undefined;
}

function from(
  order: BlockSource["order"],
  codesAt: number,
  scales: BlockSource["scales"],
  scalesAt = 0,
): BlockSource {
  return { order, codesAt, scales, scalesAt };
}

type Line = readonly [layout: string, source?: BlockSource];

/** Formats whose codes stand behind an f16 base and an f16 scale. */
function inferflow(layout: string, order: BlockSource["order"]): Line {
  return [layout, from(order, 4, "base_scale")];
}

function e0m4(group: number, exponent: 1 | 2): readonly [string, Line] {
  const layout = group > 32 ? `Z4_${group}` : exponent === 1 ? "Z4_32_EIGHTH" : "Z4_32_QUARTER";
  const name = `E0M4_G${group}${exponent === 1 ? "" : "_N2"}`;
  return [name, [layout, from("pairs", 4, `e0m4_${exponent}`)]];
}

const GROUPS = [32, 64, 128, 256];

const LINES: ReadonlyMap<string, Line> = new Map(Object.entries<Line>({
  ...Object.fromEntries(
    [
      ...["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "NB4", "Q4_K", "Q5_K"],
      ...["Q6_K", "TQ1_0", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"],
    ].map((name): [string, Line] => [name, [name]]),
  ),
  ...Object.fromEntries(GROUPS.flatMap((group) => [e0m4(group, 1), e0m4(group, 2)])),
  ...Object.fromEntries(GROUPS.map((group): [string, Line] => [
    `INT4_G${group}`,
    [`Z4_${group}`, from("pairs", 4, "int4")],
  ])),
  LF8: ["S8_256", from("signed", 4, "single")],
  Q8_K: ["S8_256", from("signed", 4, "single")],
  Q8_1: ["Q8_0", from("signed", 4, "half")],
  Q8_B32T1: inferflow("Q8_1M", "unsigned"),
  Q6_B64T1: inferflow("Q6_B64", "split_2_4"),
  Q5_B64T1: inferflow("Q5_B64", "split_1_4"),
  Q4_B64T1: inferflow("Q4_B64", "pairs"),
  Q4_B32T1A: inferflow("Q4_1", "pairs"),
  Q4_B32T1B: inferflow("Q4_1", "pairs"),
  Q4_B16: ["Q4_B16", from("pairs", 2, "bytes")],
  // Pairs of base 11 as nibbles: an eighth more bytes than in the file, which cost less than dividing.
  Q3H_B64T1: inferflow("Q4_B64", "base_11"),
  Q3_B32T1A: inferflow("Q3_B32", "split_1_2"),
  Q3_B32T1B: inferflow("Q3_B32", "split_1_2"),
  Q2_B32T1A: inferflow("Q2_B32", "bit_pairs"),
  Q2_B32T1B: inferflow("Q2_B32", "bit_pairs"),
  Q2_K: ["Q2_K", from("k_2", 16, "q2_k")],
  Q3_K: ["Q3_K", from("k_3", 0, "q3_k", 96)],
  Q8_LOG: ["Q8_LOG", from("signed", 0, "none")],
  Q1_0: ["Q1_0", from("bits", 2, "half")],
  TQ2_0: ["TQ2_0", from("k_2", 0, "half", 64)],
  IQ4_NL: ["IQ4_NL", from("halves_32", 2, "half")],
  IQ4_XS: ["IQ4_XS", from("halves_32", 8, "iq4_xs")],
  MXFP4: ["MXFP4", from("halves_32", 1, "e8m0")],
  NVFP4: ["NVFP4", from("halves_16", 4, "e4m3")],
}));

/** The same of formats whose block is a row, by the name without its columns. */
const ROW_LINES: ReadonlyMap<string, Line> = new Map<string, Line>([
  ["I8PC", ["S8_ROW", from("signed", 4, "single")]],
  ["Q8_GL", ["S8_SIGNS", from("magnitudes", 8, "above_below")]],
  ["I4PC", ["Z4_ROW", from("pairs", 4, "single_8")]],
]);

const layouts: ReadonlyMap<string, WeightLayout> = new Map(
  WEIGHT_LAYOUTS.map((layout) => [layout.name, layout]),
);

/** Names of the formats with a fixed block that have a layout. */
export const LAID_OUT_FORMATS: readonly string[] = [...LINES.keys()];

/** Layout and source of a number format, or undefined if no kernel reads that format. */
export function formatLayout(format: string): FormatLayout | undefined {
  const line = LINES.get(format) ?? ROW_LINES.get(format.replace(/_[1-9]\d*$/, ""));
  return line && { layout: layouts.get(line[0])!, source: line[1] };
}

/** Whether a format has kernels on 8-bit activations. */
export function hasIntegerKernel(format: string): boolean {
  return formatLayout(format)?.layout.kind === "codes";
}

/** Numbers by which the packer is told of a source: order, place, scales, place, columns and bytes of a block. */
export function sourceNumbers(format: string, source: BlockSource): number[] {
  const { blockSize, blockBytes } = getFormat(format);
  // Codes without scales are as good as blocks that fill a cell.
  const times = blockSize < 16 ? 32 / blockSize : 1;
  return [
    ...[CODE_ORDERS.indexOf(source.order), source.codesAt],
    ...[SCALE_SOURCES.indexOf(source.scales), source.scalesAt],
    ...[times * blockSize, times * blockBytes],
  ];
}
