// Sixteen places of a depthwise convolution whose windows are three or five wide and whose taps are neighbours: four sums
// stay in registers while the rows of a window pass. A row is loaded once, and shuffles make of it what lies under the
// other taps, for V8 checks every load (gen/float_tiles.ts). Taps are added in the order of the kernel for all windows
// (assembly/network/conv_depthwise.ts).

import { simdImports } from "./imports.ts";

/** Widths of windows. */
const WIDTHS: readonly number[] = [3, 5];
const VECTORS: readonly number[] = [0, 1, 2, 3];

/** Vector `v` of what lies under tap `j`. */
function under(v: number, j: number): string {
  const first = v + (j >> 2), shift = j & 3;
  if (shift === 0) return `a${first}`;
  const lanes = VECTORS.map((lane) => lane + shift).join(", ");
  return `v128.shuffle<i32>(a${first}, a${first + 1}, ${lanes})`;
}

function tile(width: number): string {
  const taps = [...Array(width).keys()];
  return [
    `/** Sums of \`rows\` rows of ${width} taps each, \`pitch\` bytes apart, from \`base\` on. */`,
    `export function depthwise_${width}` +
    "(x: usize, pitch: usize, rows: u32, w: usize, base: v128, y: usize): void {",
    `let ${VECTORS.map((v) => `s${v} = base`).join(", ")};`,
    `for (const end = w + <usize>rows * ${4 * width}; w < end; w += ${4 * width}, x += pitch) {`,
    ...[...VECTORS, VECTORS.length].map((v) => `const a${v} = v128.load(x, ${16 * v});`),
    ...taps.flatMap((j) => [
      `const w${j} = v128.load32_splat(w, ${4 * j});`,
      ...VECTORS.map((v) => `s${v} = madd(${under(v, j)}, w${j}, s${v});`),
    ]),
    "}",
    ...VECTORS.map((v) => `v128.store(y, s${v}, ${16 * v});`),
    "}",
  ].join("\n");
}

/** Module `generated/depthwise_tiles`. */
export function depthwiseTilesModule(): string {
  return [
    simdImports(),
    ...WIDTHS.map(tile),
    "",
  ].join("\n");
}
