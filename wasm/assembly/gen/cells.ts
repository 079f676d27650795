// Text that reads one cell of packed weights (wasm/weight_layout.ts), shared by all generated kernels:
// the scales as float32 vectors and the codes as unsigned bytes. `w` is the address of the cell.
// Names it leaves behind: d{g}_{h} and m{g}_{h}, scale and minimum of rows 4h..4h+3 in group g of the
// cell (value = d · code + m), and w{q}_{h}, the code vector of columns 4q..4q+3.
//
// Constants are loaded once, because V8 builds an immediate vector anew at every use.

import type { WeightLayout } from "../../weight_layout.ts";

/** Halves of a tile: rows 0..3 and 4..7. */
export const HALVES: readonly number[] = [0, 1];

/** Groups of a cell that have scales of their own. */
export function groupsOf(layout: WeightLayout): number {
  return layout.cellColumns / layout.groupColumns;
}

/** Order of column quads in which each code vector is loaded once. */
export function quadOrder(layout: WeightLayout): number[] {
  return layout.bits === 8 ? [0, 1, 2, 3, 4, 5, 6, 7] : [0, 4, 1, 5, 2, 6, 3, 7];
}

/** Statements at the start of a function: constants that the other snippets use. */
export function cellConstants(layout: WeightLayout): string[] {
  const lines = [
    "const HALF_BITS = v128.load(HALF_BITS_AT), HALF_SCALE = v128.load(HALF_SCALE_AT);",
  ];
  if (layout.bits === 8) {
    lines.push("const FLIP = i8x16.splat(<i8>flip), OFFSET = f32x4.splat(-<f32>flip);");
    return lines;
  }
  lines.push("const LOW4 = v128.load(LOW4_AT);");
  if (layout.bits === 5) lines.push("const BIT4 = v128.load(BIT4_AT);");
  if (layout.bits === 6) lines.push("const BITS45 = v128.load(BITS45_AT);");
  if (layout.offset) lines.push(`const OFFSET = f32x4.splat(-${layout.offset});`);
  return lines;
}

/** Eight half floats at `w + at` become `name0` and `name1`. Infinities are refused while packing. */
function halves(name: string, at: number): string[] {
  return [
    `const ${name}h = v128.load(w, ${at});`,
    ...["low", "high"].map((part, h) =>
      `const ${name}${h} = f32x4.mul(v128.and(i32x4.shl(i32x4.extend_${part}_i16x8_s(${name}h), 13), ` +
      `HALF_BITS), HALF_SCALE);`
    ),
  ];
}

/** Statements at the start of a block, `w` at its header: the super-scales. */
export function blockHeader(layout: WeightLayout): string[] {
  if (layout.headerBytes === 0) return [];
  return [...halves("D", 0), ...(layout.headerBytes === 32 ? halves("E", 16) : [])];
}

function widened(name: string, source: string, h: number, sign: "s" | "u"): string {
  const part = h ? "high" : "low";
  return `const ${name}${h} = f32x4.convert_i32x4_s(i32x4.extend_${part}_i16x8_${sign}(${source}));`;
}

/** Statements that define d{g}_{h} and m{g}_{h}. */
export function cellScales(layout: WeightLayout): string[] {
  if (layout.bits === 6) {
    return [0, 1].flatMap((g) => [
      `const S${g} = i16x8.extend_${g ? "high" : "low"}_i8x16_s(v128.load(w));`,
      ...HALVES.flatMap((h) => [
        widened(`s${g}_`, `S${g}`, h, "s"),
        `const d${g}_${h} = f32x4.mul(s${g}_${h}, D${h}), m${g}_${h} = f32x4.mul(d${g}_${h}, OFFSET);`,
      ]),
    ]);
  }
  if (layout.headerBytes) {
    return [
      "const S = i16x8.extend_low_i8x16_u(v128.load(w)), T = i16x8.extend_high_i8x16_u(v128.load(w));",
      ...HALVES.flatMap((h) => [
        widened("s", "S", h, "u"),
        widened("t", "T", h, "u"),
        `const d0_${h} = f32x4.mul(s${h}, D${h}), m0_${h} = f32x4.neg(f32x4.mul(t${h}, E${h}));`,
      ]),
    ];
  }
  if (layout.scaleBytes === 64) {
    return ["d0_", "m0_"].flatMap((name, i) =>
      HALVES.map((h) => `const ${name}${h} = v128.load(w, ${32 * i + 16 * h});`)
    );
  }
  if (layout.scaleBytes === 32) return [...halves("d0_", 0), ...halves("m0_", 16)];
  return [
    ...halves("d0_", 0),
    ...HALVES.map((h) => `const m0_${h} = f32x4.mul(d0_${h}, OFFSET);`),
  ];
}

/** Statements, once a cell, that load the bits above the nibbles. */
export function cellHighBits(layout: WeightLayout): string[] {
  const at = layout.scaleBytes + 128;
  if (layout.bits === 5) return HALVES.map((h) => `const b${h} = v128.load(w, ${at + 16 * h});`);
  if (layout.bits !== 6) return [];
  return [0, 1].flatMap((s) =>
    HALVES.map((h) => `const b${h}_${s} = v128.load(w, ${at + 32 * s + 16 * h});`)
  );
}

function shifted(vector: string, left: number): string {
  if (left === 0) return vector;
  return left > 0 ? `i16x8.shl(${vector}, ${left})` : `i16x8.shr_u(${vector}, ${-left})`;
}

/**
 * Statements that define w{q}_{h}. The low nibbles of quad q and the high ones of quad q + 4 share a
 * vector; whoever asks for q < 4 first defines it for both.
 */
export function codeVector(layout: WeightLayout, q: number, h: number, raw = false): string[] {
  const name = `w${q}_${h}`;
  if (layout.bits === 8) {
    const load = `v128.load(w, ${layout.scaleBytes + 32 * q + 16 * h})`;
    return [`const ${name} = ${raw ? load : `v128.xor(${load}, FLIP)`};`];
  }
  const p = q & 3;
  const lines = q < 4
    ? [`const v${p}_${h} = v128.load(w, ${layout.scaleBytes + 32 * p + 16 * h});`]
    : [];
  // Shifts move bits across bytes; the masks drop them.
  const nibble = `v128.and(${q < 4 ? `v${p}_${h}` : `i16x8.shr_u(v${p}_${h}, 4)`}, LOW4)`;
  if (layout.bits === 4) return [...lines, `const ${name} = ${nibble};`];
  const high = layout.bits === 5
    ? `v128.and(${shifted(`b${h}`, 4 - q)}, BIT4)`
    : `v128.and(${shifted(`b${h}_${q >> 2}`, 4 - 2 * p)}, BITS45)`;
  return [...lines, `const ${name} = v128.or(${nibble}, ${high});`];
}
