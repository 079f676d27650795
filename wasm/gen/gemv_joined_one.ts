// One row times one tile of packed weights or two in turns, or two rows times one, in text that V8 joins to 256 bits
// (joined_lanes.ts), of codes of 8 bit by rows of 16, but by the dot. The order of float operations is that of gemv.ts. Rows lie one
// after the other: two that are interleaved as four are there twice, and are more than the nearest cache holds beside a tile
// that comes out of memory (bench/results/kernels.md).

import { factorBits, type WeightLayout } from "../weight_layout.ts";
import {
  addsMinima,
  cellConstants,
  isCentered,
  offsetConstant,
  ofRow,
  quadOrder,
  rowName,
  startOf,
} from "./cells.ts";
import { type Dots, dotsOf, floatSumsOf } from "./dots.ts";
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
import { behindLoop, laneSplat, seed, spread } from "./planes.ts";
import { groupsOf, HALVES } from "./scales.ts";
import { hasOffsets, hasStepMinima, hasSteps, stepStarts, stepSum } from "./steps.ts";
import { TURN_SCALES, turnEnd, turnsStart, turnsStores } from "./turns.ts";

/** Layouts of the kernels of rows of bytes: codes of 8 bit gain nothing, and by the dot others than those with steps little. */
function layoutsOf(style: JoinedStyle): readonly WeightLayout[] {
  return JOINED_LAYOUTS[style].filter((layout) =>
    style === "dot" ? hasSteps(layout) : factorBits(layout) < 8
  );
}

const WIDE = JOINED_LAYOUTS.pair.filter((layout) => factorBits(layout) === 8);

function sumsOf(layout: WeightLayout, style: JoinedStyle): Dots {
  return (hasSteps(layout) ? floatSumsOf : dotsOf)(style, factorBits(layout));
}

/** Sums that a cell has of one row: by sums of two one for both groups. */
function cellSums(layout: WeightLayout, style: JoinedStyle): number[] {
  return [...Array(style === "pair" ? 1 : groupsOf(layout)).keys()];
}

/** A line for each half of each row, whose names end with that of the row. */
function each(rows: readonly number[], line: (h: number, row: string) => string): string[] {
  return rows.flatMap((r) => HALVES.map((h) => line(h, rowName(r))));
}

/** A statement that defines {name}{row}, what lies at `at` for row `r`, in all lanes. */
function splat(name: string, at: string, r: number): string {
  return `const ${name}${rowName(r)} = v128.load32_splat(${ofRow(at, r)});`;
}

/** Sums of products of a cell, c{g}{h}{row}; with `pair` those of both groups are c0{h}{row}. */
function products(layout: WeightLayout, style: JoinedStyle, rows: readonly number[]): string[] {
  const groups = groupsOf(layout), order = quadOrder(layout), all = order.length / groups;
  const dots = sumsOf(layout, style), isPair = style === "pair";
  const from = (g: number) =>
    hasOffsets(layout) && !isPair ? `z${g}` : isCentered(layout) ? "z" : "ZERO";
  return [
    ...rows.flatMap((r) => [
      ...isCentered(layout)
        ? [splat("h", "halfSum", r), `const z${rowName(r)} = ${startOf(`h${rowName(r)}`)};`]
        : [],
      ...["low", "high"].map((half, i) =>
        `const ${half}${rowName(r)} = v128.load(${ofRow("x", r)} + ${16 * i});`
      ),
    ]),
    ...order.flatMap((q, i) => {
      const g = groups === 2 ? q >> 2 : 0;
      return [
        ...joinedCodes(layout, q, isPair),
        ...rows.map(rowName).flatMap((row) => [
          `const x${q}${row} = ${laneSplat((q < 4 ? "low" : "high") + row, q & 3)};`,
          ...HALVES.flatMap((h) =>
            dots.add(`c${isPair ? 0 : g}${h}${row}`, `x${q}${row}`, `w${q}_${h}`, i % all, all, {
              by: hasSteps(layout) ? `S${g}_${h}` : "ONES",
              goesOn: isPair && g > 0,
              from: from(g) === "ZERO" ? "ZERO" : from(g) + row,
            })
          ),
        ]),
      ];
    }),
  ];
}

