// Register tiles of convolutions and of products of floats: up to five filters (or rows of activations) times panels of eight places,
// [panels][taps][8] floats and 32 bytes behind each (assembly/network/conv_gather.ts). Weights of the filters of a tile lie side by side, [taps][filters], so that four come by one
// load and are splatted by shuffles: V8 checks the bounds of every load by three instructions (gen/float_tiles.ts). Sums,
// a tap's places and weights are all that 15 registers hold; 6 × 8 and 4 × 12 spill, and run at half the speed.
//
// Share of the multiply-adds in registers on a Zen 4 core, 64 taps and more than 256: 5 × 8 two taps a turn 0.86 and 0.95,
// one tap 0.79 and 0.86, four taps 0.85 and 0.92; 4 × 8 0.79 and 0.87; 6 × 8 with a splatted load a weight 0.79 and 0.85.
// Of those that V8 joins to 256 bits (planes.ts), which are twice as many: 5 × 16, two panels, 0.71 (bench/results/kernels.md).

import { EPILOGUE_NAMES, UNARY } from "../../functions/unary.ts";
import { simdImports } from "./imports.ts";
import { laneSplat, seed, swapped, swappedLanes } from "./planes.ts";

/** Most filters of a tile. */
const MOST = 5;
const HEIGHTS: readonly number[] = [...Array(MOST).keys()].map((i) => MOST - i);
const HALVES: readonly number[] = [0, 1];
/** Taps of a turn. */
const TURN = 2;

function tap(height: number, step: number): string[] {
  const weights = 4 * height * step, fours = Math.floor(height / 4) * 4;
  const products = (r: number) =>
    HALVES.map((h) => `f${r}_${h} = madd(w${step}_${r}, x${step}_${h}, f${r}_${h});`);
  return [
    ...HALVES.map((h) => `const x${step}_${h} = v128.load(at, ${32 * step + 16 * h});`),
    ...fours > 0 ? [`const four${step} = v128.load(weights, ${weights});`] : [],
    ...[...Array(height).keys()].flatMap((r) => [
      r < fours
        ? `const w${step}_${r} = v128.shuffle<i32>(four${step}, four${step}, ${r}, ${r}, ${r}, ${r});`
        : `const w${step}_${r} = v128.load32_splat(weights, ${weights + 4 * r});`,
      ...products(r),
    ]),
  ];
}

function turn(height: number, taps: number): string[] {
  return [
    ...[...Array(taps).keys()].flatMap((step) => tap(height, step)),
    `weights += ${4 * height * taps}; at += ${32 * taps};`,
  ];
}

/** `rows`: of activations, times panels of weights that follow each other, from a bias that each panel has its own of. */
function tile(height: number, rows: boolean): string {
  const filters = [...Array(height).keys()];
  const each = (line: (r: number, h: number) => string) =>
    filters.flatMap((r) => HALVES.map((h) => line(r, h)));
  const relu = (v: string) => UNARY.relu.simd!.replaceAll(/\bv\b/g, v);
  const start = (r: number) => [
    `let f${r}_0 = bias ? v128.load32_splat(bias, ${4 * r}) : zero;`,
    `let f${r}_1 = f${r}_0;`,
  ];
  const startOfPanel = HALVES.map((h) =>
    `const start${h} = bias ? v128.load(bias, ${16 * h}) : zero;`
  );
  return [
    `function ${rows ? "row" : "conv"}_tile_${height}` +
    "(w: usize, taps: u32, x: usize, panels: u32, bias: usize, y: usize, stride: usize, " +
    `${rows ? "" : "base: usize, relu: bool"}): void {`,
    "const zero = f32x4.splat(0);",
    `const end = w + <usize>taps * ${4 * height}, whole = w + <usize>(taps & ~1) * ${4 * height};`,
    "let at = x;",
    `for (const last = y + (<usize>panels << 5); y < last; y += 32${rows ? "" : ", at += 32"}) {`,
    ...rows
      ? [
        ...startOfPanel,
        ...each((r, h) => `let f${r}_${h} = start${h};`),
        "if (bias) bias += 32;",
      ]
      : [
        ...filters.flatMap(start),
        "if (base) {",
        ...each((r, h) =>
          `f${r}_${h} = f32x4.add(f${r}_${h}, v128.load(base + ${r} * stride, ${16 * h}));`
        ),
        "base += 32;",
        "}",
      ],
    "let weights = w;",
    "while (weights < whole) {",
    ...turn(height, TURN),
    "}",
    "if (weights < end) {",
    ...turn(height, 1),
    "}",
    ...rows ? [] : ["if (relu) {", ...each((r, h) => `f${r}_${h} = ${relu(`f${r}_${h}`)};`), "}"],
    ...each((r, h) => `v128.store(y + ${r} * stride, f${r}_${h}, ${16 * h});`),
    "}",
    "}",
  ].join("\n");
}

