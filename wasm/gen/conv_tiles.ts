// Register tiles of convolutions: R filters times eight, sixteen or 32 places of packed lines. A call adds a
// run of taps to what `out` holds. Three ways that taps lie in lines, `pitch` bytes apart:
//   one:    every tap has a line
//   three:  three taps are neighbours in a line (windows three wide)
//   strided: of three taps the first and third are neighbours in a line, the second has the next one
//           (windows three wide, two apart)
// Fewer than eight sums in flight leave a Zen 3 core waiting: hence wide tiles of few filters, and heights
// that differ by one at most (32 filters are 6 + 6 + 5 + 5 + 5 + 5, not 5 × 6 + 2).
//
// Measured and not kept: one loop for all windows, whose taps are found by a table of addresses. It spills
// addresses, and ran at half the speed.

import { simdImports } from "./imports.ts";

/** Vectors of places by number of filters. */
const VECTORS: Readonly<Record<number, number>> = { 6: 2, 5: 2, 4: 2, 3: 2, 2: 4, 1: 8 };
const HEIGHTS: readonly number[] = Object.keys(VECTORS).map(Number).toReversed();

/** By way, the taps of a step: bytes from the line, then lines to go on. */
const WAYS: Readonly<Record<string, readonly (readonly [at: string, offset: number])[]>> = {
  one: [["x", 0]],
  three: [["x", 0], ["x", 4], ["x", 8]],
  strided: [["x", 0], ["x + pitch", 0], ["x", 4]],
};

function step(way: string, height: number, steps: number): string[] {
  const rows = [...Array(height).keys()], vectors = [...Array(VECTORS[height]!).keys()];
  const lines: string[] = [];
  const taps = WAYS[way]!;
  for (let s = 0; s < steps; s++) {
    taps.forEach(([at, offset], t) => {
      const k = s * taps.length + t;
      for (const v of vectors) {
        lines.push(`const x${k}_${v} = v128.load(${at}, ${offset + 16 * v});`);
      }
      for (const r of rows) {
        lines.push(`const w${r}_${k} = v128.load32_splat(w${r}, ${4 * k});`);
        for (const v of vectors) {
          lines.push(`f${r}_${v} = madd(w${r}_${k}, x${k}_${v}, f${r}_${v});`);
        }
      }
    });
    lines.push(way === "strided" ? "x += 2 * pitch;" : "x += pitch;");
  }
  return [...lines, ...rows.map((r) => `w${r} += ${4 * steps * taps.length};`)];
}

function tile(way: string, height: number): string {
  const rows = [...Array(height).keys()], vectors = [...Array(VECTORS[height]!).keys()];
  const each = (line: (r: number, v: number) => string) =>
    rows.flatMap((r) => vectors.map((v) => line(r, v)));
  const unrolled = way === "one" ? 4 : 1;
  const unit = 4 * WAYS[way]!.length;
  return [
    `function ${way}_${height}` +
    "(w: usize, stride: usize, steps: u32, x: usize, pitch: usize, out: usize, outStride: usize): void {",
    ...rows.map((r) => `let w${r} = w + ${r} * stride;`),
    ...each((r, v) => `let f${r}_${v} = v128.load(out + ${r} * outStride, ${16 * v});`),
    `const end = w + <usize>steps * ${unit};`,
    ...unrolled > 1
      ? [
        `const whole = w + <usize>(steps & ~${unrolled - 1}) * ${unit};`,
        "while (w0 < whole) {",
        ...step(way, height, unrolled),
        "}",
      ]
      : [],
    "while (w0 < end) {",
    ...step(way, height, 1),
    "}",
    ...each((r, v) => `v128.store(out + ${r} * outStride, f${r}_${v}, ${16 * v});`),
    "}",
  ].join("\n");
}

function loop(way: string, height: number): string {
  const width = 16 * VECTORS[height]!;
  return [
    `    if (height == ${height}) {`,
    `      for (let p: usize = 0; p < places; p += ${width}) {`,
    `        ${way}_${height}(w, stride, steps, x + p, pitch, out + p, outStride);`,
    "      }",
    "    }",
  ].join("\n");
}

function dispatch(way: string): string {
  return [
    "/** Adds `steps` steps of taps of any number of filters; `places`: bytes of places in a row of `out`. */",
    `export function ${way}Tiles(filters: u32, w: usize, stride: usize, steps: u32, x: usize, ` +
    "pitch: usize, places: usize, out: usize, outStride: usize): void {",
    "  while (filters) {",
    "    const pieces = (filters + 5) / 6, height = (filters + pieces - 1) / pieces;",
    ...HEIGHTS.map((height) => loop(way, height)),
    "    filters -= height; w += <usize>height * stride; out += <usize>height * outStride;",
    "  }",
    "}",
  ].join("\n");
}

/** Module `generated/conv_tiles`. */
export function convTilesModule(): string {
  return [
    simdImports(),
    ...Object.keys(WAYS).flatMap((way) => [
      ...HEIGHTS.map((height) => tile(way, height)),
      dispatch(way),
    ]),
    "",
  ].join("\n");
}
