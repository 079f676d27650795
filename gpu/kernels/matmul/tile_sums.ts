// The sums of a tile of 8-bit products, group by group: as group_product.ts, for the four outputs of a vector at once.

import { type CodeLayout, scaleFacts } from "../../layouts/code_layout.ts";
import { float } from "../../wgsl.ts";
import { list } from "./rows.ts";

/**
 * What a group of x brings to every output: its scale and sum, and the half sum for scales of 16 columns. Where
 * weights have no minima the sum is multiplied by their offset here, once for all outputs.
 */
export function rowScales(layout: CodeLayout): string {
  const { covers, minima } = scaleFacts(layout);
  if (covers === "halves") return "vec3<f32>(x_scales(row, group), x_half(row, group))";
  if (isSixteenfold(layout)) {
    return "bitcast<vec2<f32>>(bitcast<vec2<u32>>(x_scales(row, group)) & vec2<u32>(0xfffffffcu))";
  }
  if (covers === "signs" || minima || layout.offset === 0) return "x_scales(row, group)";
  return `x_scales(row, group) * vec2<f32>(1.0, ${float(-layout.offset)})`;
}

/**
 * Whether codes become signed bytes, sixteen times their levels: no sum of x is subtracted then, and what sums start from
 * goes with the multiplication by the scale of x, a multiply-add (512 rows by 2048×16384 on an H200: 82 TOPS in place of 79).
 * For that the scale goes without its last two bits: three times it is a float then, the start times it exact, and what comes
 * out of a multiply-add of one rounding is the integer times the scale. Without those bits a scale is off by 3e-7 of it, with
 * them an integer by up to 0.05. (Where a device rounds twice, integers are off by as much.)
 */
export function isSixteenfold(layout: CodeLayout): boolean {
  const { covers, minima } = scaleFacts(layout);
  return layout.codes === "u4" && layout.offset === 8 && covers === "group" && !minima;
}

/** The bits of 1.5 · 2²³, from which integers are added up: as a float the sum is that much more, and nothing is converted. */
export const SUM_START = 0x4b400000;
const START = 1.5 * 2 ** 23;

/** Integers that a group adds up for every sum of a block: words of the group, and which bytes of the weights. */
export interface Dots {
  readonly name: string;
  readonly words: readonly [from: number, to: number];
  readonly weights?: (w: string) => string;
}

export function dotsOf(layout: CodeLayout): readonly Dots[] {
  const { covers } = scaleFacts(layout);
  if (covers === "group") return [{ name: "dot", words: [0, 8] }];
  if (covers === "halves") {
    return [{ name: "first", words: [0, 4] }, { name: "second", words: [4, 8] }];
  }
  return [
    { name: "first", words: [0, 8], weights: (w) => `${w} & ~negatives(${w})` },
    { name: "second", words: [0, 8], weights: (w) => `${w} & negatives(${w})` },
  ];
}

/** Components of the scales that {@linkcode groupSum} uses, of weights and of x. */
export function scaleParts(
  layout: CodeLayout,
): { readonly w: readonly string[]; readonly x: readonly string[] } {
  const { covers, minima } = scaleFacts(layout);
  if (covers === "signs") return { w: ["x", "y"], x: ["x"] };
  if (covers === "halves") {
    return { w: minima ? ["x", "y", "z", "w"] : ["x", "y"], x: ["x", "y", "z"] };
  }
  if (isSixteenfold(layout)) return { w: ["x"], x: ["x"] };
  return { w: minima ? ["x", "y"] : ["x"], x: minima || layout.offset !== 0 ? ["x", "y"] : ["x"] };
}

/** Statements before all of {@linkcode groupSum}, of so many rows. */
export function sumStarts(layout: CodeLayout, rows: number): string[] {
  if (!isSixteenfold(layout)) return [];
  return list(rows / 4, (i) => `let start${i} = ax${i} * ${float(-START)};`);
}

/**
 * What a group adds to four sums: the integers of {@linkcode dotsOf}, scales `s{c}{j}` of four weights, scales
 * `a{c}{i / 4}` of four rows of x.
 */
export function groupSum(
  layout: CodeLayout,
  { i, j }: { readonly i: number; readonly j: number },
): string {
  const { covers, minima } = scaleFacts(layout);
  const a = (part: "x" | "y" | "z") => `a${part}${i >> 2}.${"xyzw"[i & 3]}`;
  const scaled = (name: string) =>
    `${a("x")} * (bitcast<vec4<f32>>(${name}${i}_${j}) - vec4<f32>(${float(START)}))`;
  if (isSixteenfold(layout)) {
    const start = `start${i >> 2}.${"xyzw"[i & 3]}`;
    return `sx${j} * fma(vec4<f32>(${
      a("x")
    }), bitcast<vec4<f32>>(dot${i}_${j}), vec4<f32>(${start}))`;
  }
  if (covers === "signs") return `sx${j} * (${scaled("first")}) + sy${j} * (${scaled("second")})`;
  if (covers === "group") {
    if (minima) return `sx${j} * (${scaled("dot")}) + sy${j} * ${a("y")}`;
    const offset = layout.offset === 0 ? "" : ` + vec4<f32>(${a("y")})`;
    return `sx${j} * (${scaled("dot")}${offset})`;
  }
  if (minima) {
    return `sx${j} * (${scaled("first")}) + sy${j} * ${a("z")} + ` +
      `sz${j} * (${scaled("second")}) + sw${j} * (${a("y")} - ${a("z")})`;
  }
  const offset = float(layout.offset);
  return `sx${j} * (${scaled("first")} - ${offset} * ${a("z")}) + ` +
    `sy${j} * (${scaled("second")} - ${offset} * (${a("y")} - ${a("z")}))`;
}
