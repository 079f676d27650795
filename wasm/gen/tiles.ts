// Register tiles: R activation rows times 16 weight rows out of an unpacked panel (unpack.ts).
//   for each group: c = Σ code · q as integers in locals; f += d · (s · c) + m · (s · Σ q)
// Shapes are those that were fastest (bench/results/kernels.md): `plain` 4 × 16, since wider ones spill; `dot` 3 × 16 with
// code vectors one at a time, where scales and dots share two ports, so that 8/12 of the dots' own rate is the most.
// `pair` has its own (tiles_fours.ts).
// The text must reach V8 in this order: an optimiser that sinks each sum into one long expression loads
// every vector early and spills (60 instead of 84), which is why the build uses asc at -O1.

import { groupSum } from "./cells.ts";
import { simdImports } from "./imports.ts";
import { type DotStyle, floatSumsOf, NOTHING, signParts } from "./dots.ts";
import { type PanelKind, SIGNS, STEPS } from "./panels.ts";
import { stepTile } from "./tiles_steps.ts";

/** Vectors of four weight rows side by side. */
const VECTORS: readonly number[] = [0, 1, 2, 3];

/** Styles whose tiles take rows one by one. The width of a code is all one to them, so the widest kind serves. */
type TileStyle = Exclude<DotStyle, "pair">;

const KINDS: readonly PanelKind[] = [
  { name: "g32", bits: 5, groupColumns: 32, minima: true },
  { name: "g16", bits: 6, groupColumns: 16, minima: true },
  SIGNS,
  ...STEPS.filter(({ name }) => name !== "steps32_4bit"),
];

/** Activation rows of the kernels of a kind, most first; two sums an output leave room for fewer. */
function heightsOf(style: TileStyle, { signs, steps }: PanelKind): readonly number[] {
  if (signs) return [2, 1];
  return steps || style === "dot" ? [3, 2, 1] : [4, 2, 1];
}

/** Quads of a group: all rows' activations are held and each code vector is loaded once, or the other way round. */
function quads(style: TileStyle, kind: PanelKind, rows: readonly number[], half: number): string[] {
  const dots = floatSumsOf(style, kind.bits);
  const steps = kind.groupColumns / 4, byVector = style === "dot";
  const lines: string[] = [];
  const at = (base: string, offset: number) => offset ? `${base} + ${offset}` : base;
  for (let q = 0; q < steps; q++) {
    const activation = (r: number) => [
      `const x${r}_${q} = v128.load32_splat(${at(`x${r}`, 16 * half + 4 * q)});`,
      ...dots.operand(`x${r}_${q}`),
    ];
    const codes = (v: number) => [
      `const w${q}_${v} = v128.load(${
        byVector ? `codes${v}, ${64 * q}` : `codes, ${64 * q + 16 * v}`
      });`,
      ...kind.signs ? signParts(`${q}_${v}`) : dots.weight?.(`w${q}_${v}`) ?? [],
    ];
    const product = (r: number, v: number) => {
      const x = `x${r}_${q}`;
      if (!kind.signs) return dots.add(`c${r}_${v}`, x, `w${q}_${v}`, q, steps);
      return [
        ...dots.add(`c${r}_${v}`, x, `p${q}_${v}`, q, steps),
        ...dots.add(`b${r}_${v}`, x, `n${q}_${v}`, q, steps),
      ];
    };
    if (byVector) {
      lines.push(...rows.flatMap(activation));
      for (const v of VECTORS) lines.push(...codes(v), ...rows.flatMap((r) => product(r, v)));
    } else {
      lines.push(...VECTORS.flatMap(codes));
      for (const r of rows) lines.push(...activation(r), ...VECTORS.flatMap((v) => product(r, v)));
    }
  }
  return lines;
}

