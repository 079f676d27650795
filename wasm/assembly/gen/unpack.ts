// Takes a run of columns of one tile apart for kernels that use it many times: code vectors, and scales
// and minima as float32. The same panel serves the integer tiles and, converted, the float ones.
//   codes:  quad after quad, two vectors each, `codeStride` apart
//   scales: group after group, d0 d1 m0 m1 (vectors), `scaleStride` apart
// With strides of 64 and 128 two tiles lie side by side.

import { WEIGHT_LAYOUTS, type WeightLayout } from "../../weight_layout.ts";
import {
  blockHeader,
  cellConstants,
  cellHighBits,
  cellScales,
  codeVector,
  groupsOf,
  HALVES,
} from "./cells.ts";
import { simdImports } from "./imports.ts";

function cell(layout: WeightLayout): string[] {
  const lines = [...cellScales(layout)];
  for (let g = 0; g < groupsOf(layout); g++) {
    ["d", "m"].forEach((name, i) =>
      HALVES.forEach((h) => lines.push(`v128.store(scales, ${name}${g}_${h}, ${32 * i + 16 * h});`))
    );
    lines.push("scales += scaleStride;");
  }
  lines.push(...cellHighBits(layout));
  for (let q = 0; q < 8; q++) {
    for (const h of HALVES) {
      lines.push(...codeVector(layout, q, h), `v128.store(codes, w${q}_${h}, ${16 * h});`);
    }
    lines.push("codes += codeStride;");
  }
  return [...lines, `w += ${layout.cellBytes};`];
}

function unpack(layout: WeightLayout): string {
  const cells = layout.blockColumns / layout.cellColumns;
  return [
    `/** ${layout.format}. */`,
    `function unpack_${layout.format.toLowerCase()}(w: usize, columns: usize, codes: usize, ` +
    "codeStride: usize, scales: usize, scaleStride: usize, flip: i32): void {",
    ...cellConstants(layout),
    `for (let block: usize = 0; block < columns; block += ${layout.blockColumns}) {`,
    ...blockHeader(layout),
    ...(cells === 1 ? cell(layout) : [
      `w += ${layout.headerBytes};`,
      `for (let cell = 0; cell < ${cells}; cell++) {`,
      ...cell(layout),
      "}",
    ]),
    "}",
    "}",
  ].join("\n");
}

/** Module `generated/unpack`. */
export function unpackModule(): string {
  const layouts = WEIGHT_LAYOUTS.filter(({ kind }) => kind === "codes");
  return [
    simdImports(),
    ...layouts.map(unpack),
    "/** `columns` columns from `w`, the start of a block; `flip` see matmul_q8.ts. */",
    "export function unpack(layout: u32, w: usize, columns: usize, codes: usize, codeStride: usize,",
    "    scales: usize, scaleStride: usize, flip: i32): void {",
    "  switch (layout) {",
    ...layouts.map(({ id, format }) =>
      `    case ${id}: unpack_${format.toLowerCase()}` +
      "(w, columns, codes, codeStride, scales, scaleStride, flip); return;"
    ),
    "  }",
    "  unreachable();",
    "}",
    "",
  ].join("\n");
}
