// Register tiles on weights rounded to 7 bit (wasm/int7_layout.ts): R activation rows times the rows of one tile
// of the layout or of two, whose codes are read where they lie.
//   for each group of 64 columns: c = Σ q · code as integers; f += m · (s · Σ q); f += c · (s · d)
// Only the last product waits for c: where both scales do and minima come behind, products take 2 % longer.
// The bias is added where a sum is stored, which costs less than another pass over the outputs.
// - `dot`: twelve rows times two tiles. Eight vectors of codes (two steps of two tiles, four of one) stay in registers
//   while the rows pass, each with one load that shuffles splat, because V8 checks every load (float_tiles.ts); sums
//   are spilled. Dots and scales take the same two ports, 32 and 8 a group and row: four fifths of the limit.
//   Not kept: sums that start at the bits of 1.5 · 2^23 and so are floats without a conversion (other bits than
//   `pair`), and codes without minima (coarser).
// - `pair`: eight interleaved rows (fours.ts) times one tile, where there are many, so that codes are loaded half as often; else two rows times two tiles where there are
//   two, four rows times one where not. Sums of four steps fit in 16 bits, for rows have low sums (quant/q8_activation.ts):
//   five multiplications, of which there are two a cycle, in place of eight. Where V8 joins vectors: eights_int7.ts.
// - `plain`: the same tiles.
// Wider groups, or one scale a row, would be faster, and are coarser. Figures: bench/results/kernels.md.

import { INT7_GROUP } from "../../quant/int7_groups.ts";
import { INT7_CELL_BYTES, INT7_SCALE_BYTES } from "../int7_layout.ts";
import { type Dots, dotsOf, type DotStyle } from "./dots.ts";
import { allTurns, turned, TURNS, untwisted } from "./fours.ts";
import { simdImports } from "./imports.ts";

/** Heights of the register tiles, by the tiles of the layout that they span. */
const HEIGHTS: ReadonlyMap<number, readonly number[]> = new Map([[1, [4, 2, 1]], [2, [2, 1]]]);
/** The same for `dot`. */
const DOT_HEIGHTS: typeof HEIGHTS = new Map([[1, [12, 4, 2, 1]], [2, [12, 6, 4, 2, 1]]]);
/** Steps of a group, and those whose sums of two fit in 16 bits. */
const STEPS = 16, RUN = 4;

const PARAMETERS =
  "x: usize, stride: usize, columns: usize, w: usize, tileBytes: usize, bias: usize, " +
  "out: usize, outStride: usize";

function heightsOf(style: DotStyle): typeof HEIGHTS {
  return style === "dot" ? DOT_HEIGHTS : HEIGHTS;
}

/** Half tile `h`: the pointer to its tile, and what it is from there. */
function half(h: number): { w: string; at: number } {
  return { w: h < 2 ? "w" : "v", at: 16 * (h & 1) };
}

/** Loads the activations of a row for some steps, a vector a step. */
function operands(row: string, steps: readonly number[], dots: Dots): string[] {
  const first = steps[0]!;
  if (steps.length === 1) {
    const x = `${row}_${first}`;
    return [`const ${x} = v128.load32_splat(${row}, ${4 * first});`, ...dots.operand(x)];
  }
  const all = `${row}_${first}x`;
  const load = steps.length === 4 ? "load" : "load64_zero";
  return [
    `const ${all} = v128.${load}(${row}, ${4 * first});`,
    ...steps.flatMap((q, lane) => {
      const x = `${row}_${q}`;
      return [
        `const ${x} = v128.shuffle<i32>(${all}, ${all}, ${Array(4).fill(lane).join(", ")});`,
        ...dots.operand(x),
      ];
    }),
  ];
}

function codes(q: number, h: number): string {
  const { w, at } = half(h);
  return `const w${q}_${h} = v128.load(${w}, ${INT7_SCALE_BYTES + 32 * q + at});`;
}

/** The products of four steps where their sums fit in 16 bits. */
function pairSteps(rows: readonly number[], halves: readonly number[]): string[] {
  const lines: string[] = [];
  for (let q = 0; q < RUN; q += 2) {
    const steps = [q, q + 1];
    lines.push(
      ...steps.flatMap((step) =>
        rows.map((r) => `const x${r}_${step} = v128.load32_splat(x${r}, ${4 * step});`)
      ),
      ...halves.flatMap((h) => steps.map((step) => codes(step, h))),
    );
    for (const r of rows) {
      for (const h of halves) {
        const [first, second] = steps.map((step) =>
          `i16x8.relaxed_dot_i8x16_i7x16_s(x${r}_${step}, w${step}_${h})`
        );
        const sum = `i16x8.add(${first}, ${second})`, half = `p${r}_${h}`, c = `c${r}_${h}`;
        const wide = `i32x4.dot_i16x8_s(i16x8.add(${half}, ${sum}), ONES)`;
        lines.push(q ? `${c} = i32x4.add(${c}, ${wide});` : `const ${half} = ${sum};`);
      }
    }
  }
  return lines;
}

