// Register tiles on 16-bit differences of codes: R rows times a panel of eight columns in pairs of taps, (tap, next
// tap) of lanes 0 to 3, then of 4 to 7, so that a 16-bit dot product leaves a column a lane. Sums are exact, and added
// to what `out` holds.
//
// As in float_tiles.ts instructions are short, for V8 checks every load: one of a row brings four pairs, which
// shuffles splat, and a vector of the panel serves four rows.
// Where V8 joins vectors (planes.ts), tiles take eight rows, and of a pair of taps a panel has the first of all columns and then
// the second.

import { simdImports } from "./imports.ts";
import { behindLoop, halves, laneSplat, seed } from "./planes.ts";

/** Heights of the tiles, by the rows that are left. */
const HEIGHTS: readonly number[] = [4, 2, 1];
/** Rows of a joined tile. */
const JOINED: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7];
const HALVES: readonly number[] = [0, 1];
/** Pairs of taps that are taken at a time. */
const PAIRS = 4;

/** Statements that define the two halves of a pair of taps in a panel. */
function panel(k: number): string[] {
  return HALVES.map((h) => `const w${k}_${h} = v128.load(w, ${32 * k + 16 * h});`);
}

function planes(k: number): string[] {
  return halves((h) => `w${k}_${h}`, "w", 32 * k);
}

function pair(
  rows: readonly number[],
  k: number,
  splat: (r: number) => string,
  taps = panel,
): string[] {
  return [
    ...taps(k),
    ...rows.flatMap((r) => [
      `const x${r}_${k} = ${splat(r)};`,
      ...HALVES.map((h) =>
        `s${r}_${h} = i32x4.add(s${r}_${h}, i32x4.dot_i16x8_s(x${r}_${k}, w${k}_${h}));`
      ),
    ]),
  ];
}

/** Loops over all pairs of taps. */
function loops(rows: readonly number[], taps = panel): string[] {
  const next = (count: number) => [
    ...rows.map((r) => `x${r} += ${4 * count};`),
    `w += ${32 * count};`,
  ];
  return [
    "const end = w + (<usize>pairs << 5), end4 = w + (<usize>(pairs & ~3) << 5);",
    "while (w < end4) {",
    ...rows.map((r) => `const X${r} = v128.load(x${r});`),
    ...[...Array(PAIRS).keys()].flatMap((k) => pair(rows, k, (r) => laneSplat(`X${r}`, k), taps)),
    ...next(PAIRS),
    "}",
    "while (w < end) {",
    ...pair(rows, 0, (r) => `v128.load32_splat(x${r})`, taps),
    ...next(1),
    "}",
  ];
}

/** Eight rows, of which `rows` are stored. */
function joinedTile(): string {
  const each = (line: (r: number, h: number) => string) =>
    JOINED.flatMap((r) => HALVES.map((h) => line(r, h)));
  return [
    "function integer_tile_joined" +
    "(rows: i32, x: usize, stride: usize, pairs: u32, w: usize, out: usize, outStride: usize): void {",
    ...JOINED.map((r) => `let x${r} = x + ${r} * stride;`),
    ...each((r, h) => `let s${r}_${h} = i32x4.splat(0);`),
    ...loops(JOINED, planes),
    ...each((r, h) => behindLoop(`s${r}_${h}`)),
    // The seed's place has sums to add to.
    "const first = v128.load(out);",
    seed("out", JOINED.map((r) => [`s${r}_0`, `s${r}_1`])),
    "v128.store(out, first);",
    ...JOINED.flatMap((r) => [
      `if (rows > ${r}) {`,
      ...HALVES.map((h) =>
        `v128.store(out, i32x4.add(v128.load(out, ${16 * h}), s${r}_${h}), ${16 * h});`
      ),
      "out += outStride;",
      "}",
    ]),
    "}",
  ].join("\n");
}

function tile(height: number): string {
  const rows = [...Array(height).keys()];
  const each = (line: (r: number, h: number) => string) =>
    rows.flatMap((r) => HALVES.map((h) => line(r, h)));
  return [
    `function integer_tile_${height}` +
    "(x: usize, stride: usize, pairs: u32, w: usize, out: usize, outStride: usize): void {",
    ...rows.map((r) => `let x${r} = x + ${r} * stride;`),
    ...each((r, h) => `let s${r}_${h} = v128.load(out + ${r} * outStride, ${16 * h});`),
    ...loops(rows),
    ...each((r, h) => `v128.store(out + ${r} * outStride, s${r}_${h}, ${16 * h});`),
    "}",
  ].join("\n");
}

/** Module `generated/integer_tiles`. */
export function integerTilesModule(): string {
  return [
    simdImports(),
    ...HEIGHTS.map(tile),
    joinedTile(),
    "/** Adds products of any number of rows with a panel to rows of `out`, eight columns wide. */",
    "export function integerTiles(rows: u32, x: usize, stride: usize, pairs: u32, w: usize, " +
    "out: usize, outStride: usize): void {",
    ...HEIGHTS.map((height) =>
      `  while (rows >= ${height}) { integer_tile_${height}(x, stride, pairs, w, out, outStride); ` +
      `rows -= ${height}; x += ${height} * stride; out += ${height} * outStride; }`
    ),
    "}",
    "/**",
    " * The same with a panel in planes. Of the last eight rows those that are not there are read; `out` has one row at least.",
    " */",
    "export function joinedIntegerTiles(rows: u32, x: usize, stride: usize, pairs: u32, w: usize, " +
    "out: usize, outStride: usize): void {",
    "  for (let left = <i32>rows; left > 0; left -= 8, x += 8 * stride, out += 8 * outStride) " +
    "integer_tile_joined(left, x, stride, pairs, w, out, outStride);",
    "}",
    "",
  ].join("\n");
}
