// Seven or eight activation rows, interleaved by four (fours.ts), times half a tile, four weight rows, of formats whose scales
// are steps (steps.ts): codes are taken apart and turned once for both fours, whose sums, eight vectors, stay in registers,
// where kernels of four rows (gemv.ts) take all codes apart for each. By sums of two alone.
//   of turn k: lane j is weight row (j + k) % 4 times activation row j
// The order of float operations is that of gemv.ts. Products of both fours stand before their sums, and the next turn between:
// so a Zen 4 finds a port for each (bench/results/kernels.md).

import { factorBits, LAYOUTS_BY_FORMAT, type WeightLayout } from "../weight_layout.ts";
import { cellConstants, cellHighBits, codeVector, quadOrder } from "./cells.ts";
import { type FloatSums, floatSumsOf } from "./dots.ts";
import { allTurns, turned, TURNS, untwisted } from "./fours.ts";
import { simdImports } from "./imports.ts";
import { blockHeader, groupsOf } from "./scales.ts";
import { FETCH } from "./gemv.ts";
import { hasOffsets, hasStepMinima } from "./steps.ts";

const LAYOUTS: readonly WeightLayout[] = ["Q4_K", "Q5_K", "Q6_K"].map((format) =>
  LAYOUTS_BY_FORMAT.get(format)!
);

/** Columns and cells of a block of steps. */
const BLOCK = 256, CELLS = 8;
/** Both fours. */
const FOURS: readonly number[] = [0, 1];

/** All sums of the kernel. */
function each(line: (k: number, f: number) => string): string[] {
  return TURNS.flatMap((k) => FOURS.map((f) => line(k, f)));
}

/** Where something of four `f` lies. */
function ofFour(at: string, f: number): string {
  return f ? `${at} + apart` : at;
}

/** The element of each list that is first, then the second of each, and so on. */
function inTurns(lists: readonly (readonly string[])[]): string[] {
  const most = Math.max(...lists.map(({ length }) => length));
  return [...Array(most).keys()].flatMap((i) => lists.flatMap((list) => list[i] ?? []));
}

/** Products of quad `q`, the step `step` of group `g`, added to c{k}_{f}. */
function quad(layout: WeightLayout, dots: FloatSums, q: number): string[] {
  const groups = groupsOf(layout), g = groups === 2 ? q >> 2 : 0, starts = hasOffsets(layout);
  const order = quadOrder(layout).filter((other) => groups === 1 || other >> 2 === g);
  const step = order.indexOf(q), lines = codeVector(layout, q, 0);
  const named = (k: number) => k ? `w${q}_0_${k}` : `w${q}_0`;
  for (const f of FOURS) {
    lines.push(`const x${q}_${f} = v128.load(${ofFour("x", f)}, ${16 * q});`);
    if (starts && step === 0) {
      lines.push(`const z${g}_${f} = v128.load(${ofFour(g ? "halfSum" : "sum", f)});`);
    }
  }
  for (const k of TURNS) {
    const [first, ...others] = FOURS.map((f) => {
      const start = starts ? `z${g}_${f}` : undefined;
      const more = { by: `S${g}_${k}`, goesOn: g > 0, from: "ZERO", start };
      return dots.add(`c${k}_${f}`, `x${q}_${f}`, named(k), step, 8 / groups, more);
    });
    const added = inTurns([first!, ...others]);
    lines.push(...added.slice(0, FOURS.length));
    if (k < 3) lines.push(`const ${named(k + 1)} = ${turned(named(k), 1)};`);
    lines.push(...added.slice(FOURS.length));
  }
  return lines;
}

/** Steps of a cell in all turns, S{g}_{k}. */
function steps(layout: WeightLayout): string[] {
  if (hasStepMinima(layout)) {
    return [
      "const steps = v128.load(w - half);",
      ...allTurns("S0_", "lookUp(steps, STEPS)", TURNS),
    ];
  }
  return [
    "const steps = v128.load8x8_s(w - (half >> 1));",
    ...allTurns("S0_", "lookUp(steps, EVEN)", TURNS),
    ...allTurns("S1_", "lookUp(steps, ODD)", TURNS),
  ];
}

function cell(layout: WeightLayout, dots: FloatSums): string[] {
  return [
    FETCH,
    ...steps(layout),
    ...cellHighBits(layout),
    ...quadOrder(layout).flatMap((q) => quad(layout, dots, q)),
    ...FOURS.map((f) => `const s${f} = v128.load(${ofFour("scale", f)});`),
    ...each((k, f) => `p${k}_${f} = madd(${dots.value(`c${k}_${f}`)}, s${f}, p${k}_${f});`),
    `w += ${layout.cellBytes}; x += 128; scale += 16; sum += 16; halfSum += 16;`,
  ];
}

