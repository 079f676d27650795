// Three rows and more, or two by the dot, interleaved by four (fours.ts), times one tile of packed weights, in text that V8 joins
// to 256 bits (joined_lanes.ts): no panel is unpacked, for any number of rows. The order of float operations is that of gemv.ts. Sums
// start where an offset takes them (assembly/matmul/fours.ts), also those of 32 bits.
// Activations are lanes of loads, splat. What differs between loads is added to their address, not left to their offset: V8
// would add each offset to each of the four lanes' addresses.

import { factorBits, type WeightLayout } from "../weight_layout.ts";
import { addsMinima, cellConstants, isCentered, quadOrder } from "./cells.ts";
import { type Dots, floatSumsOf, rowsDotsOf } from "./dots.ts";
import { FETCH } from "./gemv.ts";
import { simdImports } from "./imports.ts";
import {
  inOrder,
  JOINED_LAYOUTS,
  joinedCellScales,
  joinedCodes,
  joinedHeader,
  joinedHighBits,
  joinedMinima,
  joinedStepConstants,
  joinedSteps,
  type JoinedStyle,
} from "./joined_lanes.ts";
import { behindLoop, laneSplat, seed } from "./planes.ts";
import { groupsOf, HALVES } from "./scales.ts";
import { hasOffsets, hasStepMinima, hasSteps, stepSum } from "./steps.ts";

/** Rows of a kernel, most first; `pair` has others of two (gemv_joined_one.ts). */
const COUNTS: Readonly<Record<JoinedStyle, readonly number[]>> = { dot: [8, 4, 2], pair: [8, 4] };
/** Cells of a block of steps. */
const CELLS = 8;

/** Least rows for which a kernel of so many is taken. */
function leastOf(count: number, style: JoinedStyle): number {
  const counts = COUNTS[style];
  return (counts[counts.indexOf(count) + 1] ?? (style === "dot" ? 0 : 2)) + 1;
}

/** Whether codes of a layout, and activations, are multiplied as 16 bits. */
function isWide(layout: WeightLayout, style: JoinedStyle): boolean {
  return style === "pair" && factorBits(layout) === 8;
}

function dotsOf(layout: WeightLayout, style: JoinedStyle): Dots {
  return (hasSteps(layout) ? floatSumsOf : rowsDotsOf)(style, factorBits(layout));
}

/** Statements that define {name}_{r}{part}, what row `r` has of what lies at `at` for four rows, in all lanes. */
function ofRow(name: string, at: string, r: number, part = ""): string[] {
  const four = `${name}of${r >> 2}${part}`, from = r > 3 ? `apart + ${at}` : at;
  return [
    ...r & 3 ? [] : [`const ${four} = v128.load(${from});`],
    `const ${name}_${r}${part} = ${laneSplat(four, r & 3)};`,
  ];
}

/** Sums of products of a cell, c{g}{h}_{r}; with `pair` those of both groups are c0{h}_{r}. */
function products(layout: WeightLayout, style: JoinedStyle, rows: readonly number[]): string[] {
  const dots = dotsOf(layout, style), groups = groupsOf(layout), order = quadOrder(layout);
  const starts = hasOffsets(layout) || (isCentered(layout) && !isWide(layout, style));
  const isPair = style === "pair";
  const parts = dots.wide ?? [""], all = order.length / groups, lines: string[] = [];
  // Where there are two groups a row takes all quads of one before the next row does, so that its sum of 16 bits takes one register.
  const run = groups === 2 && isPair ? all : 1;
  for (let first = 0; first < order.length; first += run) {
    const quads = order.slice(first, first + run), g = groups === 2 ? quads[0]! >> 2 : 0;
    for (const q of quads) {
      lines.push(...joinedCodes(layout, q, isPair));
      for (const h of HALVES) lines.push(...dots.weight?.(`w${q}_${h}`) ?? []);
    }
    for (const r of rows) {
      if (starts && first % all === 0) lines.push(...ofRow(`z${g}`, g ? "halfSum" : "sum", r));
      for (const q of quads) {
        for (const [i, part] of parts.entries()) {
          lines.push(...ofRow(`x${q}`, `x + ${16 * (parts.length * q + i)}`, r, part));
        }
      }
      for (const [i, q] of quads.entries()) {
        for (const h of HALVES) {
          const by = hasSteps(layout) ? `S${g}_${h}` : "ONES";
          const z = starts ? `z${g}_${r}` : undefined;
          const more = isPair
            ? { by, goesOn: g > 0, from: "ZERO", start: z }
            : { by, goesOn: false, from: z ?? "ZERO" };
          const step = (first + i) % all;
          lines.push(
            ...dots.add(`c${isPair ? 0 : g}${h}_${r}`, `x${q}_${r}`, `w${q}_${h}`, step, all, more),
          );
        }
      }
    }
  }
  return lines;
}

