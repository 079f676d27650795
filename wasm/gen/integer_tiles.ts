// Register tiles on 16-bit differences of codes: R rows times a panel of eight columns in pairs of taps, (tap, next
// tap) of lanes 0 to 3, then of 4 to 7, so that a 16-bit dot product leaves a column a lane. Sums are exact, and added
// to what `out` holds.
//
// As in float_tiles.ts instructions are short, for V8 checks every load: one of a row brings four pairs, which
// shuffles splat, and a vector of the panel serves four rows.

import { simdImports } from "./imports.ts";

/** Heights of the tiles, by the rows that are left. */
const HEIGHTS: readonly number[] = [4, 2, 1];
const HALVES: readonly number[] = [0, 1];
/** Pairs of taps that are taken at a time. */
const PAIRS = 4;

function pair(rows: readonly number[], k: number, splat: (r: number) => string): string[] {
  return [
    ...HALVES.map((h) => `const w${k}_${h} = v128.load(w, ${32 * k + 16 * h});`),
    ...rows.flatMap((r) => [
      `const x${r}_${k} = ${splat(r)};`,
      ...HALVES.map((h) =>
        `s${r}_${h} = i32x4.add(s${r}_${h}, i32x4.dot_i16x8_s(x${r}_${k}, w${k}_${h}));`
      ),
    ]),
  ];
}

function tile(height: number): string {
  const rows = [...Array(height).keys()];
  const each = (line: (r: number, h: number) => string) =>
    rows.flatMap((r) => HALVES.map((h) => line(r, h)));
  const next = (count: number) => [
    ...rows.map((r) => `x${r} += ${4 * count};`),
    `w += ${32 * count};`,
  ];
  return [
    `function integer_tile_${height}` +
    "(x: usize, stride: usize, pairs: u32, w: usize, out: usize, outStride: usize): void {",
    ...rows.map((r) => `let x${r} = x + ${r} * stride;`),
    ...each((r, h) => `let s${r}_${h} = v128.load(out + ${r} * outStride, ${16 * h});`),
    "const end = w + (<usize>pairs << 5), end4 = w + (<usize>(pairs & ~3) << 5);",
    "while (w < end4) {",
    ...rows.map((r) => `const X${r} = v128.load(x${r});`),
    ...[...Array(PAIRS).keys()].flatMap((k) =>
      pair(rows, k, (r) => `v128.shuffle<i32>(X${r}, X${r}, ${Array(4).fill(k).join(", ")})`)
    ),
    ...next(PAIRS),
    "}",
    "while (w < end) {",
    ...pair(rows, 0, (r) => `v128.load32_splat(x${r})`),
    ...next(1),
    "}",
    ...each((r, h) => `v128.store(out + ${r} * outStride, s${r}_${h}, ${16 * h});`),
    "}",
  ].join("\n");
}

/** Module `generated/integer_tiles`. */
export function integerTilesModule(): string {
  return [
    simdImports(),
    ...HEIGHTS.map(tile),
    "/** Adds products of any number of rows with a panel to rows of `out`, eight columns wide. */",
    "export function integerTiles(rows: u32, x: usize, stride: usize, pairs: u32, w: usize, " +
    "out: usize, outStride: usize): void {",
    ...HEIGHTS.map((height) =>
      `  while (rows >= ${height}) { integer_tile_${height}(x, stride, pairs, w, out, outStride); ` +
      `rows -= ${height}; x += ${height} * stride; out += ${height} * outStride; }`
    ),
    "}",
    "",
  ].join("\n");
}