/** Heights of tiles that V8 joins, the taps of a turn, and the vectors of sums of a filter: of two panels. */
const JOINED_HEIGHTS = HEIGHTS.filter((height) => height >= 3), JOINED_TURN = 4;
const VECTORS: readonly number[] = [0, 1, 2, 3];
const POINTERS: readonly string[] = ["at", "beside"];

/** A tap of a tile that V8 joins. All are read from the same offsets, which are made once a turn. */
function joinedTap(height: number, step: string): string[] {
  const fours = Math.floor(height / 4) * 4;
  return [
    ...POINTERS.flatMap((at, panel) => swapped((h) => `x${step}_${2 * panel + h}`, at, 0)),
    ...fours ? [`const four${step} = v128.load(weights);`] : [],
    ...[...Array(height).keys()].flatMap((r) => [
      `const w${step}_${r} = ${
        r < fours ? laneSplat(`four${step}`, r) : `v128.load32_splat(weights, ${4 * r})`
      };`,
      ...VECTORS.map((v) => `f${r}_${v} = madd(w${step}_${r}, x${step}_${v}, f${r}_${v});`),
    ]),
    `weights += ${4 * height}; at += 32; beside += 32;`,
  ];
}

/** Filters or rows times pairs of panels that lie `apart`, in text that V8 joins to 256 bits. */
function joinedTile(height: number): string {
  const filters = [...Array(height).keys()];
  const each = (line: (r: number, v: number) => string) =>
    filters.flatMap((r) => VECTORS.map((v) => line(r, v)));
  const halves = (r: number) =>
    [0, 1].map((panel) => [`f${r}_${2 * panel}`, `f${r}_${2 * panel + 1}`] as const);
  return [
    `function joined_tile_${height}(${JOINED_PARAMETERS}): void {`,
    "const zero = f32x4.splat(0);",
    `const end = w + <usize>taps * ${4 * height};`,
    `const whole = w + <usize>(taps & ~${JOINED_TURN - 1}) * ${4 * height};`,
    "let at = x, beside = x + apart;",
    "const next = 2 * apart - (<usize>taps << 5);",
    "for (const last = y + (<usize>pairs << 6); y < last; y += 64, at += next, beside += next) {",
    ...filters.flatMap((r) => [
      `let f${r}_0 = bias ? v128.load32_splat(bias, ${4 * r}) : zero;`,
      ...VECTORS.slice(1).map((v) => `let f${r}_${v} = f${r}_0;`),
    ]),
    "if (base) {",
    ...filters.flatMap((r) => [
      `const from${r} = base + ${r} * baseStride;`,
      ...[0, 1].flatMap((panel) =>
        swapped((h) => `b${r}_${2 * panel + h}`, `from${r}`, 32 * panel)
      ),
    ]),
    ...each((r, v) => `f${r}_${v} = f32x4.add(f${r}_${v}, b${r}_${v});`),
    "base += 64;",
    "}",
    "let weights = w;",
    "while (weights < whole) {",
    ...[...Array(JOINED_TURN).keys()].flatMap((step) => joinedTap(height, `${step}`)),
    "}",
    "while (weights < end) {",
    ...joinedTap(height, ""),
    "}",
    // Not only for what it says: halves are taken apart where a sum is defined, in each turn if that is in the loop.
    "if (relu) {",
    ...each((r, v) => `f${r}_${v} = ${UNARY.relu.simd!.replaceAll(/\bv\b/g, `f${r}_${v}`)};`),
    "}",
    seed("y", filters.flatMap(halves)),
    ...each((r, v) =>
      `v128.store(y + ${r} * stride, ${swappedLanes(`f${r}_${v}`, `f${r}_${v ^ 1}`)}, ${16 * v});`
    ),
    "}",
    "}",
  ].join("\n");
}

