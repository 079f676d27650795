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
// Tiles that V8 joins to 256 bits (planes.ts) keep the sums of eight rows in registers: on a Zen 4 60 GFLOP/s for 42, of 117.
// Fewer than four rows wait for their own sums, so what twelves leave is shared out.

import { simdImports } from "./imports.ts";
import { behindLoop, laneSplat, seed, swapped, swappedLanes } from "./planes.ts";

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
    `function float_tile_${height}(${PARAMETERS}): void {`,
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

/** Heights of tiles that V8 joins, and what is taken of counts between; less than four rows are left to the others. */
const JOINED_HEIGHTS: readonly number[] = [8, 6, 5, 4];
const JOINED_SHARED_OUT = [[11, 6], [10, 6], [9, 5], [7, 4]] as const;

/** Columns of a tile that V8 joins: sums stay in registers. */
function joinedColumns(rows: readonly number[], count: number): string[] {
  return [
    ...rows.map((r) => `const x${r}_x = v128.load${count > 1 ? "" : "32_splat"}(x${r});`),
    ...[...Array(count).keys()].flatMap((k) => [
      ...swapped((h) => `w${k}_${h}`, "w", 0),
      ...rows.flatMap((r) => [
        `const x${r}_${k} = ${count > 1 ? laneSplat(`x${r}_x`, k) : `x${r}_x`};`,
        ...HALVES.map((h) => `f${r}_${h} = madd(x${r}_${k}, w${k}_${h}, f${r}_${h});`),
      ]),
      "w += 32;",
    ]),
    ...rows.map((r) => `x${r} += ${4 * count};`),
  ];
}

function joinedTile(height: number): string {
  const rows = [...Array(height).keys()];
  return [
    `function joined_tile_${height}(${PARAMETERS}): void {`,
    ...rows.map((r) => `let x${r} = x + ${r} * stride;`),
    ...rows.flatMap((r) => [
      `const out${r} = out + ${r} * outStride;`,
      ...swapped((h) => `b${r}_${h}`, `out${r}`, 0),
      `let ${HALVES.map((h) => `f${r}_${h} = b${r}_${h}`).join(", ")};`,
    ]),
    "const end = w + 32 * columns, end4 = w + 32 * (columns & ~3);",
    "while (w < end4) {",
    ...joinedColumns(rows, COLUMNS),
    "}",
    "while (w < end) {",
    ...joinedColumns(rows, 1),
    "}",
    ...rows.flatMap((r) => HALVES.map((h) => behindLoop(`f${r}_${h}`))),
    seed("out", rows.map((r) => [`f${r}_0`, `f${r}_1`])),
    ...rows.flatMap((r) =>
      HALVES.map((h) =>
        `v128.store(out${r}, ${swappedLanes(`f${r}_${h}`, `f${r}_${1 - h}`)}, ${16 * h});`
      )
    ),
    "}",
  ].join("\n");
}

const PARAMETERS =
  "x: usize, stride: usize, columns: usize, w: usize, out: usize, outStride: usize";

/** Statements that share out rows: the highest tiles as long as four rows are left. */
function shares(
  [most, ...heights]: readonly number[],
  sharedOut: readonly (readonly [number, number])[],
  call: (height: number) => string,
): string[] {
  return [
    `  while (rows >= ${most! + 4} || rows == ${most}) { ${call(most!)} }`,
    ...sharedOut.map(([rows, first]) => `  if (rows == ${rows}) { ${call(first)} }`),
    ...heights.map((height, i) =>
      `  ${i ? "else " : ""}if (rows == ${height}) { ${call(height)} }`
    ),
  ];
}

/** Module `generated/float_tiles`. */
export function floatTilesModule(): string {
  const call = (height: number, kind = "float") =>
    `${kind}_tile_${height}(x, stride, columns, w, out, outStride); ` +
    `rows -= ${height}; x += ${height} * stride; out += ${height} * outStride;`;
  const loop = [
    `  if (joins()) {`,
    ...shares(JOINED_HEIGHTS, JOINED_SHARED_OUT, (height) => call(height, "joined")),
    `  }`,
    `  if (!hasDot()) { while (rows >= ${2 * FEW} || rows == ${FEW}) { ${call(FEW)} } }`,
    ...shares(HEIGHTS, SHARED_OUT, call),
  ];
  return [
    simdImports(),
    'import { joins } from "../machine/joining";',
    ...JOINED_HEIGHTS.map(joinedTile),
    ...HEIGHTS.map(tile),
    "/** Adds products of any number of rows with a run of columns to `out`, eight columns wide. */",
    "export function floatTiles(rows: u32, x: usize, stride: usize, columns: usize, w: usize, " +
    "out: usize, outStride: usize): void {",
    ...loop,
    "}",
    "",
  ].join("\n");
}