/** What a cell whose scales are steps adds to sums of its block. */
function steppedEpilogue(
  layout: WeightLayout,
  style: JoinedStyle,
  rows: readonly number[],
): string[] {
  const { offset } = layout, bits = factorBits(layout), hasMinima = hasStepMinima(layout);
  const isLeft = !hasMinima && style === "pair", groups = cellSums(layout, style);
  const sum = (h: number, row: string) => {
    const offsets = isLeft ? { offset, pairs: `P${h}`, halves: `halves${row}` } : undefined;
    const steps = groups.map((g) => `S${g}_${h}`);
    return stepSum(groups.map((g) => `c${g}${h}${row}`), { style, bits, steps, offsets });
  };
  return [
    ...hasMinima ? [...joinedMinima("steps"), ...rows.map((r) => splat("t", "sum", r))] : [],
    ...isLeft
      ? [
        "const P = lookUp(steps, PAIRS);",
        ...HALVES.map((h) => `const P${h} = ${spread("P", h, "i16x8", "s")};`),
        ...rows.map((r) => splat("halves", "halfSum", r)),
      ]
      : [],
    ...each(rows, (h, row) => `p${h}${row} = madd(${sum(h, row)}, s${row}, p${h}${row});`),
    ...hasMinima ? each(rows, (h, row) => `o${h}${row} = madd(M${h}, t${row}, o${h}${row});`) : [],
  ];
}

function cell(layout: WeightLayout, style: JoinedStyle, rows: readonly number[]): string[] {
  const isStepped = hasSteps(layout);
  const hasMinima = addsMinima(layout, true) && !isCentered(layout);
  const product = (h: number, row: string) =>
    `f32x4.mul(f32x4.convert_i32x4_s(c0${h}${row}), s${row})`;
  return [
    ...layout.spareBytes ? [FETCH] : [],
    ...isStepped ? joinedSteps(layout, style) : [],
    ...hasOffsets(layout) && style === "dot"
      ? rows.flatMap((r) => [
        splat("halves", "halfSum", r),
        ...stepStarts(layout.offset, `halves${rowName(r)}`, rowName(r)),
      ])
      : [],
    ...joinedHighBits(layout),
    ...products(layout, style, rows),
    ...rows.map((r) => splat("s", "scale", r)),
    ...isStepped ? steppedEpilogue(layout, style, rows) : [
      ...joinedCellScales(layout),
      ...hasMinima ? rows.map((r) => splat("t", "sum", r)) : [],
      ...each(rows, (h, row) => `f${h}${row} = madd(${product(h, row)}, d0_${h}, f${h}${row});`),
      ...hasMinima
        ? each(rows, (h, row) => `f${h}${row} = madd(t${row}, m0_${h}, f${h}${row});`)
        : [],
    ],
    `w += ${layout.cellBytes}; x += 32; scale += 4; sum += 4; halfSum += 4;`,
  ];
}

/** Cells of a turn, or all, or a block of cells under a header. */
function run(layout: WeightLayout, style: JoinedStyle, rows: readonly number[]): string[] {
  const cells = layout.blockColumns / layout.cellColumns;
  if (cells === 1) {
    if (rows.length > 1) return cell(layout, style, rows);
    return [
      `const runEnd = min(scale + ${TURN_SCALES}, end);`,
      "do {",
      ...cell(layout, style, rows),
      "} while (scale < runEnd);",
    ];
  }
  const names = hasStepMinima(layout) ? ["p", "o"] : ["p"];
  return [
    ...joinedHeader(layout),
    `w += ${layout.headerBytes};`,
    ...names.flatMap((name) => each(rows, (h, row) => `let ${name}${h}${row} = f32x4.splat(0);`)),
    `const blockEnd = scale + ${4 * cells};`,
    "do {",
    ...cell(layout, style, rows),
    "} while (scale < blockEnd);",
    ...names.flatMap((name) =>
      each(
        rows,
        (h, row) =>
          `f${h}${row} = madd(${name}${h}${row}, ${name === "p" ? "D" : "E"}${h}, f${h}${row});`,
      )
    ),
  ];
}

/** Statements that store sums of one row, of the tile that it ended with and of the one that waits. */
function storesOfOne(): string[] {
  return [
    seed("out", [["f0", "f1"], ["other_f0", "other_f1"]]),
    ...["", "other_"].flatMap((tile) =>
      HALVES.map((h) => `const ${tile}y${h} = ${inOrder(`${tile}f0`, `${tile}f1`, h)};`)
    ),
    ...turnsStores(HALVES.map((h) => `y${h}`), (sum) => `out + ${sum === "y0" ? 0 : 16}`),
  ];
}

