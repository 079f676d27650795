// One row times one tile of packed weights or two in turns, or two rows times one, in text that V8 joins to 256 bits
// (joined_lanes.ts), of codes below 8 bit, by sums of two. The order of float operations is that of gemv.ts. Codes of 8 bit gain
// nothing with one row, whose both signs would have to be put in both halves of a vector; and two rows, interleaved as 16 bits, are
// more than the nearest cache holds beside a tile out of memory, as is whatever two rows are there twice (bench/results/kernels.md).

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
import { dotsOf } from "./dots.ts";
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
} from "./joined_lanes.ts";
import { behindLoop, HALVES, laneSplat, seed, spread } from "./planes.ts";
import { groupsOf } from "./scales.ts";
import { hasOffsets, hasStepMinima, hasSteps, stepSum } from "./steps.ts";
import { TURN_SCALES, turnEnd, turnsStart, turnsStores } from "./turns.ts";

const LAYOUTS = JOINED_LAYOUTS.filter((layout) => factorBits(layout) < 8);

/** A line for each half of each row, whose names end with that of the row. */
function each(rows: readonly number[], line: (h: number, row: string) => string): string[] {
  return rows.flatMap((r) => HALVES.map((h) => line(h, rowName(r))));
}

/** A statement that defines {name}{row}, what lies at `at` for row `r`, in all lanes. */
function splat(name: string, at: string, r: number): string {
  return `const ${name}${rowName(r)} = v128.load32_splat(${ofRow(at, r)});`;
}

/** Sums of products of a cell, c{h}{row}. */
function products(layout: WeightLayout, rows: readonly number[]): string[] {
  const groups = groupsOf(layout), order = quadOrder(layout), all = order.length / groups;
  const dots = dotsOf("pair", factorBits(layout));
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
        ...joinedCodes(layout, q),
        ...rows.map(rowName).flatMap((row) => [
          `const x${q}${row} = ${laneSplat((q < 4 ? "low" : "high") + row, q & 3)};`,
          ...HALVES.flatMap((h) =>
            dots.add(`c${h}${row}`, `x${q}${row}`, `w${q}_${h}`, i % all, all, {
              by: hasSteps(layout) ? `S${g}_${h}` : "ONES",
              goesOn: g > 0,
              from: isCentered(layout) ? `z${row}` : "ZERO",
            })
          ),
        ]),
      ];
    }),
  ];
}

/** What a cell whose scales are steps adds to sums of its block. */
function steppedEpilogue(layout: WeightLayout, rows: readonly number[]): string[] {
  const { offset } = layout, bits = factorBits(layout), hasMinima = hasStepMinima(layout);
  const sum = (h: number, row: string) => {
    const offsets = hasMinima ? undefined : { offset, pairs: `P${h}`, halves: `halves${row}` };
    return stepSum([`c${h}${row}`], { style: "pair", bits, steps: [], offsets });
  };
  return [
    ...hasMinima ? joinedMinima("steps") : [
      "const P = lookUp(steps, PAIRS);",
      ...HALVES.map((h) => `const P${h} = ${spread("P", h, "i16x8", "s")};`),
    ],
    ...rows.map((r) => hasMinima ? splat("t", "sum", r) : splat("halves", "halfSum", r)),
    ...each(rows, (h, row) => `p${h}${row} = madd(${sum(h, row)}, s${row}, p${h}${row});`),
    ...hasMinima ? each(rows, (h, row) => `o${h}${row} = madd(M${h}, t${row}, o${h}${row});`) : [],
  ];
}

function cell(layout: WeightLayout, rows: readonly number[]): string[] {
  const isStepped = hasSteps(layout);
  const hasMinima = addsMinima(layout, true) && !isCentered(layout);
  const product = (h: number, row: string) =>
    `f32x4.mul(f32x4.convert_i32x4_s(c${h}${row}), s${row})`;
  return [
    ...layout.spareBytes ? [FETCH] : [],
    ...isStepped ? joinedSteps(layout) : [],
    ...joinedHighBits(layout),
    ...products(layout, rows),
    ...rows.map((r) => splat("s", "scale", r)),
    ...isStepped ? steppedEpilogue(layout, rows) : [
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
function run(layout: WeightLayout, rows: readonly number[]): string[] {
  const cells = layout.blockColumns / layout.cellColumns;
  if (cells === 1) {
    if (rows.length > 1) return cell(layout, rows);
    return [
      `const runEnd = min(scale + ${TURN_SCALES}, end);`,
      "do {",
      ...cell(layout, rows),
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
    ...cell(layout, rows),
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

function kernel(layout: WeightLayout, rows: readonly number[]): string {
  const isOne = rows.length === 1, sums = each(rows, (h, row) => `f${h}${row}`);
  return [
    `function ${isOne ? "one" : "two"}_${layout.kernel}(${isOne ? ONE : TWO}): void {`,
    ...layout.spareBytes ? [`const spare = ahead ? ahead + ${layout.cellBytes - 1} : 0;`] : [],
    ...isOne ? [] : ["const stride1 = stride;"],
    ...cellConstants(layout, true),
    ...dotsOf("pair", factorBits(layout)).constants,
    ...isCentered(layout) ? [offsetConstant(`${-layout.offset}`)] : [],
    ...joinedStepConstants(layout),
    ...hasOffsets(layout) ? ["const PAIRS = v128.load(SPREAD_AT, 192);"] : [],
    "let scale = x + columns, sum = scale + (columns >> 3), halfSum = sum + (columns >> 3);",
    "const end = sum;",
    ...sums.map((sum) => `let ${sum} = f32x4.splat(0);`),
    ...isOne ? turnsStart(sums) : [],
    "do {",
    ...isOne ? ["const start = scale;"] : [],
    ...run(layout, rows),
    ...isOne ? turnEnd(sums, ["x -= 8 * done; sum -= done; halfSum -= done;"]) : [],
    "} while (scale < end);",
    ...isOne ? storesOfOne() : storesOfTwo(),
    "}",
  ].join("\n");
}

/** Functions that call the kernel of a layout. */
function dispatch(name: string, parameters: string): string[] {
  const values = parameters.replaceAll(": usize", "");
  return [
    `export function gemv_joined_${name}(layout: u32, ${parameters}): void {`,
    "  switch (layout) {",
    ...LAYOUTS.map(({ id, kernel }) => `    case ${id}: ${name}_${kernel}(${values}); return;`),
    "  }",
    "  unreachable();",
    "}",
  ];
}

/** Module `generated/gemv_joined_one`. */
export function gemvJoinedOneModule(): string {
  return [
    simdImports(),
    ...LAYOUTS.flatMap((layout) => [[0], [0, 1]].map((rows) => kernel(layout, rows))),
    "/** Whether a layout has these kernels. */",
    "export function hasJoinedOne(layout: u32): bool {",
    `  return ${LAYOUTS.map(({ id }) => `layout == ${id}`).join(" || ")};`,
    "}",
    "/** One row, as gemv (matmul/q8.ts) has it. */",
    ...dispatch("one", ONE),
    "/** Two rows, `stride` apart, times one tile. */",
    ...dispatch("two", TWO),
    "",
  ].join("\n");
}
