// Register tiles on weights rounded to 7 bit (wasm/int7_layout.ts): R activation rows times the eight rows
// of a tile, whose codes are read where they lie.
//   for each group of 32 columns: c = Σ q · code as integers; f += d · (s · c) + m · (s · Σ q)
// Measured on a Zen 3 core without VNNI, weights in cache, G operations a second: 4 × 8 67, 2 × 16 69, 4 × 16
// 62 (spills), 3 × 8 66; with the relaxed dot in place of a pair product and a widening sum 50 to 58. With
// one scale a row 80, with none (sums alone) 83 to 87, the dot's operations in registers alone 79: too coarse
// for what it gains (quant/int7_groups.ts). Products of 16 bit: 55 with a scale a group, 63 with one a row.

import { INT7_CELL_BYTES, INT7_SCALE_BYTES } from "../../int7_layout.ts";
import { simdImports } from "./imports.ts";
import { dotsOf, type DotStyle } from "./dots.ts";

const HEIGHTS: readonly number[] = [4, 2, 1];
const HALVES: readonly number[] = [0, 1];
const STEPS = 8;

function tile(style: DotStyle, height: number): string {
  const rows = [...Array(height).keys()];
  const dots = dotsOf(style, 7);
  const each = (line: (r: number, h: number) => string) =>
    rows.flatMap((r) => HALVES.map((h) => line(r, h)));
  const group: string[] = [];
  for (let q = 0; q < STEPS; q++) {
    for (const h of HALVES) {
      group.push(`const w${q}_${h} = v128.load(w, ${INT7_SCALE_BYTES + 32 * q + 16 * h});`);
    }
    for (const r of rows) {
      const x = `x${r}_${q}`;
      group.push(`const ${x} = v128.load32_splat(x${r}, ${4 * q});`, ...dots.operand(x));
      for (const h of HALVES) group.push(...dots.add(`c${r}_${h}`, x, `w${q}_${h}`, q, STEPS));
    }
  }
  for (const h of HALVES) {
    group.push(`const d${h} = v128.load(w, ${16 * h}), m${h} = v128.load(w, ${32 + 16 * h});`);
  }
  for (const r of rows) {
    group.push(
      `const s${r} = v128.load32_splat(x${r}s), t${r} = v128.load32_splat(x${r}s + sums);`,
    );
    for (const h of HALVES) {
      const product = `f32x4.mul(f32x4.convert_i32x4_s(c${r}_${h}), s${r})`;
      group.push(`f${r}_${h} = madd(${product}, d${h}, f${r}_${h});`);
      group.push(`f${r}_${h} = madd(t${r}, m${h}, f${r}_${h});`);
    }
  }
  return [
    `function tile_${style}_int7_${height}` +
    "(x: usize, stride: usize, columns: usize, w: usize, out: usize, outStride: usize): void {",
    ...dots.constants,
    "const sums = columns >> 3;",
    ...rows.map((r) => `let x${r} = x + ${r} * stride, x${r}s = x${r} + columns;`),
    ...each((r, h) => `let f${r}_${h} = f32x4.splat(0);`),
    "const end = x + columns;",
    "do {",
    ...group,
    ...rows.map((r) => `x${r} += 32; x${r}s += 4;`),
    `w += ${INT7_CELL_BYTES};`,
    "} while (x0 < end);",
    ...each((r, h) => `v128.store(out + ${r} * outStride, f${r}_${h}, ${16 * h});`),
    "}",
  ].join("\n");
}

/** Module `generated/tiles_int7_{style}`. */
export function tilesInt7Module(style: DotStyle): string {
  return [
    simdImports(),
    ...HEIGHTS.map((height) => tile(style, height)),
    "/** Any number of rows times one tile. */",
    `export function tiles_int7_${style}(rows: u32, x: usize, stride: usize, columns: usize, ` +
    "w: usize, out: usize, outStride: usize): void {",
    ...HEIGHTS.map((height) =>
      [
        `  while (rows >= ${height}) {`,
        `    tile_${style}_int7_${height}(x, stride, columns, w, out, outStride);`,
        `    rows -= ${height}; x += ${height} * stride; out += ${height} * outStride;`,
        "  }",
      ].join("\n")
    ),
    "}",
    "",
  ].join("\n");
}
