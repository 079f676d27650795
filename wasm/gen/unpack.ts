// Takes a run of columns of one tile apart for kernels that use it many times: code vectors, and scales
// and minima (or zeros, `exact`) as float32. The same panel serves the integer tiles and, converted, the float
// ones.
//   codes:  quad after quad, two vectors each, `codeStride` apart
//   scales: group after group, d0 d1 m0 m1 (vectors), `scaleStride` apart
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

function cell(layout: WeightLayout): string[] {
  const lines = [...cellScales(layout, "either")];
  for (let g = 0; g < groupsOf(layout); g++) {
    ["d", "m"].forEach((name, i) =>
      HALVES.forEach((h) => lines.push(`v128.store(scales, ${name}${g}_${h}, ${32 * i + 16 * h});`))
    );
    lines.push("scales += scaleStride;");
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
  "scaleStride: usize, flip: i32, exact: bool";
const ARGUMENTS = "columns, codes, codeStride, scales, scaleStride, flip, exact";

function unpack(layout: WeightLayout): string {
  const [loop, end] = cellLoop(layout, "left");
  const withHeader = [
    "const cell = w;",
    "w = header;",
    ...blockHeader(layout, "either"),
    `w = cell == header ? w + ${layout.headerBytes} : cell;`,
  ];
  return [
    `/** ${layout.kernel}. */`,
    `function unpack_${layout.kernel}` +
    `(header: usize, w: usize, ${PARAMETERS}${moreParameters(layout)}): void {`,
    ...layout.points ? pointConstants(layout) : cellConstants(layout),
    "let left = (columns + 31) >> 5;",
    "while (left) {",
    ...(layout.headerBytes ? withHeader : []),
    loop,
    ...cell(layout),
    "left--;",
    end,
    "header = w;",
    "}",
    "}",
  ].join("\n");
}

/** Module `generated/unpack`. */
export function unpackModule(): string {
  return [
    simdImports(),
    'import { unpackTernary } from "../matmul/ternary";',
    ...KERNEL_LAYOUTS.filter(({ kernel }) => kernel !== TERNARY).map(unpack),
    "/** `columns` columns from `w`, a cell or the header in front of it; `flip` see matmul/q8.ts. */",
    `export function unpack(layout: u32, header: usize, w: usize, ${PARAMETERS}): void {`,
    "  switch (layout) {",
    ...CODE_LAYOUTS.map((layout) =>
      layout.kernel === TERNARY
        ? `    case ${layout.id}: unpackTernary(header, columns, codes, codeStride, scales, scaleStride); return;`
        : `    case ${layout.id}: unpack_${layout.kernel}` +
          `(header, w, ${ARGUMENTS}${moreArguments(layout)}); return;`
    ),
    "  }",
    "  unreachable();",
    "}",
    "",
  ].join("\n");
}
