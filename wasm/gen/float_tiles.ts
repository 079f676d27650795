// Register tiles on float activations: R rows times a tile of eight weight rows that was decoded to
// float32, column after column. Long rows come in runs of columns; a run adds to what `out` holds.
//
// V8 checks the bounds of every load by three instructions, but of the same place only once, and keeps what it
// loaded: so four columns of weights are eight vectors that stay in registers while the rows pass, each with one
// load of four floats, which are splatted by shuffles. Sums that do not fit are spilled, which is not checked.
// Share of the multiply-adds in registers, all in caches, on a Sapphire Rapids core: 12 rows 0.98, 8 rows 0.94, 6 rows
// 0.92; 22 rows 0.91; 6 × 8 with a splatted load an operand 0.86 (0.97 where V8 is told not to check); 4 × 8 with
// shuffles and sums in registers 0.87; two columns at a time: 6 × 8 0.84, 4 × 12 0.86, 4 × 16 0.78; eight columns of
// four weight rows 0.67; 32 columns that stay while all rows pass, whose sums lie in `out`, 0.84. Where the core is
// shared with another machine, checks cost more: 0.58 with splatted loads, 0.68 for 4 × 8.
// In MiniLM, two threads: ratio of medians to 6 × 8 1.05 (batch 1 and 16), of minima 1.12 and 1.08.
// On a Zen 3, which executes fewer instructions at once, 12 rows reach 0.66 in MiniLM, batch 16, and 4 rows 0.77, whose
// sums and activations stay in registers while the weights pass (6 rows 0.69, 8 rows 0.67; eight columns at a time as
// many). So processors without a dot of bytes, which older ones lack, take rows by fours.
// Fewer than four rows wait for their own sums, so what twelves leave is shared out.

import { simdImports } from "./imports.ts";

/** Heights of the tiles, by the rows that are left. */
const HEIGHTS: readonly number[] = [12, 8, 6, 5, 4, 3, 2, 1];
/** What is taken first of counts that would leave less than four rows, in this order. */
const SHARED_OUT = [[15, 5], [14, 8], [13, 8], [11, 6], [10, 5], [9, 5], [7, 4]] as const;
const HALVES: readonly number[] = [0, 1];
/** Rows whose sums and activations stay in registers, while weights pass; of more it is the weights that stay. */
const FEW = 4;
/** Columns that are taken at a time. */
const COLUMNS = 4;

function fourColumns(rows: readonly number[]): string[] {
  const steps = [...Array(COLUMNS).keys()];
  const weights = (k: number) =>
    HALVES.map((h) => `const w${k}_${h} = v128.load(w, ${32 * k + 16 * h});`);
  const activations = (r: number) => `const x${r}_x = v128.load(x${r});`;
  const products = (r: number, k: number) => [
    `const x${r}_${k} = v128.shuffle<i32>(x${r}_x, x${r}_x, ${k}, ${k}, ${k}, ${k});`,
    ...HALVES.map((h) => `f${r}_${h} = madd(x${r}_${k}, w${k}_${h}, f${r}_${h});`),
  ];
  const body = rows.length <= FEW
    ? [
      ...rows.map(activations),
      ...steps.flatMap((k) => [...weights(k), ...rows.flatMap((r) => products(r, k))]),
    ]
    : [
      ...steps.flatMap(weights),
      ...rows.flatMap((r) => [activations(r), ...steps.flatMap((k) => products(r, k))]),
    ];
  return [...body, ...next(rows, COLUMNS)];
}

function oneColumn(rows: readonly number[]): string[] {
  return [
    ...HALVES.map((h) => `const w${h} = v128.load(w, ${16 * h});`),
    ...rows.flatMap((r) => [
      `const x${r}_x = v128.load32_splat(x${r});`,
      ...HALVES.map((h) => `f${r}_${h} = madd(x${r}_x, w${h}, f${r}_${h});`),
    ]),
    ...next(rows, 1),
  ];
}

function next(rows: readonly number[], count: number): string[] {
  return [...rows.map((r) => `x${r} += ${4 * count};`), `w += ${32 * count};`];
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
    ...fourColumns(rows),
    "}",
    "while (w < end) {",
    ...oneColumn(rows),
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
    `  if (!hasDot()) { while (rows >= ${2 * FEW} || rows == ${FEW}) { ${call(FEW)} } }`,
    `  while (rows >= ${HEIGHTS[0]! + 4} || rows == ${HEIGHTS[0]}) { ${call(HEIGHTS[0]!)} }`,
    ...SHARED_OUT.map(([rows, first]) => `  if (rows == ${rows}) { ${call(first)} }`),
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