function tile(style: DotStyle, span: number, height: number): string {
  const rows = [...Array(height).keys()], halves = [...Array(2 * span).keys()];
  const dots = dotsOf(style, 7);
  const each = (line: (r: number, h: number) => string) =>
    rows.flatMap((r) => halves.map((h) => line(r, h)));
  const products = (r: number, q: number) =>
    halves.flatMap((h) => dots.add(`c${r}_${h}`, `x${r}_${q}`, `w${q}_${h}`, q + 1, STEPS));
  // Of a group so many steps stand in the text, in a loop.
  const turn = style === "dot" ? 2 * RUN : RUN;
  const steps = style === "pair" ? pairSteps(rows, halves) : [];
  const run = style === "dot" ? 4 / span : 1;
  for (let first = 0; style !== "pair" && first < turn; first += run) {
    const some = [...Array(run).keys()].map((step) => first + step);
    steps.push(...some.flatMap((q) => halves.map((h) => codes(q, h))));
    for (const r of rows) {
      steps.push(...operands(`x${r}`, some, dots), ...some.flatMap((q) => products(r, q)));
    }
  }
  const pointers = span === 2 ? ["w", "v"] : ["w"];
  const scales = (w: string) => `${w}Scales`;
  const group = [
    ...pointers.map((w) => `const ${scales(w)} = ${w};`),
    ...each((r, h) => `let c${r}_${h} = i32x4.splat(0);`),
    `const last = x0 + ${INT7_GROUP};`,
    "do {",
    ...steps,
    ...rows.map((r) => `x${r} += ${4 * turn};`),
    ...pointers.map((w) => `${w} += ${32 * turn};`),
    "} while (x0 < last);",
    ...pointers.map((w) => `${w} += ${INT7_SCALE_BYTES};`),
  ];
  for (const h of halves) {
    const { w, at } = half(h), from = scales(w);
    group.push(`const d${h} = v128.load(${from}, ${at}), m${h} = v128.load(${from}, ${32 + at});`);
  }
  for (const r of rows) {
    group.push(
      `const s${r} = v128.load32_splat(x${r}s), t${r} = v128.load32_splat(x${r}s + sums);`,
    );
    for (const h of halves) {
      group.push(`f${r}_${h} = madd(t${r}, m${h}, f${r}_${h});`);
      const sum = `f32x4.convert_i32x4_s(c${r}_${h})`;
      group.push(`f${r}_${h} = madd(${sum}, f32x4.mul(s${r}, d${h}), f${r}_${h});`);
    }
  }
  return [
    `function tile_${style}_int7_${span}_${height}(${PARAMETERS}): void {`,
    ...dots.constants,
    "const sums = columns >> 4;",
    ...rows.map((r) => `let x${r} = x + ${r} * stride, x${r}s = x${r} + columns;`),
    ...each((r, h) => `let f${r}_${h} = f32x4.splat(0);`),
    ...span === 2 ? ["let v = w + tileBytes;"] : [],
    "const end = x + columns;",
    "do {",
    ...group,
    ...rows.map((r) => `x${r}s += 4;`),
    "} while (x0 < end);",
    ...halves.map((h) => `const b${h} = v128.load(bias, ${16 * h});`),
    ...each((r, h) =>
      `v128.store(out + ${r} * outStride, f32x4.add(f${r}_${h}, b${h}), ${16 * h});`
    ),
    "}",
  ].join("\n");
}

/** The sums of a tile of interleaved rows: of four `n`, turn `k`, half `h`. */
function eachTurn(fours: readonly number[], line: (sum: string, h: number) => string): string[] {
  return fours.flatMap((n) => TURNS.flatMap((k) => [0, 1].map((h) => line(`${n}_${k}_${h}`, h))));
}

