// Register tiles on float activations: R rows times a tile of eight weight rows that was decoded to
// float32, column after column. Long rows come in runs of columns; a run adds to what `out` holds.
// 6 × 8 fills the registers without spilling (45 GFLOP/s on a Zen 3 core; 6 × 16 spills: 21). Fewer than four rows
// wait for their own sums, so what sixes leave of 7, 8 and 9 rows is shared out evenly.

import { simdImports } from "./imports.ts";

const HEIGHTS: readonly number[] = [6, 5, 4, 3, 2, 1];
const HIGHEST = 6;
const HALVES: readonly number[] = [0, 1];

function columnsOf(rows: readonly number[], count: number): string[] {
  const lines: string[] = [];
  for (let k = 0; k < count; k++) {
    for (const h of HALVES) lines.push(`const w${k}_${h} = v128.load(w, ${32 * k + 16 * h});`);
    for (const r of rows) {
      lines.push(`const x${r}_${k} = v128.load32_splat(x${r}, ${4 * k});`);
      for (const h of HALVES) lines.push(`f${r}_${h} = madd(x${r}_${k}, w${k}_${h}, f${r}_${h});`);
    }
  }
  return [...lines, ...rows.map((r) => `x${r} += ${4 * count};`), `w += ${32 * count};`];
}

function tile(height: number): string {
  const rows = [...Array(height).keys()];
  const each = (line: (r: number, h: number) => string) =>
    rows.flatMap((r) => HALVES.map((h) => line(r, h)));
  return [
    `function float_tile_${height}` +
    "(x: usize, stride: usize, columns: usize, w: usize, out: usize, outStride: usize): void {",
    ...rows.map((r) => `let x${r} = x + ${r} * stride;`),
    ...each((r, h) => `let f${r}_${h} = v128.load(out + ${r} * outStride, ${16 * h});`),
    "const end = w + 32 * columns, end4 = w + 32 * (columns & ~3);",
    "while (w < end4) {",
    ...columnsOf(rows, 4),
    "}",
    "while (w < end) {",
    ...columnsOf(rows, 1),
    "}",
    ...each((r, h) => `v128.store(out + ${r} * outStride, f${r}_${h}, ${16 * h});`),
    "}",
  ].join("\n");
}

/** Module `generated/float_tiles`. */
export function floatTilesModule(): string {
  const call = (height: number) =>
    `float_tile_${height}(x, stride, columns, w, out, outStride); ` +
    `rows -= ${height}; x += ${height} * stride; out += ${height} * outStride;`;
  const loop = [
    `  while (rows >= ${HIGHEST + 4} || rows == ${HIGHEST}) { ${call(HIGHEST)} }`,
    `  if (rows == 9) { ${call(5)} }`,
    `  else if (rows > ${HIGHEST}) { ${call(4)} }`,
    ...HEIGHTS.slice(1).map((height, i) =>
      `  ${i ? "else " : ""}if (rows == ${height}) { ${call(height)} }`
    ),
  ];
  return [
    simdImports(),
    ...HEIGHTS.map(tile),
    "/** Adds products of any number of rows with a run of columns to `out`, eight columns wide. */",
    "export function floatTiles(rows: u32, x: usize, stride: usize, columns: usize, w: usize, " +
    "out: usize, outStride: usize): void {",
    ...loop,
    "}",
    "",
  ].join("\n");
}