function each(rows: readonly number[], line: (r: number, h: number) => string): string[] {
  return rows.flatMap((r) => HALVES.map((h) => line(r, h)));
}

function cell(layout: WeightLayout, style: JoinedStyle, rows: readonly number[]): string[] {
  const isStepped = hasSteps(layout), bits = factorBits(layout);
  const groups = [...Array(style === "pair" ? 1 : groupsOf(layout)).keys()];
  const sum = (h: number, r: number) => {
    const sums = groups.map((g) => `c${g}${h}_${r}`);
    if (!isStepped) return `f32x4.convert_i32x4_s(${sums[0]})`;
    return stepSum(sums, { style, bits, steps: groups.map((g) => `S${g}_${h}`) });
  };
  const hasMinima = !isStepped && addsMinima(layout, true) && !isCentered(layout);
  return [
    ...layout.spareBytes ? [FETCH] : [],
    ...isStepped ? joinedSteps(layout, style) : [],
    ...joinedHighBits(layout),
    ...products(layout, style, rows),
    ...isStepped ? [] : joinedCellScales(layout),
    ...rows.flatMap((r) => [
      ...ofRow("s", "scale", r),
      ...hasMinima ? ofRow("t", "sum", r) : [],
      ...HALVES.flatMap((h) => {
        const f = `f${h}_${r}`;
        if (isStepped) return [`p${h}_${r} = madd(${sum(h, r)}, s_${r}, p${h}_${r});`];
        return [
          `${f} = madd(f32x4.mul(${sum(h, r)}, s_${r}), d0_${h}, ${f});`,
          ...hasMinima ? [`${f} = madd(t_${r}, m0_${h}, ${f});`] : [],
        ];
      }),
    ]),
    `w += ${layout.cellBytes}; x += ${isWide(layout, style) ? 256 : 128};`,
    "scale += 16; sum += 16; halfSum += 16;",
  ];
}

/** Minima of a block, in a loop of their own, whose sums stay in registers. */
function minima({ cellBytes }: WeightLayout, rows: readonly number[]): string[] {
  return [
    ...each(rows, (r, h) => `let o${h}_${r} = f32x4.splat(0);`),
    `let at = w - ${CELLS * cellBytes}, total = sum - ${16 * CELLS};`,
    "do {",
    ...joinedMinima("v128.load(at)"),
    ...rows.flatMap((r) => ofRow("t", "total", r)),
    ...each(rows, (r, h) => `o${h}_${r} = madd(M${h}, t_${r}, o${h}_${r});`),
    `at += ${cellBytes}; total += 16;`,
    "} while (total < sum);",
    ...each(rows, (r, h) => `f${h}_${r} = madd(o${h}_${r}, E${h}, f${h}_${r});`),
  ];
}

/** Cells in a row, or a block of cells under a header. */
function run(layout: WeightLayout, style: JoinedStyle, rows: readonly number[]): string[] {
  const cells = layout.blockColumns / layout.cellColumns, isStepped = hasSteps(layout);
  if (cells === 1) return cell(layout, style, rows);
  return [
    ...joinedHeader(layout),
    `w += ${layout.headerBytes};`,
    ...isStepped ? each(rows, (r, h) => `let p${h}_${r} = f32x4.splat(0);`) : [],
    `const blockEnd = scale + ${16 * cells};`,
    "do {",
    ...cell(layout, style, rows),
    "} while (scale < blockEnd);",
    ...isStepped ? each(rows, (r, h) => `f${h}_${r} = madd(p${h}_${r}, D${h}, f${h}_${r});`) : [],
    ...hasStepMinima(layout) ? minima(layout, rows) : [],
  ];
}

