// Register tiles of weights whose scales are steps (steps.ts), but of `pair` (tiles_fours.ts): R activation rows times 16
// weight rows out of an unpacked panel (unpack.ts), a block of 256 columns after the other.
//   for each cell: i = Σ steps · Σ code · q as integers in locals; p += i · s
//   for each cell: o += minimum · (s · Σ q)     in a loop of its own, whose sums stay in registers
//   f += p · D; f += o · E

import { type DotStyle, floatSumsOf } from "./dots.ts";
import type { PanelKind } from "./panels.ts";
import { stepStarts, stepSum } from "./steps.ts";

/** Columns and cells of a block. */
const BLOCK = 256, CELLS = 8;
/** Bytes of a cell's scales of 16 rows. */
const SCALES = 128;

/** Vectors of four weight rows side by side. */
const VECTORS: readonly number[] = [0, 1, 2, 3];

/** Where vector `v` of a record of two tiles lies, of its first or second two. */
function place(v: number, second: boolean): number {
  return 64 * (v >> 1) + 16 * (v & 1) + (second ? 32 : 0);
}

/** Products of a group of a cell. */
function quads(style: DotStyle, kind: PanelKind, rows: readonly number[], g: number): string[] {
  const dots = floatSumsOf(style, kind.bits), steps = kind.groupColumns / 4;
  const lines: string[] = [];
  for (let k = 0; k < steps; k++) {
    const q = g * steps + k;
    const activation = (r: number) => [
      `const x${r}_${q} = v128.load32_splat(x${r}, ${4 * q});`,
      ...dots.operand(`x${r}_${q}`),
    ];
    const code = (v: number) => `const w${q}_${v} = v128.load(codes, ${64 * q + 16 * v});`;
    const product = (r: number, v: number) =>
      dots.add(`c${r}_${v}_${g}`, `x${r}_${q}`, `w${q}_${v}`, k, steps, {
        by: "",
        goesOn: g > 0,
        from: kind.offset ? `z${g}_${r}` : "ZERO",
      });
    if (style === "dot") {
      lines.push(...rows.flatMap(activation));
      for (const v of VECTORS) lines.push(code(v), ...rows.flatMap((r) => product(r, v)));
    } else {
      lines.push(...VECTORS.map(code));
      for (const r of rows) lines.push(...activation(r), ...VECTORS.flatMap((v) => product(r, v)));
    }
  }
  return lines;
}

function cell(style: DotStyle, kind: PanelKind, rows: readonly number[]): string[] {
  const groups = [...Array(32 / kind.groupColumns).keys()], { bits, offset = 0 } = kind;
  const lines = groups.flatMap((g) =>
    VECTORS.map((v) => `const S${g}_${v} = v128.load(scales, ${place(v, g > 0)});`)
  );
  if (offset) {
    for (const r of rows) {
      lines.push(`const h${r} = v128.load32_splat(x${r}s + 2 * sums);`);
      lines.push(...stepStarts(offset, `h${r}`, `_${r}`));
    }
  }
  for (const g of groups) lines.push(...quads(style, kind, rows, g));
  for (const r of rows) {
    lines.push(`const s${r} = v128.load32_splat(x${r}s);`);
    for (const v of VECTORS) {
      const sum = stepSum(groups.map((g) => `c${r}_${v}_${g}`), {
        ...{ style, bits, offset, steps: groups.map((g) => `S${g}_${v}`), pairs: "", halves: "" },
      });
      lines.push(`p${r}_${v} = madd(${sum}, s${r}, p${r}_${v});`);
    }
  }
  return lines;
}

/** Minima of a block: as many rows at a time as have sums in registers. */
function minima(rows: readonly number[]): string[] {
  const lines: string[] = [], count = 3;
  for (let first = 0; first < rows.length; first += count) {
    const some = rows.slice(first, first + count);
    const each = (line: (r: number, v: number) => string) =>
      some.flatMap((r) => VECTORS.map((v) => line(r, v)));
    lines.push(
      "{",
      ...each((r, v) => `let o${r}_${v} = f32x4.splat(0);`),
      `let at = scales - ${SCALES * CELLS}, t = sums - ${4 * CELLS};`,
      "do {",
      ...VECTORS.map((v) => `const m${v} = v128.load(at, ${place(v, true)});`),
      ...some.map((r) => `const t${r} = v128.load32_splat(x${r}s + t);`),
      ...each((r, v) => `o${r}_${v} = madd(m${v}, t${r}, o${r}_${v});`),
      `at += ${SCALES}; t += 4;`,
      "} while (at < scales);",
      ...VECTORS.map((v) => `const e${v} = v128.load(scales, ${place(v, true)});`),
      ...each((r, v) => `f${r}_${v} = madd(o${r}_${v}, e${v}, f${r}_${v});`),
      "}",
    );
  }
  return lines;
}

/** A kernel of `height` rows. */
export function stepTile(style: DotStyle, kind: PanelKind, height: number): string {
  const rows = [...Array(height).keys()];
  const each = (line: (r: number, v: number) => string) =>
    rows.flatMap((r) => VECTORS.map((v) => line(r, v)));
  return [
    `function tile_${style}_${kind.name}_${height}` +
    "(x: usize, stride: usize, columns: usize, codes: usize, scales: usize, " +
    "out: usize, outStride: usize): void {",
    ...floatSumsOf(style, kind.bits).constants,
    "const sums = columns >> 3;",
    ...rows.map((r) => `let x${r} = x + ${r} * stride, x${r}s = x${r} + columns;`),
    ...each((r, v) => `let f${r}_${v} = f32x4.splat(0);`),
    "const end = x + columns;",
    "do {",
    ...each((r, v) => `let p${r}_${v} = f32x4.splat(0);`),
    `const blockEnd = x0 + ${BLOCK};`,
    "do {",
    ...cell(style, kind, rows),
    `codes += 512; scales += ${SCALES};`,
    ...rows.map((r) => `x${r} += 32; x${r}s += 4;`),
    "} while (x0 < blockEnd);",
    ...VECTORS.map((v) => `const d${v} = v128.load(scales, ${place(v, false)});`),
    ...each((r, v) => `f${r}_${v} = madd(p${r}_${v}, d${v}, f${r}_${v});`),
    ...kind.minima ? minima(rows) : [],
    `scales += ${SCALES};`,
    "} while (x0 < end);",
    ...each((r, v) => `v128.store(out + ${r} * outStride, f${r}_${v}, ${16 * v});`),
    "}",
  ].join("\n");
}