/** Minima of a block, in a loop of their own, whose sums stay in registers. */
function minima({ cellBytes }: WeightLayout): string[] {
  return [
    ...each((k, f) => `let o${k}_${f} = f32x4.splat(0);`),
    `let at = w - half - ${CELLS * cellBytes}, total = sum - ${16 * CELLS};`,
    "do {",
    ...allTurns("M", "f32x4.convert_i32x4_s(lookUp(v128.load(at), MINIMA))", TURNS),
    ...FOURS.map((f) => `const t${f} = v128.load(${ofFour("total", f)});`),
    ...each((k, f) => `o${k}_${f} = madd(M${k}, t${f}, o${k}_${f});`),
    `at += ${cellBytes}; total += 16;`,
    "} while (total < sum);",
    ...allTurns("e0_", "E0", TURNS),
    ...each((k, f) => `f${k}_${f} = madd(o${k}_${f}, e0_${k}, f${k}_${f});`),
  ];
}

/** Statements that store the sums of four `f`, row after row; the last of the second four only where it is. */
function stores(f: number): string[] {
  // Of each weight row all activation rows, then the other way round.
  const columns = untwisted(TURNS.map((k) => `f${k}_${f}`));
  const pair = (j: number, r: number) =>
    `v128.shuffle<i32>(u${f}_${j}, u${f}_${j + 1}, ${r}, ${r + 4}, ${r}, ${r + 4})`;
  return [
    ...columns.map((column, j) => `const u${f}_${j} = ${column};`),
    ...TURNS.map((r) =>
      `${f && r === 3 ? "if (rows > 7) " : ""}v128.store(out + ${4 * f + r} * outStride, ` +
      `v128.shuffle<i32>(${pair(0, r)}, ${pair(2, r)}, 0, 1, 4, 5));`
    ),
  ];
}

const PARAMETERS = "x: usize, apart: usize, rows: u32, columns: usize, out: usize, " +
  "outStride: usize, ahead: usize";

function kernel(layout: WeightLayout): string {
  const dots = floatSumsOf("pair", factorBits(layout));
  const spread = (name: string, at: string) => `const ${name} = v128.load(SPREAD_AT + ${at});`;
  return [
    `/** ${layout.kernel} weights: of a tile rows 0 to 3, or, \`half\` 16, 4 to 7. */`,
    `function eights_${layout.kernel}(half: usize, w: usize, ${PARAMETERS}): void {`,
    "w += half; out += half;",
    `const spare = ahead ? ahead - half + ${layout.cellBytes - 1} : 0;`,
    ...cellConstants(layout),
    ...dots.constants,
    ...hasStepMinima(layout)
      ? [spread("STEPS", "64 + half"), spread("MINIMA", "32 + half")]
      : [spread("EVEN", "96"), spread("ODD", "112")],
    "let scale = x + 4 * columns, sum = scale + (columns >> 1), halfSum = sum + (columns >> 1);",
    "const end = sum;",
    ...each((k, f) => `let f${k}_${f} = f32x4.splat(0);`),
    "do {",
    // Halves of four rows lie at 8 bytes where their codes lie at 16.
    "w -= half >> 1;",
    ...blockHeader(layout, "minimum"),
    `w += (half >> 1) + ${layout.headerBytes};`,
    ...each((k, f) => `let p${k}_${f} = f32x4.splat(0);`),
    `const blockEnd = scale + ${BLOCK / 2};`,
    "do {",
    ...cell(layout, dots),
    "} while (scale < blockEnd);",
    ...allTurns("d0_", "D0", TURNS),
    ...each((k, f) => `f${k}_${f} = madd(p${k}_${f}, d0_${k}, f${k}_${f});`),
    ...hasStepMinima(layout) ? minima(layout) : [],
    "} while (scale < end);",
    ...FOURS.flatMap(stores),
    "}",
  ].join("\n");
}

/** Module `generated/gemv_eights`. */
export function gemvEightsModule(): string {
  const rows = "x, apart, rows, columns, out, outStride";
  return [
    simdImports(),
    ...LAYOUTS.map(kernel),
    "/** Whether a layout has kernels of seven and eight rows. */",
    "export function takesEights(layout: u32): bool {",
    `  return ${LAYOUTS.map(({ id }) => `layout == ${id}`).join(" || ")};`,
    "}",
    "/**",
    " * Seven or eight rows, whose fours lie `apart`, times one tile, whose halves come one after the other: by then a cache has the",
    " * tile, and what lies `ahead`.",
    " */",
    `export function gemv_eights(layout: u32, w: usize, ${PARAMETERS}): void {`,
    "  switch (layout) {",
    ...LAYOUTS.flatMap(({ id, kernel }) => [
      `    case ${id}:`,
      `      eights_${kernel}(0, w, ${rows}, ahead);`,
      `      eights_${kernel}(16, w, ${rows}, 0);`,
      "      return;",
    ]),
    "  }",
    "  unreachable();",
    "}",
    "",
  ].join("\n");
}