/** Statements that store sums, of rows that need not be there only where they are. */
function stores(style: JoinedStyle, rows: readonly number[]): string[] {
  return [
    ...each(rows, (r, h) => behindLoop(`f${h}_${r}`)),
    seed("out", rows.map((r) => [`f0_${r}`, `f1_${r}`])),
    ...rows.flatMap((r) => [
      `${r < leastOf(rows.length, style) ? "" : `if (rows > ${r}) `}{`,
      ...HALVES.map((h) =>
        `v128.store(out + ${r} * outStride, ${inOrder(`f0_${r}`, `f1_${r}`, h)}, ${16 * h});`
      ),
      "}",
    ]),
  ];
}

const PARAMETERS = "w: usize, x: usize, apart: usize, rows: u32, columns: usize, out: usize, " +
  "outStride: usize, flip: i32, ahead: usize";

function kernel(layout: WeightLayout, style: JoinedStyle, count: number): string {
  const rows = [...Array(count).keys()];
  return [
    `function joined_${layout.kernel}_${count}(${PARAMETERS}): void {`,
    ...layout.spareBytes ? [`const spare = ahead ? ahead + ${layout.cellBytes - 1} : 0;`] : [],
    ...cellConstants(layout, style === "pair"),
    ...dotsOf(layout, style).constants,
    ...joinedStepConstants(layout, style),
    `let scale = x + ${isWide(layout, style) ? 8 : 4} * columns;`,
    "let sum = scale + (columns >> 1), halfSum = sum + (columns >> 1);",
    "const end = sum;",
    ...each(rows, (r, h) => `let f${h}_${r} = f32x4.splat(0);`),
    "do {",
    ...run(layout, style, rows),
    "} while (scale < end);",
    ...stores(style, rows),
    "}",
  ].join("\n");
}

/** Module `generated/gemv_joined_{style}`. */
export function gemvJoinedModule(style: JoinedStyle): string {
  const layouts = JOINED_LAYOUTS[style], counts = COUNTS[style];
  const calls = (kernel: string) =>
    counts.map((count) =>
      `      for (; rows >= ${leastOf(count, style)}; rows -= min(rows, ${count}), ` +
      `x += ${count >> 2} * apart, out += ${count} * outStride) ` +
      `joined_${kernel}_${count}(w, x, apart, rows, columns, out, outStride, flip, ahead);`
    );
  return [
    simdImports(),
    ...layouts.flatMap((layout) => counts.map((count) => kernel(layout, style, count))),
    ...style === "dot" ? [] : [
      "/** Rows, of so many, that no kernel of these takes. */",
      "export function leftOver(rows: u32): u32 { return (rows & 7) < 3 ? rows & 7 : 0; }",
    ],
    "/** Whether a layout has these kernels. */",
    `export function hasJoined_${style}(layout: u32): bool {`,
    `  return ${layouts.map(({ id }) => `layout == ${id}`).join(" || ")};`,
    "}",
    "/**",
    ` * Any number of rows${
      style === "dot" ? "" : " but the last one or two (`leftOver`)"
    }, whose fours lie \`apart\`, times one tile, and no other outputs than`,
    " * theirs; `flip` is for 8-bit codes, see matmul/q8.ts. `ahead` bytes behind the tile is one that will be wanted soon, and is",
    " * this thread's alone; 0: none is.",
    " */",
    `export function gemv_joined_${style}(layout: u32, ${PARAMETERS}): void {`,
    "  switch (layout) {",
    ...layouts.flatMap(({ id, kernel }) => [
      `    case ${id}:`,
      ...calls(kernel),
      "      return;",
    ]),
    "  }",
    "  unreachable();",
    "}",
    "",
  ].join("\n");
}