function group(style: TileStyle, kind: PanelKind, height: number, half: number): string[] {
  const rows = [...Array(height).keys()];
  const { value } = floatSumsOf(style, kind.bits);
  const lines = quads(style, kind, rows, half);
  const vector = (v: number, minimum: boolean) => 64 * (v >> 1) + 16 * (v & 1) + (minimum ? 32 : 0);
  for (const v of VECTORS) {
    lines.push(`const d${v} = v128.load(scales, ${vector(v, false)});`);
    if (kind.minima || kind.signs) {
      lines.push(`const m${v} = v128.load(scales, ${vector(v, true)});`);
    }
  }
  for (const r of rows) {
    lines.push(`const s${r} = v128.load32_splat(x${r}s);`);
    if (kind.minima) lines.push(sumOf(kind, r, half));
    for (const v of VECTORS) {
      const product = `f32x4.mul(${value(`c${r}_${v}`)}, s${r})`;
      lines.push(`f${r}_${v} = madd(${product}, d${v}, f${r}_${v});`);
      if (kind.minima) lines.push(`f${r}_${v} = madd(t${r}, m${v}, f${r}_${v});`);
      if (kind.signs) {
        const below = `f32x4.mul(${value(`b${r}_${v}`)}, s${r})`;
        lines.push(`f${r}_${v} = madd(${below}, m${v}, f${r}_${v});`);
      }
    }
  }
  const bytes = 16 * kind.groupColumns;
  const next = codePointers(style).map((name) => `${name} += ${bytes};`);
  return ["{", ...lines, ...next, "scales += 128;", "}"];
}

/**
 * Names of the pointers to codes. One a vector, because V8 subtracts every offset from the size of the memory
 * before it compares: the four vectors of a quad share that.
 */
function codePointers(style: TileStyle): readonly string[] {
  return style === "dot" ? VECTORS.map((v) => `codes${v}`) : ["codes"];
}

/** The scaled sum of a group's activations. */
function sumOf(kind: PanelKind, r: number, half: number): string {
  const sum = kind.groupColumns === 32
    ? `v128.load32_splat(x${r}s + sums)`
    : groupSum(`v128.load32_splat(x${r}s + 2 * sums)`, half, `s${r}`);
  return `const t${r} = ${sum};`;
}

function tile(style: TileStyle, kind: PanelKind, height: number): string {
  if (kind.steps) return stepTile(style, kind, height);
  const rows = [...Array(height).keys()];
  const each = (line: (r: number, v: number) => string) =>
    rows.flatMap((r) => VECTORS.map((v) => line(r, v)));
  const halves = kind.groupColumns === 16 ? [0, 1] : [0];
  return [
    `function tile_${style}_${kind.name}_${height}` +
    "(x: usize, stride: usize, columns: usize, codes: usize, scales: usize, " +
    "out: usize, outStride: usize): void {",
    ...floatSumsOf(style, kind.bits).constants,
    ...kind.signs ? [NOTHING] : [],
    "const sums = columns >> 3;",
    ...rows.map((r) => `let x${r} = x + ${r} * stride, x${r}s = x${r} + columns;`),
    ...each((r, v) => `let f${r}_${v} = f32x4.splat(0);`),
    ...style === "dot" ? VECTORS.map((v) => `let codes${v} = codes + ${16 * v};`) : [],
    "const end = x + columns;",
    "do {",
    ...halves.flatMap((half) => group(style, kind, height, half)),
    ...rows.map((r) => `x${r} += 32; x${r}s += 4;`),
    "} while (x0 < end);",
    ...each((r, v) => `v128.store(out + ${r} * outStride, f${r}_${v}, ${16 * v});`),
    "}",
  ].join("\n");
}

function dispatch(style: TileStyle, kind: PanelKind): string {
  const [most, ...others] = heightsOf(style, kind) as [number, ...number[]];
  const loop = (condition: string, height: number) =>
    [
      `  while (${condition}) {`,
      `    tile_${style}_${kind.name}_${height}(x, stride, columns, codes, scales, out, outStride);`,
      `    rows -= ${height}; x += ${height} * stride; out += ${height} * outStride;`,
      "  }",
    ].join("\n");
  return [
    `/** Any number of rows; panels of ${kind.bits}-bit codes and groups of ${kind.groupColumns}. */`,
    `export function tiles_${style}_${kind.name}(rows: u32, x: usize, stride: usize, ` +
    "columns: usize, codes: usize, scales: usize, out: usize, outStride: usize): void {",
    // two and two rather than three and one
    loop(most === 3 ? "rows > 4 || rows == 3" : `rows >= ${most}`, most),
    ...others.map((height) => loop(`rows >= ${height}`, height)),
    "}",
  ].join("\n");
}

/** Module `generated/tiles_{style}`. */
export function tilesModule(style: TileStyle): string {
  return [
    simdImports(),
    ...KINDS.flatMap((kind) => [
      ...heightsOf(style, kind).map((height) => tile(style, kind, height)),
      dispatch(style, kind),
    ]),
    "",
  ].join("\n");
}
