// Packed weights in text that V8 joins to 256 bits (planes.ts): both halves of a tile come out of two loads, which V8 does not
// join, as lanes of 64 bits, whose low half is a lane of the first load and whose high half one of the second. So lanes of vector 0
// are weight rows 0, 4, 1, 5 and of vector 1 rows 2, 6, 3, 7; scales are put in that order, and sums back at the end.

import { LAYOUTS_BY_FORMAT, type WeightLayout } from "../weight_layout.ts";
import { cellHighBits, codeVector } from "./cells.ts";
import type { DotStyle } from "./dots.ts";
import { spread } from "./planes.ts";
import { blockHeader, cellScales, HALVES } from "./scales.ts";
import { hasOffsets, hasStepMinima } from "./steps.ts";

/** Ways to multiply (dots.ts) that have such kernels. */
export type JoinedStyle = Exclude<DotStyle, "plain">;

/** Formats that models come in most often. */
const COMMON: readonly string[] = ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K"];

function layoutsOf(formats: readonly string[]): readonly WeightLayout[] {
  return formats.map((format) => LAYOUTS_BY_FORMAT.get(format)!);
}

/** Layouts that have such kernels. */
export const JOINED_LAYOUTS: Readonly<Record<DotStyle, readonly WeightLayout[]>> = {
  dot: layoutsOf(COMMON),
  pair: layoutsOf([...COMMON, "LF8"]),
  plain: [],
};

/** Statements for half `h` of a tile, where what it loads becomes vector `h` of both halves. */
function joined(lines: readonly string[], h: number): string[] {
  return lines.flatMap((line) => {
    const [load, offset] = /v128\.load\(w, (\d+)\)/.exec(line) ?? [];
    if (!load) return [line];
    const at = Number(offset) - 16 * h, half = (name: string) => spread(name, h, "i64x2");
    return [
      ...h ? [] : [`const low${at} = v128.load(w, ${at}), high${at} = v128.load(w, ${at + 16});`],
      line.replace(load, `v128.or(${half(`low${at}`)}, i64x2.shl(${half(`high${at}`)}, 32))`),
    ];
  });
}

/** Statements for scales, floats or halves, in the order of the lanes. */
function joinedScales(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const [, name, half] = /^const (\w+?)([01h]) = v128\.load\(w/.exec(line) ?? [];
    if (half !== "h") return half ? joined([line], Number(half)) : [line];
    const order = `v128.shuffle<i16>(${name}l, ${name}l, 0, 4, 1, 5, 2, 6, 3, 7)`;
    return [line.replace(`${name}h`, `${name}l`), `const ${name}h = ${order};`];
  });
}

/** `cellHighBits` in the order of the lanes. */
export function joinedHighBits(layout: WeightLayout): string[] {
  return cellHighBits(layout).flatMap((line, h) => joined([line], h));
}

/** `codeVector` of both halves. */
export function joinedCodes(layout: WeightLayout, q: number, raw: boolean): string[] {
  return HALVES.flatMap((h) => joined(codeVector(layout, q, h, raw), h));
}

/** `blockHeader` in the order of the lanes. */
export function joinedHeader(layout: WeightLayout): string[] {
  return joinedScales(blockHeader(layout, "minimum"));
}

/** `cellScales` in the order of the lanes. */
export function joinedCellScales(layout: WeightLayout): string[] {
  return joinedScales(cellScales(layout, "minimum"));
}

/** Constants of kernels of layouts with steps. */
export function joinedStepConstants(layout: WeightLayout, style: JoinedStyle): string[] {
  const load = (name: string, at: number) => `const ${name} = v128.load(SPREAD_AT, ${16 * at});`;
  if (hasStepMinima(layout)) return [load("STEPS", 8), load("MINIMA", 9)];
  if (!hasOffsets(layout)) return [];
  return style === "pair" ? [load("EVEN", 10), load("ODD", 11)] : [load("PAIRS", 12)];
}

/** Statements that read the steps of a cell, S{g}_{h}: with `pair` as 16 bits, twice a row, else as floats. */
export function joinedSteps(layout: WeightLayout, style: JoinedStyle): string[] {
  const hasMinima = hasStepMinima(layout), sign = hasMinima ? "u" : "s";
  const spreads = (name: string, table: string) => [
    `const ${name} = lookUp(steps, ${table});`,
    ...HALVES.map((h) => `const ${name}_${h} = ${spread(name, h, "i16x8", sign)};`),
  ];
  const asFloat = (g: number, h: number, lane: string) =>
    `const S${g}_${h} = f32x4.convert_i32x4_s(${lane});`;
  const load = "const steps = v128.load(w);";
  if (style === "pair") {
    const tables = hasMinima ? ["STEPS"] : ["EVEN", "ODD"];
    return [load, ...tables.flatMap((table, g) => spreads(`S${g}`, table))];
  }
  return [
    load,
    ...spreads("P", hasMinima ? "STEPS" : "PAIRS"),
    ...HALVES.map((h) =>
      asFloat(
        0,
        h,
        hasMinima ? `i32x4.shr_u(P_${h}, 16)` : `i32x4.shr_s(i32x4.shl(P_${h}, 16), 16)`,
      )
    ),
    ...hasMinima ? [] : HALVES.map((h) => asFloat(1, h, `i32x4.shr_s(P_${h}, 16)`)),
  ];
}

/** Statements that make floats M{h} of the minima among steps of a cell. */
export function joinedMinima(steps: string): string[] {
  return [
    `const M = lookUp(${steps}, MINIMA);`,
    ...HALVES.map((h) => `const M${h} = f32x4.convert_i32x4_s(${spread("M", h, "i32x4")});`),
  ];
}

/** Rows 4h to 4h + 3 of sums in the order of the lanes. */
export function inOrder(first: string, second: string, h: number): string {
  return `v128.shuffle<i32>(${first}, ${second}, ${[0, 2, 4, 6].map((lane) => lane + h)})`;
}
