// One row times one tile of packed weights or two in turns, in text that V8 joins to 256 bits (joined_lanes.ts), of codes below 8
// bit, by sums of two. The order of float operations is that of gemv.ts. Codes of 8 bit gain nothing: both signs of
// activations would have to be put in both halves of a vector.

import { factorBits, type WeightLayout } from "../weight_layout.ts";
import {
  addsMinima,
  cellConstants,
  isCentered,
  offsetConstant,
  quadOrder,
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
import { HALVES, laneSplat, seed, spread } from "./planes.ts";
import { groupsOf } from "./scales.ts";
import { hasOffsets, hasStepMinima, hasSteps, stepSum } from "./steps.ts";
import { TURN_SCALES, turnEnd, turnsStart, turnsStores } from "./turns.ts";

const LAYOUTS = JOINED_LAYOUTS.filter((layout) => factorBits(layout) < 8);
const SUMS: readonly string[] = HALVES.map((h) => `f${h}`);

/** Sums of products of a cell, c{h}. */
function products(layout: WeightLayout): string[] {
  const groups = groupsOf(layout), order = quadOrder(layout), all = order.length / groups;
  const dots = dotsOf("pair", factorBits(layout));
  return [
    ...isCentered(layout) ? [`const z = ${startOf("v128.load32_splat(halfSum)")};`] : [],
    "const low = v128.load(x), high = v128.load(x + 16);",
    ...order.flatMap((q, i) => {
      const g = groups === 2 ? q >> 2 : 0;
      return [
        `const x${q} = ${laneSplat(q < 4 ? "low" : "high", q & 3)};`,
        ...joinedCodes(layout, q),
        ...HALVES.flatMap((h) =>
          dots.add(`c${h}`, `x${q}`, `w${q}_${h}`, i % all, all, {
            by: hasSteps(layout) ? `S${g}_${h}` : "ONES",
            goesOn: g > 0,
            from: isCentered(layout) ? "z" : "ZERO",
          })
        ),
      ];
    }),
  ];
}

/** What a cell whose scales are steps adds to sums of its block. */
function steppedEpilogue(layout: WeightLayout): string[] {
  const { offset } = layout, bits = factorBits(layout), hasMinima = hasStepMinima(layout);
  const sum = (h: number) => {
    const offsets = hasMinima ? undefined : { offset, pairs: `P${h}`, halves: "halves" };
    return stepSum([`c${h}`], { style: "pair", bits, steps: [], offsets });
  };
  return [
    ...hasMinima ? ["const t = v128.load32_splat(sum);", ...joinedMinima("steps")] : [
      "const halves = v128.load32_splat(halfSum), P = lookUp(steps, PAIRS);",
      ...HALVES.map((h) => `const P${h} = ${spread("P", h, "i16x8", "s")};`),
    ],
    ...HALVES.flatMap((h) => [
      `p${h} = madd(${sum(h)}, s, p${h});`,
      ...hasMinima ? [`o${h} = madd(M${h}, t, o${h});`] : [],
    ]),
  ];
}

function cell(layout: WeightLayout): string[] {
  const isStepped = hasSteps(layout);
  const hasMinima = addsMinima(layout, true) && !isCentered(layout);
  return [
    ...layout.spareBytes ? [FETCH] : [],
    ...isStepped ? joinedSteps(layout) : [],
    ...joinedHighBits(layout),
    ...products(layout),
    "const s = v128.load32_splat(scale);",
    ...isStepped ? steppedEpilogue(layout) : [
      ...joinedCellScales(layout),
      ...hasMinima ? ["const t = v128.load32_splat(sum);"] : [],
      ...HALVES.flatMap((h) => [
        `f${h} = madd(f32x4.mul(f32x4.convert_i32x4_s(c${h}), s), d0_${h}, f${h});`,
        ...hasMinima ? [`f${h} = madd(t, m0_${h}, f${h});`] : [],
      ]),
    ],
    `w += ${layout.cellBytes}; x += 32; scale += 4; sum += 4; halfSum += 4;`,
  ];
}

/** Cells of a turn, or a block of cells under a header. */
function run(layout: WeightLayout): string[] {
  const cells = layout.blockColumns / layout.cellColumns;
  if (cells === 1) {
    return [
      `const runEnd = min(scale + ${TURN_SCALES}, end);`,
      "do {",
      ...cell(layout),
      "} while (scale < runEnd);",
    ];
  }
  const names = hasStepMinima(layout) ? ["p", "o"] : ["p"];
  return [
    ...joinedHeader(layout),
    `w += ${layout.headerBytes};`,
    ...names.flatMap((name) => HALVES.map((h) => `let ${name}${h} = f32x4.splat(0);`)),
    `const blockEnd = scale + ${4 * cells};`,
    "do {",
    ...cell(layout),
    "} while (scale < blockEnd);",
    ...names.flatMap((name) =>
      HALVES.map((h) => `f${h} = madd(${name}${h}, ${name === "p" ? "D" : "E"}${h}, f${h});`)
    ),
  ];
}

const PARAMETERS = "w: usize, apart: usize, x: usize, columns: usize, out: usize, " +
  "outApart: usize, ahead: usize";

function kernel(layout: WeightLayout): string {
  return [
    `function one_${layout.kernel}(${PARAMETERS}): void {`,
    ...layout.spareBytes ? [`const spare = ahead ? ahead + ${layout.cellBytes - 1} : 0;`] : [],
    ...cellConstants(layout, true),
    ...dotsOf("pair", factorBits(layout)).constants,
    ...isCentered(layout) ? [offsetConstant(`${-layout.offset}`)] : [],
    ...joinedStepConstants(layout),
    ...hasOffsets(layout) ? ["const PAIRS = v128.load(SPREAD_AT, 192);"] : [],
    "let scale = x + columns, sum = scale + (columns >> 3), halfSum = sum + (columns >> 3);",
    "const end = sum;",
    ...SUMS.map((sum) => `let ${sum} = f32x4.splat(0);`),
    ...turnsStart(SUMS),
    "do {",
    "const start = scale;",
    ...run(layout),
    ...turnEnd(SUMS, ["x -= 8 * done; sum -= done; halfSum -= done;"]),
    "} while (scale < end);",
    seed("out", [["f0", "f1"], ["other_f0", "other_f1"]]),
    ...["", "other_"].flatMap((tile) =>
      HALVES.map((h) => `const ${tile}y${h} = ${inOrder(`${tile}f0`, `${tile}f1`, h)};`)
    ),
    ...turnsStores(HALVES.map((h) => `y${h}`), (sum) => `out + ${sum === "y0" ? 0 : 16}`),
    "}",
  ].join("\n");
}

/** Module `generated/gemv_joined_one`. */
export function gemvJoinedOneModule(): string {
  return [
    simdImports(),
    ...LAYOUTS.map(kernel),
    "/** Whether a layout has these kernels. */",
    "export function hasJoinedOne(layout: u32): bool {",
    `  return ${LAYOUTS.map(({ id }) => `layout == ${id}`).join(" || ")};`,
    "}",
    "/** Calls the kernel of a layout. */",
    `export function gemv_joined_one(layout: u32, ${PARAMETERS}): void {`,
    "  switch (layout) {",
    ...LAYOUTS.map(({ id, kernel }) =>
      `    case ${id}: one_${kernel}(w, apart, x, columns, out, outApart, ahead); return;`
    ),
    "  }",
    "  unreachable();",
    "}",
    "",
  ].join("\n");
}