const JOINED_PARAMETERS =
  "w: usize, taps: u32, x: usize, apart: usize, pairs: u32, bias: usize, y: usize, stride: usize, " +
  "base: usize, baseStride: usize, relu: bool";

/** Module `generated/conv_tiles`. */
export function convTilesModule(): string {
  return [
    simdImports(),
    'import { joins } from "../machine/joining";',
    `export const MOST_FILTERS: u32 = ${MOST}, RELU: u32 = ${EPILOGUE_NAMES.indexOf("relu")};`,
    ...HEIGHTS.map((height) => tile(height, false)),
    ...HEIGHTS.map((height) => tile(height, true)),
    ...JOINED_HEIGHTS.map(joinedTile),
    `function joinedTiles(filters: u32, ${JOINED_PARAMETERS}): void {`,
    ...JOINED_HEIGHTS.map((height) =>
      `  if (filters == ${height}) joined_tile_${height}(w, taps, x, apart, pairs, bias, y, stride, base, baseStride, relu);`
    ),
    "}",
    "/** What a start that is added to it stays as it is by, zeros and all. */",
    `const NOTHING_AT: usize = memory.data<f32>([${Array(MOST).fill("-0.0").join(", ")}], 16);`,
    `/** Sums of 1 to ${MOST} filters at panels of eight places, from \`bias\` and \`base\` (0: none) on, to rows \`stride\` bytes apart, as those of \`base\`. */`,
    "export function convTiles(filters: u32, w: usize, taps: u32, x: usize, panels: u32, bias: usize, " +
    "y: usize, stride: usize, base: usize, relu: bool): void {",
    `  if (filters >= ${JOINED_HEIGHTS.at(-1)} && panels > 1 && joins()) {`,
    "    const panel = (<usize>taps << 5) + 32, pairs = panels >> 1;",
    "    joinedTiles(filters, w, taps, x, panel, pairs, bias, y, stride, base, stride, relu);",
    "    x += 2 * panel * pairs; y += <usize>pairs << 6; panels &= 1;",
    "    if (base) base += <usize>pairs << 6;",
    "  }",
    ...HEIGHTS.map((height) =>
      `  if (filters == ${height}) conv_tile_${height}(w, taps, x, panels, bias, y, stride, base, relu);`
    ),
    "}",
    `/** Sums of 1 to ${MOST} rows times panels of eight weight rows, one behind the other, each from its part of \`bias\`. */`,
    "export function rowTiles(rows: u32, w: usize, taps: u32, x: usize, panels: u32, bias: usize, " +
    "y: usize, stride: usize): void {",
    `  if (rows >= ${JOINED_HEIGHTS.at(-1)} && panels > 1 && joins()) {`,
    "    const panel = <usize>taps << 5, pairs = panels >> 1;",
    "    joinedTiles(rows, w, taps, x, panel, pairs, bias ? NOTHING_AT : 0, y, stride, bias, 0, false);",
    "    x += 2 * panel * pairs; y += <usize>pairs << 6; panels &= 1;",
    "    if (bias) bias += <usize>pairs << 6;",
    "  }",
    ...HEIGHTS.map((height) =>
      `  if (rows == ${height}) row_tile_${height}(w, taps, x, panels, bias, y, stride);`
    ),
    "}",
    "",
  ].join("\n");
}
