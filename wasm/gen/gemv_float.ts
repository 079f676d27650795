// One float activation row times one tile of eight weight rows, or two. It does what decode_tile.ts and the float
// tiles do for many rows, operation for operation, without storing the decoded weights in between, so a
// row gives the same bits alone and in a batch.
//   y += x[k] · (d · code + m)      the product d · code is exact in every format with minima
//   y += x[k] · (d · (code + z))    and so is the sum code + z
// Two tiles are one after the other here; gen/gemv_float_joined.ts has both at once, for where V8 joins vectors.

import { LAYOUTS_BY_FORMAT, WEIGHT_LAYOUTS, type WeightLayout } from "../weight_layout.ts";
import { cellConstants, cellHighBits, codeVector } from "./cells.ts";
import { gemvHalves, joinedGemv } from "./gemv_float_joined.ts";
import { simdImports } from "./imports.ts";
import {
  CODE_LAYOUTS,
  KERNEL_LAYOUTS,
  moreArguments,
  moreParameters,
  takesBlock,
} from "./kernel_layouts.ts";
import { blockHeader, cellScales, groupsOf, HALVES, hasZeros } from "./scales.ts";

/**
 * Kernels that have one here, those of formats that models come in most often: each is as large as all else that
 * its layout has. Of the others a run of columns is decoded first, as for many rows.
 */
const KERNELS: ReadonlySet<string> = new Set(
  [
    ...["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "NB4", "Q4_K", "Q5_K", "Q6_K"],
    ...["INT4_G128", "I8PC"],
  ].map((format) => LAYOUTS_BY_FORMAT.get(format)!.kernel),
);

/** Those that have one which V8 joins, of which the package shall not be much larger: of two tiles, 1.6 to 1.9 times as fast. */
const JOINED: ReadonlySet<string> = new Set(
  ["Q4_0", "Q8_0", "NB4", "Q4_K", "Q5_K", "Q6_K"].map((format) =>
    LAYOUTS_BY_FORMAT.get(format)!.kernel
  ),
);

const FLOATS = ["F16", "BF16"] as const;

function splat(vector: string, lane: number): string {
  return `v128.shuffle<i32>(${vector}, ${vector}, ${new Array(4).fill(lane).join(", ")})`;
}

function cell(layout: WeightLayout): string[] {
  const zeros = hasZeros(layout);
  const lines = [...cellScales(layout, "zero"), ...cellHighBits(layout)];
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
        const value = zeros
          ? `f32x4.mul(f32x4.add(${code}, z${g}_${h}), d${g}_${h})`
          : `madd(${code}, d${g}_${h}, m${g}_${h})`;
        lines.push(`f${h} = madd(x${q}_${i}, ${value}, f${h});`);
      }
    }
  }
  return [...lines, `w += ${layout.cellBytes}; x += 128;`];
}

function signature(kernel: string, more = ""): string {
  return `function gemv_float_${kernel}(w: usize, x: usize, columns: usize, out: usize${more}): void {`;
}

const BEGIN = "let f0 = v128.load(out), f1 = v128.load(out, 16);";
const END = "v128.store(out, f0); v128.store(out, f1, 16);";

function gemvCodes(layout: WeightLayout): string {
  const cells = layout.blockColumns / layout.cellColumns;
  return [
    signature(layout.kernel, moreParameters(layout)),
    "const flip = 0x80;",
    ...cellConstants(layout),
    "const LOW_BYTE = v128.load(LOW_BYTE_AT);",
    BEGIN,
    "const end = x + (columns << 2);",
    "while (x < end) {",
    ...(cells === 1 ? cell(layout) : [
      ...blockHeader(layout, "zero"),
      `w += ${layout.headerBytes};`,
      takesBlock(layout)
        ? "for (const blockEnd = min(x + (block << 2), end); x < blockEnd;) {"
        : `for (const blockEnd = x + ${4 * layout.blockColumns}; x < blockEnd;) {`,
      ...cell(layout),
      "}",
    ]),
    "}",
    END,
    "}",
  ].join("\n");
}

/** Module `generated/gemv_float`. */
export function gemvFloatModule(): string {
  const dispatched = [
    ...CODE_LAYOUTS.filter(({ kernel }) => KERNELS.has(kernel)),
    ...WEIGHT_LAYOUTS.filter(({ name }) => FLOATS.some((format) => format === name)),
  ];
  return [
    simdImports(),
    'import { joins } from "../machine/joining";',
    ...KERNEL_LAYOUTS.filter(({ kernel }) => KERNELS.has(kernel)).flatMap((layout) => [
      gemvCodes(layout),
      ...JOINED.has(layout.kernel) ? [joinedGemv(layout)] : [],
    ]),
    ...FLOATS.map(gemvHalves),
    "/** Adds eight outputs to `out`, and of a tile that lies `apart`, if not 0, to `outApart` behind; false if the layout has no kernel here, or a row ends in a cell. */",
    "export function gemvFloat(layout: u32, w: usize, apart: usize, x: usize, columns: usize, out: usize, outApart: usize): bool {",
    "  switch (layout) {",
    ...dispatched.map((layout) => {
      const name = `gemv_float_${layout.kernel}`;
      if (layout.kind !== "codes") {
        return `    case ${layout.id}: ${name}(w, apart, x, columns, out, outApart); return true;`;
      }
      const more = moreArguments(layout);
      // Only a block as long as a row may end within a cell.
      const ends = layout.blockColumns === 0 ? "if (columns & 31) return false; " : "";
      const joined =
        `gemv_float_joined_${layout.kernel}(w, apart, x, columns, out, outApart${more})`;
      return `    case ${layout.id}: ${ends}` +
        (JOINED.has(layout.kernel) ? `if (apart && joins()) { ${joined}; return true; } ` : "") +
        `${name}(w, x, columns, out${more}); ` +
        `if (apart) ${name}(w + apart, x, columns, out + outApart${more}); return true;`;
    }),
    "  }",
    "  return false;",
    "}",
    "",
  ].join("\n");
}
