// Dot products of few places with many rows of weights: rows of both are read along their taps, so weights,
// which are the most, are read once for all places of a tile. Eight sums of four lanes are in flight.

import { simdImports } from "./imports.ts";

/** Rows of weights times rows of places. */
const TILES: readonly (readonly [rows: number, places: number])[] = [
  ...[[2, 4], [1, 4], [4, 2], [1, 2], [8, 1], [1, 1]] as const,
];

function tile(height: number, places: number): string {
  const rows = [...Array(height).keys()], columns = [...Array(places).keys()];
  const each = (line: (r: number, p: number) => string) =>
    rows.flatMap((r) => columns.map((p) => line(r, p)));
  return [
    `function dot_tile_${height}_${places}` +
    "(w: usize, stride: usize, taps: u32, x: usize, xStride: usize, out: usize, outStride: usize): void {",
    ...rows.map((r) => `const w${r} = w + ${r} * stride;`),
    ...columns.map((p) => `const x${p} = x + ${p} * xStride;`),
    ...each((r, p) => `let f${r}_${p} = f32x4.splat(0);`),
    "const end = <usize>(taps & ~3) << 2, all = <usize>taps << 2;",
    "let k: usize = 0;",
    "for (; k < end; k += 16) {",
    ...columns.map((p) => `const a${p} = v128.load(x${p} + k);`),
    ...rows.flatMap((r) => [
      `const b${r} = v128.load(w${r} + k);`,
      ...columns.map((p) => `f${r}_${p} = madd(b${r}, a${p}, f${r}_${p});`),
    ]),
    "}",
    ...each((r, p) => `let s${r}_${p} = sum4(f${r}_${p});`),
    "for (; k < all; k += 4) {",
    ...each((r, p) => `s${r}_${p} += load<f32>(w${r} + k) * load<f32>(x${p} + k);`),
    "}",
    ...each((r, p) =>
      `store<f32>(out + ${r} * outStride, load<f32>(out + ${r} * outStride, ${
        4 * p
      }) + s${r}_${p}, ${4 * p});`
    ),
    "}",
  ].join("\n");
}

function loops(places: number): string[] {
  const heights = TILES.filter(([, count]) => count === places).map(([height]) => height);
  return [
    `  while (places >= ${places}) {`,
    "    let left = rows, at = w, target = out;",
    ...heights.flatMap((height) => [
      `    while (left >= ${height}) {`,
      `      dot_tile_${height}_${places}(at, stride, taps, x, xStride, target, outStride);`,
      `      left -= ${height}; at += ${height} * stride; target += ${height} * outStride;`,
      "    }",
    ]),
    `    places -= ${places}; x += ${places} * xStride; out += ${4 * places};`,
    "  }",
  ];
}

/** Module `generated/dot_tiles`. */
export function dotTilesModule(): string {
  return [
    simdImports(),
    'import { sum4 } from "../simd";',
    ...TILES.map(([height, places]) => tile(height, places)),
    "/** Adds products of `rows` rows of weights with `places` rows of x to rows of `out`. */",
    "export function dotTiles(rows: u32, w: usize, stride: usize, taps: u32, places: u32, x: usize, " +
    "xStride: usize, out: usize, outStride: usize): void {",
    ...[4, 2, 1].flatMap(loops),
    "}",
    "",
  ].join("\n");
}
