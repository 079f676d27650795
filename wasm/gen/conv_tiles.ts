// Register tiles of convolutions and of products of floats: up to five filters (or rows of activations) times panels of eight places,
// [panels][taps][8] floats and 32 bytes behind each (assembly/network/conv_gather.ts). Weights of the filters of a tile lie side by side, [taps][filters], so that four come by one
// load and are splatted by shuffles: V8 checks the bounds of every load by three instructions (gen/float_tiles.ts). Sums,
// a tap's places and weights are all that 15 registers hold; 6 × 8 and 4 × 12 spill, and run at half the speed.
//
// Share of the multiply-adds in registers on a Zen 4 core, 64 taps and more than 256: 5 × 8 two taps a turn 0.86 and 0.95,
// one tap 0.79 and 0.86, four taps 0.85 and 0.92; 4 × 8 0.79 and 0.87; 6 × 8 with a splatted load a weight 0.79 and 0.85.

import { EPILOGUE_NAMES, UNARY } from "../../functions/unary.ts";
import { simdImports } from "./imports.ts";

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

/** Module `generated/conv_tiles`. */
export function convTilesModule(): string {
  return [
    simdImports(),
    `export const MOST_FILTERS: u32 = ${MOST}, RELU: u32 = ${EPILOGUE_NAMES.indexOf("relu")};`,
    ...HEIGHTS.map((height) => tile(height, false)),
    ...HEIGHTS.map((height) => tile(height, true)),
    `/** Sums of 1 to ${MOST} filters at panels of eight places, from \`bias\` and \`base\` (0: none) on, to rows \`stride\` bytes apart, as those of \`base\`. */`,
    "export function convTiles(filters: u32, w: usize, taps: u32, x: usize, panels: u32, bias: usize, " +
    "y: usize, stride: usize, base: usize, relu: bool): void {",
    ...HEIGHTS.map((height) =>
      `  if (filters == ${height}) conv_tile_${height}(w, taps, x, panels, bias, y, stride, base, relu);`
    ),
    "}",
    `/** Sums of 1 to ${MOST} rows times panels of eight weight rows, one behind the other, each from its part of \`bias\`. */`,
    "export function rowTiles(rows: u32, w: usize, taps: u32, x: usize, panels: u32, bias: usize, " +
    "y: usize, stride: usize): void {",
    ...HEIGHTS.map((height) =>
      `  if (rows == ${height}) row_tile_${height}(w, taps, x, panels, bias, y, stride);`
    ),
    "}",
    "",
  ].join("\n");
}
