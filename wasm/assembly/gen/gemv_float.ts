// One float activation row times one tile of eight weight rows. It does what decode_tile.ts and the float
// tiles do for many rows, operation for operation, without storing the decoded weights in between, so a
// row gives the same bits alone and in a batch.
//   y += x[k] · (d · code + m)      the product d · code is exact in every format

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

const FLOATS: readonly string[] = ["F16", "BF16"];

function splat(vector: string, lane: number): string {
  return `v128.shuffle<i32>(${vector}, ${vector}, ${new Array(4).fill(lane).join(", ")})`;
}

function cell(layout: WeightLayout): string[] {
  const lines = [...cellScales(layout), ...cellHighBits(layout)];
  for (let q = 0; q < 8; q++) {
    const g = groupsOf(layout) === 2 ? q >> 2 : 0;
    lines.push(`const X${q} = v128.load(x, ${16 * q});`);
    for (const h of HALVES) lines.push(...codeVector(layout, q, h));
    for (let i = 0; i < 4; i++) {
      lines.push(`const x${q}_${i} = ${splat(`X${q}`, i)};`);
      for (const h of HALVES) {
        const shifted = i ? `i32x4.shr_u(w${q}_${h}, ${8 * i})` : `w${q}_${h}`;
        const byte = i === 3 ? shifted : `v128.and(${shifted}, LOW_BYTE)`;
        const code = `f32x4.convert_i32x4_s(${byte})`;
        lines.push(`f${h} = madd(x${q}_${i}, madd(${code}, d${g}_${h}, m${g}_${h}), f${h});`);
      }
    }
  }
  return [...lines, `w += ${layout.cellBytes}; x += 128;`];
}

function signature(format: string): string {
  return `function gemv_float_${format.toLowerCase()}` +
    "(w: usize, x: usize, columns: usize, out: usize): void {";
}

const BEGIN = "let f0 = v128.load(out), f1 = v128.load(out, 16);";
const END = "v128.store(out, f0); v128.store(out, f1, 16);";

function gemvCodes(layout: WeightLayout): string {
  const cells = layout.blockColumns / layout.cellColumns;
  return [
    signature(layout.format),
    "const flip = 0x80;",
    ...cellConstants(layout),
    "const LOW_BYTE = v128.load(LOW_BYTE_AT);",
    BEGIN,
    "const end = x + (columns << 2);",
    "while (x < end) {",
    ...(cells === 1 ? cell(layout) : [
      ...blockHeader(layout),
      `w += ${layout.headerBytes};`,
      `for (const blockEnd = x + ${4 * layout.blockColumns}; x < blockEnd;) {`,
      ...cell(layout),
      "}",
    ]),
    "}",
    END,
    "}",
  ].join("\n");
}

function gemvFloats(format: string): string {
  const sign = format === "F16" ? "s" : "u";
  const widen = (part: string) => `i32x4.extend_${part}_i16x8_${sign}(h)`;
  const value = (part: string) =>
    format === "F16"
      ? `f32x4.mul(v128.and(i32x4.shl(${widen(part)}, 13), HALF_BITS), HALF_SCALE)`
      : `i32x4.shl(${widen(part)}, 16)`;
  return [
    signature(format),
    "const HALF_BITS = v128.load(HALF_BITS_AT), HALF_SCALE = v128.load(HALF_SCALE_AT);",
    BEGIN,
    "for (const end = x + (columns << 2); x < end; x += 4, w += 16) {",
    "const h = v128.load(w), X = v128.load32_splat(x);",
    `f0 = madd(X, ${value("low")}, f0);`,
    `f1 = madd(X, ${value("high")}, f1);`,
    "}",
    END,
    "}",
  ].join("\n");
}

/** Module `generated/gemv_float`. */
export function gemvFloatModule(): string {
  const coded = WEIGHT_LAYOUTS.filter(({ kind }) => kind === "codes");
  const dispatched = WEIGHT_LAYOUTS.filter(({ kind, format }) =>
    kind === "codes" || FLOATS.includes(format)
  );
  return [
    simdImports(),
    ...coded.map(gemvCodes),
    ...FLOATS.map(gemvFloats),
    "/** Adds eight outputs to `out`; false if the layout has no kernel here. */",
    "export function gemvFloat(layout: u32, w: usize, x: usize, columns: usize, out: usize): bool {",
    "  switch (layout) {",
    ...dispatched.map(({ id, format }) =>
      `    case ${id}: gemv_float_${format.toLowerCase()}(w, x, columns, out); return true;`
    ),
    "  }",
    "  return false;",
    "}",
    "",
  ].join("\n");
}