/** Statements that store sums of two rows. */
function storesOfTwo(): string[] {
  return [
    ...each([0, 1], (h, row) => behindLoop(`f${h}${row}`)),
    seed("out", [["f0", "f1"], ["f0_r1", "f1_r1"]]),
    ...each(
      [0, 1],
      (h, row) =>
        `v128.store(out${row ? " + outStride" : ""}, ${inOrder(`f0${row}`, `f1${row}`, h)}, ${
          16 * h
        });`,
    ),
  ];
}

const ONE = "w: usize, apart: usize, x: usize, columns: usize, out: usize, outApart: usize, " +
  "ahead: usize";
const TWO = "w: usize, x: usize, stride: usize, columns: usize, out: usize, outStride: usize, " +
  "ahead: usize";

function kernel(layout: WeightLayout, style: JoinedStyle, rows: readonly number[]): string {
  const isOne = rows.length === 1, sums = each(rows, (h, row) => `f${h}${row}`);
  return [
    `function ${isOne ? "one" : "two"}_${layout.kernel}(${isOne ? ONE : TWO}): void {`,
    ...layout.spareBytes ? [`const spare = ahead ? ahead + ${layout.cellBytes - 1} : 0;`] : [],
    ...isOne ? [] : ["const stride1 = stride;"],
    ...cellConstants(layout, true),
    ...sumsOf(layout, style).constants,
    ...isCentered(layout) ? [offsetConstant(`${-layout.offset}`)] : [],
    ...joinedStepConstants(layout, style),
    ...hasOffsets(layout) && style === "pair" ? ["const PAIRS = v128.load(SPREAD_AT, 192);"] : [],
    "let scale = x + columns, sum = scale + (columns >> 3), halfSum = sum + (columns >> 3);",
    "const end = sum;",
    ...sums.map((sum) => `let ${sum} = f32x4.splat(0);`),
    ...isOne ? turnsStart(sums) : [],
    "do {",
    ...isOne ? ["const start = scale;"] : [],
    ...run(layout, style, rows),
    ...isOne ? turnEnd(sums, ["x -= 8 * done; sum -= done; halfSum -= done;"]) : [],
    "} while (scale < end);",
    ...isOne ? storesOfOne() : storesOfTwo(),
    "}",
  ].join("\n");
}

/**
 * A cell of codes of 8 bit times rows of 16 bits: each load of four weight rows is spread to 16 bits, and has two sums for each
 * of its rows, of two columns of each quad.
 */
function wideCell(layout: WeightLayout, rows: readonly number[]): string[] {
  const quads = [0, 1, 2, 3, 4, 5, 6, 7], fours = ["a", "b"];
  const both = (sum: string, to: string) => `i32x4.add(${sum}, i64x2.${to}(${sum}, 32))`;
  const add = (q: number, row: string) => (four: string) =>
    HALVES.map((h) => {
      const sum = `${four}_${h}${row}`;
      const product = `i32x4.dot_i16x8_s(w${four}${q}_${h}, x${q}${row})`;
      return q ? `${sum} = i32x4.add(${sum}, ${product});` : `let ${sum} = ${product};`;
    });
  return [
    ...layout.spareBytes ? [FETCH] : [],
    ...quads.flatMap((q) => [
      ...fours.flatMap((four, i) => [
        `const ${four}${q} = v128.load(w, ${layout.scaleBytes + 32 * q + 16 * i});`,
        ...HALVES.map((h) =>
          `const w${four}${q}_${h} = ${spread(`${four}${q}`, h, "i16x8", "s")};`
        ),
      ]),
      ...rows.flatMap((r) => {
        const row = rowName(r), two = `two${q & 6}${row}`, at = r ? "wide + 2 * columns" : "wide";
        return [
          ...q & 1 ? [] : [`const ${two} = v128.load(${at} + ${8 * q});`],
          `const x${q}${row} = v128.shuffle<i64>(${two}, ${two}, ${q & 1}, ${q & 1});`,
          ...fours.flatMap(add(q, row)),
        ];
      }),
    ]),
    ...rows.map((r) => splat("s", "scale", r)),
    ...joinedCellScales(layout),
    ...each(rows, (h, row) =>
      `const c${h}${row} = v128.bitselect(` +
      `${both(`a_${h}${row}`, "shr_u")}, ${both(`b_${h}${row}`, "shl")}, EVEN_LANES);`),
    ...each(
      rows,
      (h, row) =>
        `f${h}${row} = madd(f32x4.mul(f32x4.convert_i32x4_s(c${h}${row}), s${row}), d0_${h}, f${h}${row});`,
    ),
    `w += ${layout.cellBytes}; wide += 64; scale += 4;`,
  ];
}

