// Register tiles: R activation rows times 16 weight rows out of an unpacked panel (unpack.ts).
//   for each group: c = Σ code · q as integers in locals; f += d · (s · c) + m · (s · Σ q)
// What was measured when these shapes were chosen (Zen 3 without VNNI, one thread, panel in cache):
// 4 × 16 with 16-bit pair sums 84 G operations a second, 6 × 16 72 (spills), 4 × 8 84; relaxed dots 55.
// On a Xeon with VNNI (relaxed dots, one thread, Q4_1, 128 rows): 4 × 16 98, 3 × 16 97, 6 × 16 93, 8 × 16 85. Each
// sum of eight dots costs four instructions for its scales, on the same two ports: 111 is the most to be had.
// The text must reach V8 in this order: an optimiser that sinks each sum into one long expression loads
// every vector early and spills (60 instead of 84), which is why the build uses asc at -O1.

import { simdImports } from "./imports.ts";
import { dotsOf, type DotStyle, NOTHING, signParts } from "./dots.ts";
import { PANEL_KINDS, type PanelKind, SIGNS } from "./panels.ts";

/** Vectors of four weight rows side by side. */
const VECTORS: readonly number[] = [0, 1, 2, 3];

/** Of styles to which the width of a code is all one, the widest serves. */
const KINDS: Readonly<Record<DotStyle, readonly PanelKind[]>> = {
  dot: [
    { name: "g32", bits: 5, groupColumns: 32, minima: true },
    { name: "g16", bits: 6, groupColumns: 16, minima: true },
    SIGNS,
  ],
  plain: [
    { name: "g32", bits: 5, groupColumns: 32, minima: true },
    { name: "g16", bits: 6, groupColumns: 16, minima: true },
    SIGNS,
  ],
  pair: PANEL_KINDS,
};

/** Kinds of formats that few models come in; tiles of four rows are the largest kernels. */
const RARE: ReadonlySet<string> = new Set(["g16_7bit", "g32_6bit", "g32_8bit_min"]);

/** Activation rows of the kernels of a kind, most first; two sums an output leave room for fewer. */
function heightsOf({ signs, name }: PanelKind): readonly number[] {
  return signs || RARE.has(name) ? [2, 1] : [4, 2, 1];
}

function group(style: DotStyle, kind: PanelKind, height: number, half: number): string[] {
  const rows = [...Array(height).keys()];
  const dots = dotsOf(style, kind.bits);
  const steps = kind.groupColumns / 4;
  const lines: string[] = [];
  const at = (base: string, offset: number) => offset ? `${base} + ${offset}` : base;
  for (let q = 0; q < steps; q++) {
    for (const v of VECTORS) {
      lines.push(`const w${q}_${v} = v128.load(codes, ${64 * q + 16 * v});`);
      if (kind.signs) lines.push(...signParts(`${q}_${v}`));
    }
    for (const r of rows) {
      const x = `x${r}_${q}`;
      lines.push(`const ${x} = v128.load32_splat(${at(`x${r}`, 16 * half + 4 * q)});`);
      lines.push(...dots.operand(x));
      for (const v of VECTORS) {
        if (kind.signs) {
          lines.push(...dots.add(`c${r}_${v}`, x, `p${q}_${v}`, q, steps));
          lines.push(...dots.add(`b${r}_${v}`, x, `n${q}_${v}`, q, steps));
        } else lines.push(...dots.add(`c${r}_${v}`, x, `w${q}_${v}`, q, steps));
      }
    }
  }
  const vector = (v: number, minimum: boolean) => 64 * (v >> 1) + 16 * (v & 1) + (minimum ? 32 : 0);
  for (const v of VECTORS) {
    lines.push(`const d${v} = v128.load(scales, ${vector(v, false)});`);
    if (kind.minima || kind.signs) {
      lines.push(`const m${v} = v128.load(scales, ${vector(v, true)});`);
    }
  }
  for (const r of rows) {
    lines.push(`const s${r} = v128.load32_splat(x${r}s);`);
    if (kind.minima) lines.push(...groupSum(kind, r, half));
    for (const v of VECTORS) {
      const product = `f32x4.mul(f32x4.convert_i32x4_s(c${r}_${v}), s${r})`;
      lines.push(`f${r}_${v} = madd(${product}, d${v}, f${r}_${v});`);
      if (kind.minima) lines.push(`f${r}_${v} = madd(t${r}, m${v}, f${r}_${v});`);
      if (kind.signs) {
        const below = `f32x4.mul(f32x4.convert_i32x4_s(b${r}_${v}), s${r})`;
        lines.push(`f${r}_${v} = madd(${below}, m${v}, f${r}_${v});`);
      }
    }
  }
  return ["{", ...lines, `codes += ${64 * steps};`, "scales += 128;", "}"];
}

/** The scaled sum of a group's codes; that of a second half is what the first leaves of the whole. */
function groupSum(kind: PanelKind, r: number, half: number): string[] {
  const whole = `v128.load32_splat(x${r}s + sums)`;
  if (kind.groupColumns === 32) return [`const t${r} = ${whole};`];
  const first = `v128.load32_splat(x${r}s + 2 * sums)`;
  return [`const t${r} = ${half ? `f32x4.sub(${whole}, ${first})` : first};`];
}

function tile(style: DotStyle, kind: PanelKind, height: number): string {
  const rows = [...Array(height).keys()];
  const each = (line: (r: number, v: number) => string) =>
    rows.flatMap((r) => VECTORS.map((v) => line(r, v)));
  const halves = kind.groupColumns === 16 ? [0, 1] : [0];
  return [
    `function tile_${style}_${kind.name}_${height}` +
    "(x: usize, stride: usize, columns: usize, codes: usize, scales: usize, " +
    "out: usize, outStride: usize): void {",
    ...dotsOf(style, kind.bits).constants,
    ...kind.signs ? [NOTHING] : [],
    "const sums = columns >> 3;",
    ...rows.map((r) => `let x${r} = x + ${r} * stride, x${r}s = x${r} + columns;`),
    ...each((r, v) => `let f${r}_${v} = f32x4.splat(0);`),
    "const end = x + columns;",
    "do {",
    ...halves.flatMap((half) => group(style, kind, height, half)),
    ...rows.map((r) => `x${r} += 32; x${r}s += 4;`),
    "} while (x0 < end);",
    ...each((r, v) => `v128.store(out + ${r} * outStride, f${r}_${v}, ${16 * v});`),
    "}",
  ].join("\n");
}

function dispatch(style: DotStyle, kind: PanelKind): string {
  const heights = heightsOf(kind).map((height) =>
    [
      `  while (rows >= ${height}) {`,
      `    tile_${style}_${kind.name}_${height}(x, stride, columns, codes, scales, out, outStride);`,
      `    rows -= ${height}; x += ${height} * stride; out += ${height} * outStride;`,
      "  }",
    ].join("\n")
  );
  return [
    `/** Any number of rows; panels of ${kind.bits}-bit codes and groups of ${kind.groupColumns}. */`,
    `export function tiles_${style}_${kind.name}(rows: u32, x: usize, stride: usize, ` +
    "columns: usize, codes: usize, scales: usize, out: usize, outStride: usize): void {",
    ...heights,
    "}",
  ].join("\n");
}

/** Module `generated/tiles_{style}`. */
export function tilesModule(style: DotStyle): string {
  return [
    simdImports(),
    ...KINDS[style].flatMap((kind) => [
      ...heightsOf(kind).map((height) => tile(style, kind, height)),
      dispatch(style, kind),
    ]),
    "",
  ].join("\n");
}
