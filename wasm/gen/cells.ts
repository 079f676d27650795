// Text that reads the codes of one cell of packed weights (wasm/weight_layout.ts), shared by all generated
// kernels. `w` is the address of the cell. It leaves w{q}_{h} behind, what columns 4q..4q+3 of rows 4h..4h+3 are
// multiplied by before scales: unsigned bytes, codes or what a table has for them.
//
// Constants are loaded once, because V8 builds an immediate vector anew at every use.

import { factorBits, type WeightLayout } from "../weight_layout.ts";
import { turned } from "./fours.ts";
import { groupsOf, HALVES, hasSigns, scaleConstants } from "./scales.ts";

/** Order of column quads in which each code vector is loaded once. */
export function quadOrder(layout: WeightLayout): number[] {
  return layout.bits === 4 || layout.bits === 5
    ? [0, 4, 1, 5, 2, 6, 3, 7]
    : [0, 1, 2, 3, 4, 5, 6, 7];
}

/** Statements at the start of a function: constants that the other snippets use. */
export function cellConstants(layout: WeightLayout, raw = false): string[] {
  const lines = scaleConstants(layout);
  const { bits, table } = layout;
  if (bits === 8 && !hasSigns(layout)) return [...lines, "const FLIP = i8x16.splat(<i8>flip);"];
  if (bits === 6) {
    lines.push(
      "const LOW6 = v128.load(SIX_BITS_AT), BITS45 = v128.load(SIX_BITS_AT, 16), " +
        "BITS23 = v128.load(SIX_BITS_AT, 32), LOW2 = v128.load(SIX_BITS_AT, 48);",
    );
  } else if (bits >= 4 || layout.scales === "f16 f16|u4+u4 by 16") {
    lines.push("const LOW4 = v128.load(LOW4_AT);");
  }
  if (bits === 1) lines.push("const BIT0 = v128.load(BIT0_AT);");
  if (bits === 2 || bits === 3) lines.push("const LOW2 = v128.load(LOW2_AT);");
  if (bits === 3) lines.push("const BIT2 = v128.load(BIT2_AT);");
  if (bits === 5) lines.push("const BIT4 = v128.load(BIT4_AT);");
  if (table && table !== "iq4") {
    lines.push(`const TABLE = v128.load(${table.toUpperCase()}_AT);`);
  }
  if (table === "iq4") {
    const flipped = raw ? "" : ", FLIP = i8x16.splat(<i8>flip)";
    lines.push(
      `const LEVELS = v128.load(IQ4_AT)${flipped}, TABLE = ${
        raw ? "LEVELS" : "v128.xor(LEVELS, FLIP)"
      };`,
    );
  }
  return lines;
}

/** Statements, once a cell, that load the bits above the nibbles or bit pairs. */
export function cellHighBits({ bits, scaleBytes }: WeightLayout): string[] {
  const at = scaleBytes + (bits === 1 ? 0 : bits === 3 ? 64 : 128);
  if (bits === 5 || bits === 3 || bits === 1) {
    return HALVES.map((h) => `const b${h} = v128.load(w, ${at + 16 * h});`);
  }
  return [];
}

/** A vector of 16-bit lanes shifted to the left, or to the right by less than 0. */
export function shifted(vector: string, left: number): string {
  if (left === 0) return vector;
  return left > 0 ? `i16x8.shl(${vector}, ${left})` : `i16x8.shr_u(${vector}, ${-left})`;
}

/**
 * Statements that define w{q}_{h}. Quads that share a vector define it for each other: whoever asks in the
 * order of `quadOrder` gets each loaded once.
 *
 * @param raw Signed bytes, for codes of 8 bit.
 */
export function codeVector(layout: WeightLayout, q: number, h: number, raw = false): string[] {
  const name = `w${q}_${h}`;
  if (layout.bits === 8) {
    const load = `v128.load(w, ${layout.scaleBytes + 32 * q + 16 * h})`;
    return [`const ${name} = ${raw || hasSigns(layout) ? load : `v128.xor(${load}, FLIP)`};`];
  }
  if (layout.bits === 1) return [`const ${name} = v128.and(${shifted(`b${h}`, -q)}, BIT0);`];
  if (layout.bits < 4) return lowCodeVector(layout, q, h);
  if (layout.bits === 6) return sixBitVector(layout, q, h);
  const p = q & 3;
  const lines = q < 4
    ? [`const v${p}_${h} = v128.load(w, ${layout.scaleBytes + 32 * p + 16 * h});`]
    : [];
  // Shifts move bits across bytes; the masks drop them.
  const nibble = `v128.and(${q < 4 ? `v${p}_${h}` : `i16x8.shr_u(v${p}_${h}, 4)`}, LOW4)`;
  if (layout.table) return [...lines, `const ${name} = lookUp(TABLE, ${nibble});`];
  if (layout.bits === 4) return [...lines, `const ${name} = ${nibble};`];
  const high = `v128.and(${shifted(`b${h}`, 4 - q)}, BIT4)`;
  return [...lines, `const ${name} = v128.or(${nibble}, ${high});`];
}

