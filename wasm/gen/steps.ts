// Scales that are whole numbers of steps, a step a cell or two, under a float a block (Q3_K to Q6_K): sums of codes are
// multiplied by them as whole numbers, and become floats once a cell and are scaled by the block's float once a block.
//   i = Σ_groups step · Σ code · q  (- offset · Σ_groups step · Σ q), below 2^24 wherever all fits a cell
//   p += i · s, and o += minimum · (s · Σ q), over the cells of a block;  y += p · D;  y += o · E
// Of four rows with `pair`, sums start where the offset takes them (assembly/matmul/fours.ts), so nothing is taken away behind.
// The order of float operations is the same for one row (gemv.ts), a few (gemv.ts) and many (tiles.ts).
// Of a cell, `S{g}_{h}` are steps of group g and rows 4h..4h+3: of `pair` as 16 bits, twice a row, which multiply pair sums
// where others have ones, else as floats.

import type { WeightLayout } from "../weight_layout.ts";
import { type DotStyle, floatSumsOf } from "./dots.ts";
import { HALVES } from "./scales.ts";

/** Whether a layout's scales are such steps. */
export function hasSteps({ scales }: Pick<WeightLayout, "scales">): boolean {
  return scales === "f16 f16|u8 u8" || scales === "f16|i8 by 16";
}

/** Whether a layout with steps has minima too; else it has two groups a cell. */
export function hasStepMinima({ scales }: Pick<WeightLayout, "scales">): boolean {
  return scales === "f16 f16|u8 u8";
}

/** Whether a layout with steps has an offset, whose part hangs on half sums of activations. */
export function hasOffsets(layout: Pick<WeightLayout, "scales">): boolean {
  return hasSteps(layout) && !hasStepMinima(layout);
}

/** Constants at the start of a function: where the bytes of a cell's scales go (matmul/shared.ts). */
export function stepConstants(layout: WeightLayout, style: DotStyle): string[] {
  const load = (name: string, at: number) => `const ${name} = v128.load(SPREAD_AT, ${16 * at});`;
  if (!hasStepMinima(layout)) return style === "pair" ? [load("EVEN", 6), load("ODD", 7)] : [];
  const steps = style === "pair" ? 4 : 0;
  return [
    ...HALVES.map((h) => load(`STEPS${h}`, steps + h)),
    ...HALVES.map((h) => load(`MINIMA${h}`, 2 + h)),
  ];
}

/** Steps as styles other than `pair` have them. */
function asFloats(steps: string): string {
  return `f32x4.convert_i32x4_s(${steps})`;
}

/** Statements that read the steps of a cell at `w`, and minima as floats M{h}, or steps of both groups as pairs P{h}. */
export function stepScales(layout: WeightLayout, style: DotStyle): string[] {
  if (hasStepMinima(layout)) {
    return [
      "const steps = v128.load(w);",
      ...HALVES.flatMap((h) => [
        `const S0_${h} = ${
          style === "pair" ? `lookUp(steps, STEPS${h})` : asFloats(`lookUp(steps, STEPS${h})`)
        };`,
        `const M${h} = f32x4.convert_i32x4_s(lookUp(steps, MINIMA${h}));`,
      ]),
    ];
  }
  return HALVES.flatMap((h) => [
    `const P${h} = v128.load8x8_s(w, ${8 * h});`,
    ...style === "pair" ? [`const S0_${h} = lookUp(P${h}, EVEN), S1_${h} = lookUp(P${h}, ODD);`] : [
      `const S0_${h} = ${asFloats(`i32x4.shr_s(i32x4.shl(P${h}, 16), 16)`)};`,
      `const S1_${h} = ${asFloats(`i32x4.shr_s(P${h}, 16)`)};`,
    ],
  ]);
}

/** Statements before the products of a row, but with `pair`: where its sums start, z{g}{row}, so that the offset is in them. */
export function stepStarts(offset: number, halves: string, row: string): string[] {
  const bits = Math.log2(offset);
  return [
    `const z0${row} = i32x4.sub(ZERO, i32x4.shr_s(i32x4.shl(${halves}, 16), ${16 - bits}));`,
    `const z1${row} = i32x4.sub(ZERO, i32x4.shl(i32x4.shr_s(${halves}, 16), ${bits}));`,
  ];
}

/** The sum of a cell as float, out of the sums of its groups: with `pair` of all, times steps. */
export function stepSum(
  sums: readonly string[],
  { style, bits, steps, offsets }: {
    readonly style: DotStyle;
    readonly bits: number;
    /** Names of the steps of each group. */
    readonly steps: readonly string[];
    /** What is still to be taken away, of `pair`: an offset, and names of the steps as pairs and of splatted half sums. */
    readonly offsets?:
      | { readonly offset: number; readonly pairs: string; readonly halves: string }
      | undefined;
  },
): string {
  const { value } = floatSumsOf(style, bits);
  if (style !== "pair") {
    // Products are below 2^24, so neither they nor their sum is rounded.
    const [first, second] = sums.map(value);
    const product = `f32x4.mul(${first}, ${steps[0]})`;
    return second ? `madd(${second}, ${steps[1]}, ${product})` : product;
  }
  if (!offsets) return value(sums[0]!);
  const { offset, pairs, halves } = offsets;
  const all = `i32x4.shl(i32x4.dot_i16x8_s(${pairs}, ${halves}), ${Math.log2(offset)})`;
  return value(`i32x4.sub(${sums[0]}, ${all})`);
}
