// Activation rows of 16 bit (quant/q16_activation.ts) times one tile of eight weight rows, or two, whose codes are signed bytes:
//   for each cell of 32 columns: y += d · (s · Σ code · q)
// Codes are widened to 16 bits and multiplied as such, in pairs of columns, which costs what 8-bit activations cost where a
// processor has no dot product of bytes; where it has one, such a matrix waits for memory. All processors give the same
// integers, and a row has the same bits alone and among others.

import { isSignedBytes, type WeightLayout } from "../weight_layout.ts";
import { cellConstants, codeVector } from "./cells.ts";
import { simdImports } from "./imports.ts";
import {
  CODE_LAYOUTS,
  KERNEL_LAYOUTS,
  moreArguments,
  moreParameters,
  takesBlock,
} from "./kernel_layouts.ts";
import { blockHeader, cellScales, HALVES } from "./scales.ts";
import { TURN_SCALES, turnEnd, turnsStart, turnsStores } from "./turns.ts";

/** Activation rows of a kernel, most first. */
const HEIGHTS: readonly number[] = [4, 1];

const range = (count: number): number[] => [...Array(count).keys()];

function quad(layout: WeightLayout, rows: readonly number[], q: number, h: number): string[] {
  const lines = [...codeVector(layout, q, h, true)];
  ["low", "high"].forEach((part, p) => {
    lines.push(`const v${q}_${h}_${p} = i16x8.extend_${part}_i8x16_s(w${q}_${h});`);
  });
  for (const r of rows) {
    // Of one row all quads are loaded once for both halves.
    const isNew = h === 0 || rows.length > 1;
    if (isNew) lines.push(`const x${q}_${r}_${h} = v128.load64_splat(x${r}, ${8 * q});`);
    const x = `x${q}_${r}_${isNew ? h : 0}`;
    for (const p of [0, 1]) {
      const c = `c${r}_${h}_${p}`, product = `i32x4.dot_i16x8_s(v${q}_${h}_${p}, ${x})`;
      lines.push(q === 0 ? `let ${c} = ${product};` : `${c} = i32x4.add(${c}, ${product});`);
    }
  }
  return lines;
}

/** The sums of a half: two lanes for each of its rows become one, and a float. */
function sums(rows: readonly number[], h: number): string[] {
  return rows.flatMap((r) => {
    const [a, b] = [`c${r}_${h}_0`, `c${r}_${h}_1`];
    const all =
      `i32x4.add(v128.shuffle<i32>(${a}, ${b}, 0, 2, 4, 6), v128.shuffle<i32>(${a}, ${b}, 1, 3, 5, 7))`;
    return `f${r}_${h} = madd(f32x4.mul(f32x4.convert_i32x4_s(${all}), s${r}), d0_${h}, f${r}_${h});`;
  });
}

function cell(layout: WeightLayout, rows: readonly number[]): string[] {
  const scales = [
    ...cellScales(layout, "minimum"),
    ...rows.map((r) => `const s${r} = v128.load32_splat(scale + ${r} * stride);`),
  ];
  const products = rows.length === 1
    ? [
      ...range(8).flatMap((q) => HALVES.flatMap((h) => quad(layout, rows, q, h))),
      ...scales,
      ...HALVES.flatMap((h) => sums(rows, h)),
    ]
    : [
      ...scales,
      ...HALVES.flatMap((h) => [
        ...range(8).flatMap((q) => quad(layout, rows, q, h)),
        ...sums(rows, h),
      ]),
    ];
  const next = rows.map((r) => `x${r} += 64;`).join(" ");
  return [...products, `w += ${layout.cellBytes}; scale += 4; ${next}`];
}

function tile(layout: WeightLayout, height: number): string {
  const rows = range(height),
    isOne = height === 1,
    cells = layout.blockColumns / layout.cellColumns;
  const sums = rows.flatMap((r) => HALVES.map((h) => `f${r}_${h}`));
  const to = (sum: string) => `out + ${sum[1]} * outStride + ${16 * Number(sum[3])}`;
  const body = cells === 1
    ? [
      `const runEnd = min(scale + ${TURN_SCALES}, end);`,
      "do {",
      ...cell(layout, rows),
      "} while (scale < runEnd);",
    ]
    : [
      ...blockHeader(layout, "minimum"),
      `w += ${layout.headerBytes};`,
      takesBlock(layout)
        ? "const blockEnd = min(scale + (block >> 3), end);"
        : `const blockEnd = scale + ${4 * cells};`,
      "do {",
      ...cell(layout, rows),
      "} while (scale < blockEnd);",
    ];
  return [
    `function tile_q16_${layout.kernel}_${height}(w: usize, ${
      isOne ? "apart: usize, " : ""
    }x: usize, stride: usize, columns: usize, ` +
    `out: usize, ${isOne ? "outApart: usize, " : ""}outStride: usize${
      moreParameters(layout)
    }): void {`,
    // Codes are multiplied as they lie; minima that would undo a flip are not read.
    "const flip: i32 = 0;",
    ...cellConstants(layout, true),
    ...rows.map((r) => `let x${r} = x + ${r} * stride;`),
    "let scale = x + 2 * columns;",
    "const end = scale + (columns >> 3);",
    ...sums.map((sum) => `let ${sum} = f32x4.splat(0);`),
    ...isOne ? turnsStart(sums) : [],
    "do {",
    ...isOne ? ["const start = scale;"] : [],
    ...body,
    ...isOne ? turnEnd(sums, ["x0 -= 16 * done;"]) : [],
    "} while (scale < end);",
    ...isOne ? turnsStores(sums, to) : sums.map((sum) => `v128.store(${to(sum)}, ${sum});`),
    "}",
  ].join("\n");
}

function dispatch(): string {
  return [
    "/** Any number of rows times one tile: eight outputs of each; one row times two (turns.ts), where `apart` is not 0. */",
    "export function tiles_q16(layout: u32, rows: u32, w: usize, apart: usize, x: usize, stride: usize, columns: usize, " +
    "out: usize, outApart: usize, outStride: usize): void {",
    "  switch (layout) {",
    ...CODE_LAYOUTS.filter(isSignedBytes).flatMap((layout) => [
      `    case ${layout.id}:`,
      ...HEIGHTS.map((height) =>
        `      for (; rows >= ${height}; rows -= ${height}, x += ${height} * stride, out += ${height} * outStride) ` +
        `tile_q16_${layout.kernel}_${height}(w, ${
          height === 1 ? "apart, " : ""
        }x, stride, columns, out, ${height === 1 ? "outApart, " : ""}outStride${
          moreArguments(layout)
        });`
      ),
      "      return;",
    ]),
    "  }",
    "  unreachable();",
    "}",
  ].join("\n");
}

/** Module `generated/tiles_q16`. */
export function tilesQ16Module(): string {
  return [
    simdImports(),
    ...KERNEL_LAYOUTS.filter(isSignedBytes).flatMap((layout) =>
      HEIGHTS.map((height) => tile(layout, height))
    ),
    dispatch(),
    "",
  ].join("\n");
}
