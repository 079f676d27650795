// Takes a run of columns of one tile apart for kernels that use it many times: code vectors, and scales
// and minima (or zeros, `exact`) as float32. The same panel serves the integer tiles and, converted, the float
// ones.
//   codes:  quad after quad, two vectors each, `codeStride` apart
//   scales: group after group, d0 d1 m0 m1 (vectors), `scaleStride` apart
//           of layouts with steps (steps.ts), unless `exact`: cell after cell S0_0 S0_1, then M0 M1 or S1_0 S1_1 (as floats,
//           if `wide`, as all styles but `pair` have them), and behind
//           the cells of a block D0 D1 and, with minima, E0 E1
// TQ1_0 comes in whole blocks.
// With strides of 64 and 128 two tiles lie side by side. A run begins at a block, or within one whose header
// is somewhere else.

import type { WeightLayout } from "../weight_layout.ts";
import { cellConstants, cellHighBits, codeVector } from "./cells.ts";
import { simdImports } from "./imports.ts";
import {
  cellLoop,
  CODE_LAYOUTS,
  KERNEL_LAYOUTS,
  moreArguments,
  moreParameters,
  TERNARY,
} from "./kernel_layouts.ts";
import { pointConstants, storePoints } from "./point_cells.ts";
import { blockHeader, cellScales, groupsOf, HALVES } from "./scales.ts";
import { hasStepMinima, hasSteps, stepConstants, stepScales } from "./steps.ts";

function storeAll(names: readonly string[]): string[] {
  return [
    ...names.map((name, i) => `v128.store(scales, ${name}, ${16 * i});`),
    "scales += scaleStride;",
  ];
}

/** Steps as 16 bits, twice a row, or, `wide`, as floats. */
function steppedScales(layout: WeightLayout): string[] {
  const hasMinima = hasStepMinima(layout),
    steps = ["S0_0", "S0_1", ...hasMinima ? [] : ["S1_0", "S1_1"]];
  return [
    ...stepScales(layout, "pair"),
    "if (wide) {",
    ...steps.map((name, i) =>
      `v128.store(scales, f32x4.convert_i32x4_s(i32x4.shr_s(${name}, 16)), ${16 * i});`
    ),
    "} else {",
    ...steps.map((name, i) => `v128.store(scales, ${name}, ${16 * i});`),
    "}",
    ...hasMinima ? HALVES.map((h) => `v128.store(scales, M${h}, ${32 + 16 * h});`) : [],
    "scales += scaleStride;",
  ];
}

function cell(layout: WeightLayout, stepped: boolean): string[] {
  const lines = stepped ? steppedScales(layout) : [...cellScales(layout, "either")];
  if (!stepped) {
    for (let g = 0; g < groupsOf(layout); g++) {
      lines.push(...storeAll(["d", "m"].flatMap((name) => HALVES.map((h) => `${name}${g}_${h}`))));
    }
  }
  if (layout.points) return [...lines, ...storePoints(layout), `w += ${layout.cellBytes};`];
  lines.push(...cellHighBits(layout));
  for (let q = 0; q < 8; q++) {
    for (const h of HALVES) {
      lines.push(...codeVector(layout, q, h), `v128.store(codes, w${q}_${h}, ${16 * h});`);
    }
    lines.push("codes += codeStride;");
  }
  return [...lines, `w += ${layout.cellBytes};`];
}

const PARAMETERS = "columns: usize, codes: usize, codeStride: usize, scales: usize, " +
  "scaleStride: usize, flip: i32, exact: bool, wide: bool";
const ARGUMENTS = "columns, codes, codeStride, scales, scaleStride, flip, exact, wide";

function unpack(layout: WeightLayout, stepped = false): string {
  const [loop, end] = cellLoop(layout, "left");
  const withHeader = [
    "const cell = w;",
    "w = header;",
    ...blockHeader(layout, "either"),
    `w = cell == header ? w + ${layout.headerBytes} : cell;`,
  ];
  return [
    `/** ${layout.kernel}. */`,
    `function unpack_${layout.kernel}${stepped ? "_steps" : ""}` +
    `(header: usize, w: usize, ${PARAMETERS}${moreParameters(layout)}): void {`,
    ...layout.points ? pointConstants(layout) : cellConstants(layout),
    ...stepped ? stepConstants(layout, "pair") : [],
    "let left = (columns + 31) >> 5;",
    "while (left) {",
    ...(layout.headerBytes ? withHeader : []),
    loop,
    ...cell(layout, stepped),
    "left--;",
    end,
    ...stepped ? storeAll(hasStepMinima(layout) ? ["D0", "D1", "E0", "E1"] : ["D0", "D1"]) : [],
    "header = w;",
    "}",
    "}",
  ].join("\n");
}

/** The call for integer kernels of a layout with steps, before that for all else. */
function steppedCall(layout: WeightLayout): string {
  if (!hasSteps(layout)) return "";
  return `if (!exact) { unpack_${layout.kernel}_steps(header, w, ${ARGUMENTS}); return; } `;
}

/** Module `generated/unpack`. */
export function unpackModule(): string {
  return [
    simdImports(),
    'import { unpackTernary } from "../matmul/ternary";',
    ...KERNEL_LAYOUTS.filter(({ kernel }) => kernel !== TERNARY).map((layout) => unpack(layout)),
    ...KERNEL_LAYOUTS.filter(hasSteps).map((layout) => unpack(layout, true)),
    "/** `columns` columns from `w`, a cell or the header in front of it; `flip` see matmul/q8.ts. */",
    `export function unpack(layout: u32, header: usize, w: usize, ${PARAMETERS}): void {`,
    "  switch (layout) {",
    ...CODE_LAYOUTS.map((layout) =>
      layout.kernel === TERNARY
        ? `    case ${layout.id}: unpackTernary(header, columns, codes, codeStride, scales, scaleStride); return;`
        : `    case ${layout.id}: ${steppedCall(layout)}unpack_${layout.kernel}` +
          `(header, w, ${ARGUMENTS}${moreArguments(layout)}); return;`
    ),
    "  }",
    "  unreachable();",
    "}",
    "",
  ].join("\n");
}
