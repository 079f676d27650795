// Single columns of some tiles of eight weight rows, times numbers, added to their outputs: what outliers of 8-bit rows
// (quant/q8_activation.ts) add to a product, or, times one and each to outputs of its own, the columns. Entries of a list
// (matmul/outliers.ts) say where, from the start of a tile:
//   the header of the block · the cell · the column in the cell, in the low five bits · the float32 to multiply by
// A column is decoded as float products have it, but that codes of 8 bit stay signed.

import type { WeightLayout } from "../weight_layout.ts";
import { cellConstants } from "./cells.ts";
import { simdImports } from "./imports.ts";
import {
  CODE_LAYOUTS,
  KERNEL_LAYOUTS,
  moreArguments,
  moreParameters,
  TERNARY,
} from "./kernel_layouts.ts";
import { blockHeader, cellScales, groupsOf, HALVES, hasSigns, hasZeros } from "./scales.ts";

/** Layouts whose codes lie by themselves. */
const isDirect = ({ points, kernel }: WeightLayout) => !points && kernel !== TERNARY;

/** Bits that quad `q` has above those in `v`: bit `q` of byte `i` of vector `h` at `at`, as bit `to`. */
function highBit(at: number, h: number, to: number): string {
  const bits = `i32x4.shr_u(v128.load(w, ${at + 16 * h}), i + q)`;
  return `i32x4.shl(v128.and(${bits}, ONE), ${to})`;
}

/** Statements that define n{h}, the codes of column 4q + i / 8 of rows 4h to 4h + 3, as whole numbers. */
function columnCodes({ bits, scaleBytes, table, offset }: WeightLayout, h: number): string[] {
  const load = (step: number, index: string) =>
    `v128.load(w + ${step} * ${index}, ${scaleBytes + 16 * h})`;
  const masked = (vector: string, shift: string, mask: number) =>
    `v128.and(i32x4.shr_u(${vector}, ${shift}), i32x4.splat(${mask}))`;
  if (bits === 8) return [`const n${h} = i32x4.shr_s(i32x4.shl(${load(32, "q")}, 24 - i), 24);`];
  if (bits === 1) {
    return [`const n${h} = ${masked(`v128.load(w, ${scaleBytes + 16 * h})`, "i + q", 1)};`];
  }
  if (bits < 4) {
    const low = masked(load(32, "(q >> 2)"), "i + 2 * (q & 3)", 3);
    const high = highBit(scaleBytes + 64, h, 2);
    return [`const n${h} = ${bits === 2 ? low : `v128.or(${low}, ${high})`};`];
  }
  if (bits === 6) {
    const at = (j: number) => `v128.load(w + 96 * (q >> 2), ${scaleBytes + 32 * j + 16 * h})`;
    const parts = [0, 1, 2].map((j) => `i32x4.shl(${masked(at(j), "i + 6", 3)}, ${4 - 2 * j})`);
    return [
      `let n${h}: v128;`,
      `if ((q & 3) < 3) n${h} = v128.and(i32x4.shr_u(v128.load(w + 96 * (q >> 2) + 32 * (q & 3), ` +
      `${scaleBytes + 16 * h}), i), i32x4.splat(63));`,
      `else n${h} = v128.or(${parts[0]}, v128.or(${parts[1]}, ${parts[2]}));`,
    ];
  }
  const vector = load(32, "(q & 3)"), shift = "i + (q & 4)";
  const nibble = masked(vector, shift, 15);
  if (table === "iq4" && offset === 128) {
    const looked = `lookUp(TABLE, ${nibble})`;
    return [`const n${h} = i32x4.shr_s(i32x4.shl(${looked}, 24), 24);`];
  }
  if (table) return [`const n${h} = v128.and(lookUp(TABLE, ${nibble}), i32x4.splat(255));`];
  const high = highBit(scaleBytes + 128, h, 4);
  return [`const n${h} = ${bits === 4 ? nibble : `v128.or(${nibble}, ${high})`};`];
}

/** A statement that adds a column times x to the outputs of half `h`. */
function product(layout: WeightLayout, h: number): string {
  const isTwo = groupsOf(layout) === 2;
  const scale = (name: string) =>
    isTwo ? `v128.bitselect(${name}1_${h}, ${name}0_${h}, second)` : `${name}0_${h}`;
  const n = `f32x4.convert_i32x4_s(n${h})`, d = scale("d");
  const number = hasSigns(layout)
    ? `f32x4.mul(v128.bitselect(f32x4.neg(${scale("m")}), ${d}, i32x4.lt_s(n${h}, ZERO)), ${n})`
    : hasZeros(layout)
    ? `f32x4.mul(f32x4.add(${n}, ${scale("z")}), ${d})`
    : `f32x4.add(f32x4.mul(${n}, ${d}), ${scale("m")})`;
  return `v128.store(to, madd(${number}, x, v128.load(to, ${16 * h})), ${16 * h});`;
}

function kernel(layout: WeightLayout): string {
  const beside = hasZeros(layout) ? "zero" : "minimum";
  return [
    `/** ${layout.kernel}. */`,
    `function add_${layout.kernel}(${PARAMETERS}${moreParameters(layout)}): void {`,
    "const flip: i32 = 0, ONE = i32x4.splat(1), ZERO = i32x4.splat(0);",
    ...cellConstants(layout, true),
    "for (; list < end; list += 16, out += apart) {",
    "const column = load<i32>(list, 8), q = <usize>(column & 31) >> 2, i = 8 * (column & 3);",
    "const x = v128.load32_splat(list, 12);",
    ...groupsOf(layout) === 2 ? ["const second = i32x4.splat(column & 16 ? -1 : 0);"] : [],
    "let header = tile + <usize>load<u32>(list), cell = tile + <usize>load<u32>(list, 4);",
    "for (let to = out, last = out + 32 * tiles; to < last; to += 32, header += tileBytes, cell += tileBytes) {",
    ...layout.headerBytes
      ? ["let w = header;", ...blockHeader(layout, beside), "w = cell;"]
      : ["const w = cell;"],
    ...cellScales(layout, beside),
    ...HALVES.flatMap((h) => columnCodes(layout, h)),
    ...HALVES.map((h) => product(layout, h)),
    "}",
    "}",
    "}",
  ].join("\n");
}

const PARAMETERS =
  "tile: usize, tileBytes: usize, tiles: usize, list: usize, end: usize, out: usize, apart: usize";
const ARGUMENTS = "tile, tileBytes, tiles, list, end, out, apart";

/** Module `generated/columns`. */
export function columnsModule(): string {
  return [
    simdImports(),
    ...KERNEL_LAYOUTS.filter(isDirect).map(kernel),
    "/**",
    " * Adds the columns of a list to the outputs of tiles from `tile` on, eight each; those of an entry are `apart` bytes behind",
    " * those of the one before. False where codes have to be unpacked for that.",
    " */",
    `export function addColumns(layout: u32, ${PARAMETERS}, columns: usize): bool {`,
    "  switch (layout) {",
    ...CODE_LAYOUTS.filter(isDirect).map((layout) =>
      `    case ${layout.id}: add_${layout.kernel}(${ARGUMENTS}${
        moreArguments(layout)
      }); return true;`
    ),
    "  }",
    "  return false;",
    "}",
    "",
  ].join("\n");
}