/** The same for codes of 6 bit: three quads lie in the low bits of three vectors, the fourth in what is above them. */
function sixBitVector({ scaleBytes }: WeightLayout, q: number, h: number): string[] {
  const name = `w${q}_${h}`, j = q & 3;
  if (j < 3) {
    return [
      `const v${q}_${h} = v128.load(w, ${scaleBytes + 96 * (q >> 2) + 32 * j + 16 * h});`,
      `const ${name} = v128.and(v${q}_${h}, LOW6);`,
    ];
  }
  const [a, b, c] = [3, 2, 1].map((back) => `v${q - back}_${h}`);
  return [
    `const ${name} = v128.or(v128.or(v128.and(i16x8.shr_u(${a}, 2), BITS45), ` +
    `v128.and(i16x8.shr_u(${b}, 4), BITS23)), v128.and(i16x8.shr_u(${c}, 6), LOW2));`,
  ];
}

/** The same for codes of 2 and 3 bit. */
function lowCodeVector({ bits, scaleBytes }: WeightLayout, q: number, h: number): string[] {
  const name = `w${q}_${h}`, s = q >> 2, j = q & 3;
  const lines = j === 0
    ? [`const v${s}_${h} = v128.load(w, ${scaleBytes + 32 * s + 16 * h});`]
    : [];
  const pair = `v128.and(${shifted(`v${s}_${h}`, -2 * j)}, LOW2)`;
  if (bits === 2) return [...lines, `const ${name} = ${pair};`];
  return [
    ...lines,
    `const ${name} = v128.or(${pair}, v128.and(${shifted(`b${h}`, 2 - q)}, BIT2));`,
  ];
}

/** Whether the sums of a style add minima: not where codes of 8 bit are signed and none are stored. */
export function addsMinima(layout: WeightLayout, signed: boolean): boolean {
  return !(signed && factorBits(layout) === 8 && layout.offset !== 0);
}

/**
 * Whether a layout's codes are a whole number too large, which sums of 32 columns take away where they start, so that no
 * minimum is added behind: that of signed bytes is what made them unsigned.
 */
export function isCentered(layout: WeightLayout): boolean {
  if (factorBits(layout) === 8) return !addsMinima(layout, true);
  return layout.scales === "|f16" && layout.offset > 0;
}

/** A constant for `startOf`: the offset of a centered layout, negative. */
export function offsetConstant(offset: string): string {
  return `const OFFSETS = i16x8.splat(<i16>(${offset}));`;
}

/** Where sums of a centered layout start, out of half sums of activations. */
export function startOf(halves: string): string {
  return `i32x4.dot_i16x8_s(${halves}, OFFSETS)`;
}

/** The scaled sum of the codes of half `g` of a group of activations, out of both as pairs. */
export function groupSum(halves: string, g: number, scale: string): string {
  const sum = `i32x4.shr_s(${g ? halves : `i32x4.shl(${halves}, 16)`}, 16)`;
  return `f32x4.mul(f32x4.convert_i32x4_s(${sum}), ${scale})`;
}

/** What names of a GEMV's row end with; those of the first, or only, row as they are. */
export function rowName(r: number): string {
  return r ? `_r${r}` : "";
}

/** Where something of row `r` lies; of the first one at `at`. */
export function ofRow(at: string, r: number): string {
  return r ? `${at} + stride${r}` : at;
}

/** A statement that defines {name}{row}, what lies at `at` for row `r`: splat, or, of four rows, a turn of theirs (fours.ts). */
export function ofRows(name: string, at: string, r: number, isFour: boolean): string {
  const value = !isFour
    ? `v128.load32_splat(${ofRow(at, r)})`
    : r
    ? turned(name, r)
    : `v128.load(${at})`;
  return `const ${name}${rowName(r)} = ${value};`;
}

/** Statements that add the scaled sums c{g}_{h} to `f{h}` of row `r` of a GEMV; in the order of tiles.ts. */
export function cellEpilogue(
  layout: WeightLayout,
  minima: boolean,
  { r, isFour }: { readonly r: number; readonly isFour: boolean } = { r: 0, isFour: false },
): string[] {
  const groups = groupsOf(layout), row = rowName(r);
  const lines = [ofRows("s", "scale", r, isFour)];
  if (groups === 2) {
    lines.push(
      ofRows("halves", "halfSum", r, isFour),
      ...[0, 1].map((g) => `const t${g}${row} = ${groupSum(`halves${row}`, g, `s${row}`)};`),
    );
  } else if (minima) lines.push(ofRows("t", "sum", r, isFour));
  for (let g = 0; g < groups; g++) {
    const total = groups === 2 ? `t${g}${row}` : `t${row}`;
    for (const h of HALVES) {
      const f = `f${h}${row}`,
        product = `f32x4.mul(f32x4.convert_i32x4_s(c${g}_${h}${row}), s${row})`;
      lines.push(`${f} = madd(${product}, d${g}_${h}, ${f});`);
      if (minima) lines.push(`${f} = madd(${total}, m${g}_${h}, ${f});`);
    }
  }
  return lines;
}