/** The products of a group of interleaved rows; codes of four steps stay while all fours pass. */
function turnSteps(fours: readonly number[]): string[] {
  const lines: string[] = [];
  for (let q = 0; q < STEPS; q += RUN) {
    const steps = [...Array(RUN).keys()].map((step) => q + step);
    lines.push(...steps.flatMap((step) => [0, 1].map((h) => codes(step, h))));
    for (const n of fours) {
      const x = (step: number) => `x${n}_${step}`;
      lines.push(...steps.map((step) => `let ${x(step)} = v128.load(x${n}, ${16 * step});`));
      for (const k of TURNS) {
        if (k) lines.push(...steps.map((step) => `${x(step)} = ${turned(x(step), 1)};`));
        for (const h of [0, 1]) {
          const sum = steps
            .map((step) => `i16x8.relaxed_dot_i8x16_i7x16_s(${x(step)}, w${step}_${h})`)
            .reduce((a, b) => `i16x8.add(${a}, ${b})`);
          const wide = `i32x4.dot_i16x8_s(${sum}, ONES)`, c = `c${n}_${k}_${h}`;
          lines.push(q ? `${c} = i32x4.add(${c}, ${wide});` : `let ${c} = ${wide};`);
        }
      }
    }
  }
  return lines;
}

/** Some fours of rows that lie interleaved (assembly/matmul/fours.ts) times one tile. */
function foursTile(count: number): string {
  const fours = [...Array(count).keys()];
  return [
    `function tile_fours_${count}(x: usize, bytes: usize, columns: usize, w: usize, bias: usize, out: usize, ` +
    "outStride: usize): void {",
    "const ONES = v128.load(ONES_AT), sums = columns >> 2, end = x + 4 * columns;",
    ...fours.map((n) => `let x${n} = x + ${n} * bytes, x${n}s = x${n} + 4 * columns;`),
    ...eachTurn(fours, (sum) => `let f${sum} = f32x4.splat(0);`),
    "do {",
    "const m0 = v128.load(w, 32), m1 = v128.load(w, 48);",
    ...fours.flatMap((n) => allTurns(`t${n}_`, `v128.load(x${n}s + sums)`, TURNS)),
    ...eachTurn(fours, (sum, h) => `f${sum} = madd(t${sum.slice(0, -2)}, m${h}, f${sum});`),
    ...turnSteps(fours),
    ...fours.flatMap((n) => allTurns(`s${n}_`, `v128.load(x${n}s)`, TURNS)),
    ...[0, 1].map((h) => `const d${h} = v128.load(w, ${16 * h});`),
    ...eachTurn(fours, (sum, h) => {
      const scale = `f32x4.mul(s${sum.slice(0, -2)}, d${h})`;
      return `f${sum} = madd(f32x4.convert_i32x4_s(c${sum}), ${scale}, f${sum});`;
    }),
    ...fours.map((n) => `x${n} += ${4 * INT7_GROUP}; x${n}s += 16;`),
    `w += ${INT7_CELL_BYTES};`,
    "} while (x0 < end);",
    ...[0, 1].flatMap((h) => [
      `const b${h} = v128.load(bias, ${16 * h});`,
      ...fours.flatMap((n) =>
        untwisted(TURNS.map((k) => `f${n}_${k}_${h}`)).map((row, r) =>
          `v128.store(out + ${4 * n + r} * outStride, f32x4.add(${row}, b${h}), ${16 * h});`
        )
      ),
    ]),
    "}",
  ].join("\n");
}

/** A function for any number of interleaved rows. */
function foursRuns(): string {
  return [
    "/** Interleaved rows, whole fours of `bytes` bytes, times one tile, and a bias. */",
    "export function fours_int7(rows: u32, bytes: usize, x: usize, columns: usize, w: usize, bias: usize, " +
    "out: usize, outStride: usize): void {",
    ...[2, 1].map((count) =>
      `  for (; rows >= ${4 * count}; rows -= ${4 * count}, x += ${count} * bytes, out += ${
        4 * count
      } * outStride) ` +
      `tile_fours_${count}(x, bytes, columns, w, bias, out, outStride);`
    ),
    "}",
  ].join("\n");
}

/** A function for any number of rows. */
function runs(style: DotStyle, span: number): string {
  const what = span === 1 ? "one tile" : "two tiles";
  return [
    `/** Any number of rows times ${what}, and a bias. */`,
    `export function tiles_int7_${style}_${span}(rows: u32, ${PARAMETERS}): void {`,
    ...heightsOf(style).get(span)!.map((height) =>
      [
        `  while (rows >= ${height}) {`,
        `    tile_${style}_int7_${span}_${height}(x, stride, columns, w, tileBytes, bias, out, outStride);`,
        `    rows -= ${height}; x += ${height} * stride; out += ${height} * outStride;`,
        "  }",
      ].join("\n")
    ),
    "}",
  ].join("\n");
}

/** Module `generated/tiles_int7_{style}`. */
export function tilesInt7Module(style: DotStyle): string {
  return [
    simdImports(),
    ...[...heightsOf(style)].flatMap(([span, heights]) => [
      ...heights.map((height) => tile(style, span, height)),
      runs(style, span),
    ]),
    ...style === "pair" ? [foursTile(2), foursTile(1), foursRuns()] : [],
    "",
  ].join("\n");
}