function wideKernel(layout: WeightLayout, rows: readonly number[]): string {
  const cells = layout.blockColumns / layout.cellColumns, isOne = rows.length === 1;
  const sums = each(rows, (h, row) => `f${h}${row}`);
  return [
    `function wide_${isOne ? "one" : "two"}_${layout.kernel}(${
      isOne ? ONE : TWO
    }, wide: usize): void {`,
    "const flip: i32 = 0;",
    ...layout.spareBytes ? [`const spare = ahead ? ahead + ${layout.cellBytes - 1} : 0;`] : [],
    ...isOne ? [] : ["const stride1 = stride;"],
    ...cellConstants(layout, true),
    "const EVEN_LANES = v128.load(EVEN_LANES_AT);",
    "let scale = x + columns;",
    "const end = scale + (columns >> 3);",
    ...sums.map((sum) => `let ${sum} = f32x4.splat(0);`),
    ...isOne ? turnsStart(sums) : [],
    "do {",
    ...isOne ? ["const start = scale;"] : [],
    ...cells === 1 ? [] : [...joinedHeader(layout), `w += ${layout.headerBytes};`],
    `const runEnd = min(scale + ${TURN_SCALES}, end);`,
    "do {",
    ...wideCell(layout, rows),
    "} while (scale < runEnd);",
    ...isOne ? turnEnd(sums, ["wide -= 16 * done;"]) : [],
    "} while (scale < end);",
    ...isOne ? storesOfOne() : storesOfTwo(),
    "}",
  ].join("\n");
}

/** A function that calls the kernel of a layout. */
function dispatch(
  name: string,
  layouts: readonly WeightLayout[],
  parameters: string,
  style?: JoinedStyle,
): string[] {
  const values = parameters.replaceAll(": usize", "");
  return [
    `export function gemv_joined_${name}${
      style ? `_${style}` : ""
    }(layout: u32, ${parameters}): void {`,
    "  switch (layout) {",
    ...layouts.map(({ id, kernel }) => `    case ${id}: ${name}_${kernel}(${values}); return;`),
    "  }",
    "  unreachable();",
    "}",
  ];
}

/** Module `generated/gemv_joined_one_{style}`; two rows by the dot are interleaved (gemv_joined.ts). */
export function gemvJoinedOneModule(style: JoinedStyle): string {
  const counts = style === "pair" ? [[0], [0, 1]] : [[0]], layouts = layoutsOf(style);
  return [
    simdImports(),
    ...layouts.flatMap((layout) => counts.map((rows) => kernel(layout, style, rows))),
    "/** Whether a layout has kernels of rows of bytes. */",
    `export function hasJoinedOne_${style}(layout: u32): bool {`,
    `  return ${layouts.map(({ id }) => `layout == ${id}`).join(" || ")};`,
    "}",
    "/** One row, as gemv (matmul/q8.ts) has it. */",
    ...dispatch("one", layouts, ONE, style),
    ...style === "pair" ? pairDispatch(layouts) : [],
    "",
  ].join("\n");
}

/** Functions that call kernels that only sums of two have: of two rows, and of layouts without kernels of bytes. */
function pairDispatch(layouts: readonly WeightLayout[]): string[] {
  return [
    ...WIDE.flatMap((layout) => [[0], [0, 1]].map((rows) => wideKernel(layout, rows))),
    "/** Whether it has some of rows of 16 bits, which are those of matmul/q16.ts too, scales `columns` bytes behind `x`. */",
    "export function hasJoinedWide(layout: u32): bool {",
    `  return ${WIDE.map(({ id }) => `layout == ${id}`).join(" || ")};`,
    "}",
    "/** Two rows, `stride` apart, times one tile. */",
    ...dispatch("two", layouts, TWO, "pair"),
    "/** One row and two whose codes lie at `wide` as 16 bits, one row after the other. */",
    ...dispatch("wide_one", WIDE, `${ONE}, wide: usize`),
    ...dispatch("wide_two", WIDE, `${TWO}, wide: usize`),
  ];
}
