// One activation row times one tile of TQ1_0, whose bytes hold digits of five cells (assembly/matmul/ternary.ts): the integer
// sums of five cells, then of three, are made side by side, so that every byte is read once; floats follow cell by
// cell, as in gemv.ts.
//
// Twice as fast as unpacking first; bit pairs would be faster still, and a fifth more bytes than the file
// (bench/results/kernels.md).

import type { WeightLayout } from "../weight_layout.ts";
import { cellEpilogue } from "./cells.ts";
import { dotsOf, type DotStyle } from "./dots.ts";
import { blockHeader, HALVES, scaleConstants } from "./scales.ts";

/** Adds `count` digits of the bytes at `w` to sums of cells; what they multiply is `apart` columns from each other. */
function digits(
  style: DotStyle,
  count: number,
  apart: number,
  cellOf: (n: number) => number,
): string[] {
  const dots = dotsOf(style, 2);
  const lines = HALVES.map((h) => `let v${h} = v128.load(w, ${16 * h});`);
  for (let n = 0; n < count; n++) {
    lines.push(`const x${n} = v128.load32_splat(x, ${apart * n});`, ...dots.operand(`x${n}`));
    for (const h of HALVES) {
      const above = (bound: string) => `i8x16.gt_s(v${h}, ${bound})`;
      lines.push(
        `const w${n}_${h} = i8x16.sub(i8x16.sub(NONE, ${above("THIRD")}), ${above("THIRDS")});`,
        // Neither the first step nor the last: sums begin and end outside of the loop.
        ...dots.add(`a${cellOf(n)}_${h}`, `x${n}`, `w${n}_${h}`, 1, 9),
        ...n + 1 < count ? [`v${h} = i8x16.add(v${h}, i8x16.add(v${h}, v${h}));`] : [],
      );
    }
  }
  return lines;
}

const each = (cells: readonly number[], line: (cell: number, h: number) => string) =>
  cells.flatMap((cell) => HALVES.map((h) => line(cell, h)));

/** Sums of some cells, 16-bit ones in style `pair`: eight steps of 2 · 127 · 2 are far below 32,768. */
function sums(style: DotStyle, cells: readonly number[]): string[] {
  return each(cells, (cell, h) => `let a${cell}_${h}${style === "pair" ? "s" : ""} = NONE;`);
}

function floats(layout: WeightLayout, style: DotStyle, cells: readonly number[]): string[] {
  return cells.flatMap((cell) => [
    "{",
    ...HALVES.map((h) =>
      `const c0_${h} = ` +
      (style === "pair" ? `i32x4.dot_i16x8_s(a${cell}_${h}s, ONES);` : `a${cell}_${h};`)
    ),
    ...cellEpilogue(layout, true),
    "scale += 4; sum += 4;",
    "}",
  ]);
}

/** The kernel of TQ1_0. */
export function gemvTernary(layout: WeightLayout, style: DotStyle): string {
  const first = [0, 1, 2, 3, 4], second = [5, 6, 7];
  return [
    `/** Eight outputs of ${layout.kernel} weights. */`,
    `export function gemv_${style}_${layout.kernel}` +
    "(w: usize, apart: usize, x: usize, columns: usize, out: usize, outApart: usize, flip: i32): void {",
    `if (apart) gemv_${style}_${layout.kernel}(w + apart, 0, x, columns, out + outApart, 0, flip);`,
    ...scaleConstants(layout),
    ...dotsOf(style, 2).constants,
    "const NONE = i8x16.splat(0), THIRD = v128.load(THIRD_AT), THIRDS = v128.load(THIRDS_AT);",
    "let scale = x + columns, sum = scale + (columns >> 3);",
    "const end = sum;",
    "let f0 = f32x4.splat(0), f1 = f32x4.splat(0);",
    "do {",
    ...blockHeader(layout, "minimum"),
    `w += ${layout.headerBytes};`,
    "{",
    ...sums(style, first),
    "for (const stop = x + 32; x < stop; x += 4, w += 32) {",
    ...digits(style, 5, 32, (n) => n),
    "}",
    ...floats(layout, style, first),
    "}",
    ...sums(style, second),
    "x += 128;",
    "for (const stop = x + 16; x < stop; x += 4, w += 32) {",
    ...digits(style, 5, 16, (n) => 5 + (n >> 1)),
    "}",
    "x += 64;",
    ...digits(style, 4, 4, () => 7),
    "x += 16; w += 32;",
    ...floats(layout, style, second),
    "} while (scale < end);",
    "v128.store(out, f0);",
    "v128.store(out, f1, 16);",
    "}",
  ].join("\n");
}
