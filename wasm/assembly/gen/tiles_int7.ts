// Register tiles on weights rounded to 7 bit (wasm/int7_layout.ts): R activation rows times the rows of one tile
// of the layout or of two, whose codes are read where they lie.
//   for each group of 32 columns: c = Σ q · code as integers; f += d · (s · c) + m · (s · Σ q)
// Two rows times two tiles where there are two, four rows times one where not. The bias is added where a sum is
// stored, which costs less than another pass over the outputs.
// Measured on a Zen 3 core without VNNI, weights in cache, G operations a second: 4 × 8 67, 2 × 16 69, 4 × 16
// 62 (spills), 3 × 8 66; with the relaxed dot in place of a pair product and a widening sum 50 to 58. With
// one scale a row 80, with none (sums alone) 83 to 87, the dot's operations in registers alone 79: too coarse
// for what it gains (quant/int7_groups.ts). Products of 16 bit: 55 with a scale a group, 63 with one a row.
// Two steps in 16 bits that wrap, made right by sums of the activations, need a quarter fewer multiplications and
// as many instructions more to spill and load: 62.

import { INT7_CELL_BYTES, INT7_SCALE_BYTES } from "../../int7_layout.ts";
import { simdImports } from "./imports.ts";
import { dotsOf, type DotStyle } from "./dots.ts";

/** Heights of the register tiles, by the tiles of the layout that they span. */
const HEIGHTS: ReadonlyMap<number, readonly number[]> = new Map([[1, [4, 2, 1]], [2, [2, 1]]]);
const STEPS = 8;

const PARAMETERS =
  "x: usize, stride: usize, columns: usize, w: usize, tileBytes: usize, bias: usize, " +
  "out: usize, outStride: usize";

/** Half tile `h`: the pointer to its tile, and what it is from there. */
function half(h: number): { w: string; at: number } {
  return { w: h < 2 ? "w" : "v", at: 16 * (h & 1) };
}

function tile(style: DotStyle, span: number, height: number): string {
  const rows = [...Array(height).keys()], halves = [...Array(2 * span).keys()];
  const dots = dotsOf(style, 7);
  const each = (line: (r: number, h: number) => string) =>
    rows.flatMap((r) => halves.map((h) => line(r, h)));
  const group: string[] = [];
  for (let q = 0; q < STEPS; q++) {
    for (const h of halves) {
      const { w, at } = half(h);
      group.push(`const w${q}_${h} = v128.load(${w}, ${INT7_SCALE_BYTES + 32 * q + at});`);
    }
    for (const r of rows) {
      const x = `x${r}_${q}`;
      group.push(`const ${x} = v128.load32_splat(x${r}, ${4 * q});`, ...dots.operand(x));
      for (const h of halves) group.push(...dots.add(`c${r}_${h}`, x, `w${q}_${h}`, q, STEPS));
    }
  }
  for (const h of halves) {
    const { w, at } = half(h);
    group.push(`const d${h} = v128.load(${w}, ${at}), m${h} = v128.load(${w}, ${32 + at});`);
  }
  for (const r of rows) {
    group.push(
      `const s${r} = v128.load32_splat(x${r}s), t${r} = v128.load32_splat(x${r}s + sums);`,
    );
    for (const h of halves) {
      const product = `f32x4.mul(f32x4.convert_i32x4_s(c${r}_${h}), s${r})`;
      group.push(`f${r}_${h} = madd(${product}, d${h}, f${r}_${h});`);
      group.push(`f${r}_${h} = madd(t${r}, m${h}, f${r}_${h});`);
    }
  }
  return [
    `function tile_${style}_int7_${span}_${height}(${PARAMETERS}): void {`,
    ...dots.constants,
    "const sums = columns >> 3;",
    ...rows.map((r) => `let x${r} = x + ${r} * stride, x${r}s = x${r} + columns;`),
    ...each((r, h) => `let f${r}_${h} = f32x4.splat(0);`),
    ...span === 2 ? ["let v = w + tileBytes;"] : [],
    "const end = x + columns;",
    "do {",
    ...group,
    ...rows.map((r) => `x${r} += 32; x${r}s += 4;`),
    `w += ${INT7_CELL_BYTES};`,
    ...span === 2 ? [`v += ${INT7_CELL_BYTES};`] : [],
    "} while (x0 < end);",
    ...halves.map((h) => `const b${h} = v128.load(bias, ${16 * h});`),
    ...each((r, h) =>
      `v128.store(out + ${r} * outStride, f32x4.add(f${r}_${h}, b${h}), ${16 * h});`
    ),
    "}",
  ].join("\n");
}

/** A function for any number of rows. */
function runs(style: DotStyle, span: number): string {
  const what = span === 1 ? "one tile" : "two tiles";
  return [
    `/** Any number of rows times ${what}, and a bias. */`,
    `export function tiles_int7_${style}_${span}(rows: u32, ${PARAMETERS}): void {`,
    ...HEIGHTS.get(span)!.map((height) =>
      [
        `  while (rows >= ${height}) {`,
        `    tile_${style}_int7_${span}_${height}(x, stride, columns, w, tileBytes, bias, out, outStride);`,
        `    rows -= ${height}; x += ${height} * stride; out += ${height} * outStride;`,
        "  }",
      ].join("\n")
    ),
    "}",
  ].join("\n");
}

/** Module `generated/tiles_int7_{style}`. */
export function tilesInt7Module(style: DotStyle): string {
  return [
    simdImports(),
    ...[...HEIGHTS].flatMap(([span, heights]) => [
      ...heights.map((height) => tile(style, span, height)),
      runs(style, span),
    ]),
    "",
  ].join("\n");
}
