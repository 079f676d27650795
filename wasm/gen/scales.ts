// Text that reads the scales of packed weights (wasm/layout_scales.ts), shared by all generated kernels. `w` is
// the address of a header, or of a cell. Names it leaves behind, for group g and half h (rows 4h..4h+3): d{g}_{h},
// and either the minimum m{g}_{h} or, where numbers are d · (code + z), the zero z{g}_{h}.
// Kernels on 8-bit activations want m always: m = d · z. Kernels that decode want z where the form has it.
//
// Eight-bit codes are stored signed and become unsigned where `flip` is 0x80 (matmul/q8.ts), which is what
// OFFSET and BIAS undo.

import { SCALE_KINDS, type ScaleName } from "../layout_scales.ts";
import { factorBits, type WeightLayout } from "../weight_layout.ts";

/** Halves of a tile: rows 0..3 and 4..7. */
export const HALVES: readonly number[] = [0, 1];

/** Groups of a cell that have scales of their own. */
export function groupsOf(layout: WeightLayout): number {
  return layout.cellColumns / layout.groupColumns;
}

/** What is wanted beside d; `either`: z where a flag `exact` says so. */
export type Beside = "minimum" | "zero" | "either";

/** Whether a layout's numbers are d · (code + z). */
export function hasZeros({ scales }: WeightLayout): boolean {
  return SCALE_KINDS[scales].form === "zero";
}

/** Whether a layout's scales are one above zero and one below; its codes are signed then. */
export function hasSigns({ scales }: WeightLayout): boolean {
  return SCALE_KINDS[scales].form === "signs";
}

/** Statements at the start of a function: constants that the other snippets use. */
export function scaleConstants(layout: WeightLayout): string[] {
  const lines: string[] = [];
  const { scales, offset, factor } = layout;
  if (scales.includes("f16")) {
    lines.push("const HALF_BITS = v128.load(HALF_BITS_AT), HALF_SCALE = v128.load(HALF_SCALE_AT);");
  }
  if (/^f16.*\|/.test(scales)) lines.push(...blockHalfConstants(scales));
  if (scales === "|level e4m3") lines.push("const E4M3_SCALE = f32x4.splat(E4M3_FACTOR);");
  if (scales === "|f16 z32") lines.push("const FACTOR = f32x4.splat(factor);");
  if (scales.startsWith("f16|") && factor !== 1) {
    lines.push(`const FACTOR = f32x4.splat(${factor});`);
  }
  if (scales === "|u8 u8") {
    lines.push(
      "const SCALE = f32x4.splat(0.001), BASE = f32x4.splat(0.01), HUNDRED = f32x4.splat(100);",
    );
  }
  if (factorBits(layout) === 8) {
    const kept = SCALE_KINDS[scales].stored
      ? "BIAS = f32x4.splat(<f32>(<i32>128 - flip))"
      : "OFFSET = f32x4.splat(-<f32>flip)";
    lines.push(`const ${kept};`);
  } else if (offset) lines.push(`const OFFSET = f32x4.splat(-${offset});`);
  return lines;
}

const PARTS: readonly string[] = ["low", "high"];

/** Eight half floats at `w + at` become `name0` and `name1`. Infinities are refused while packing. */
function halves(name: string, at: number, factor = ""): string[] {
  return [
    `const ${name}h = v128.load(w, ${at});`,
    ...PARTS.map((part, h) => {
      const value = `f32x4.mul(v128.and(i32x4.shl(i32x4.extend_${part}_i16x8_s(${name}h), 13), ` +
        `HALF_BITS), HALF_SCALE)`;
      return `const ${name}${h} = ${factor ? `f32x4.mul(${value}, ${factor})` : value};`;
    }),
  ];
}

/**
 * The same for the scales of blocks, which are subnormal in many files (nearly all of Q6_K: a thousandth of a
 * weight). Multiplying a subnormal float takes Intel processors 150 cycles, so exponents are added instead, and
 * what has none gets 2^-14 first and loses it again.
 */
function blockHalves(name: string, at: number, factor = ""): string[] {
  return [
    `const ${name}h = v128.load(w, ${at});`,
    ...PARTS.flatMap((part, h) => {
      const [wide, size, tiny] = ["w", "s", "t"].map((letter) => `${name}${h}${letter}`);
      const value = `v128.or(f32x4.sub(i32x4.sub(i32x4.add(${size}, EXPONENT), ` +
        `i32x4.shl(${tiny}, 23)), v128.and(${tiny}, LEAST_NORMAL)), v128.and(${wide}, SIGN))`;
      return [
        `const ${wide} = i32x4.extend_${part}_i16x8_s(${name}h);`,
        `const ${size} = v128.and(i32x4.shl(${wide}, 13), MAGNITUDE);`,
        `const ${tiny} = i32x4.lt_s(${size}, NORMAL);`,
        `const ${name}${h} = ${factor ? `f32x4.mul(${value}, ${factor})` : value};`,
      ];
    }),
  ];
}

/** What `blockHalves` uses; in this order at BLOCK_HALF_AT. */
const BLOCK_HALF_CONSTANTS: Readonly<Record<string, string>> = {
  EXPONENT: "0x38000000",
  LEAST_NORMAL: "0x38800000",
  SIGN: "0x80000000",
  MAGNITUDE: "0x0fffe000",
  NORMAL: "0x00800000",
};

/**
 * Their definitions. V8 makes an immediate vector anew, in three steps, at every use, so they come out of memory where
 * a header has two floats for a row; with one they are not worth the registers (bench/results/kernels.md).
 */
function blockHalfConstants(scales: ScaleName): string[] {
  return Object.entries(BLOCK_HALF_CONSTANTS).map(([name, value], i) =>
    `const ${name} = ${
      scales.startsWith("f16 f16|")
        ? `v128.load(BLOCK_HALF_AT, ${16 * i})`
        : `i32x4.splat(${value})`
    };`
  );
}

function singles(name: string, at: number): string[] {
  return HALVES.map((h) => `const ${name}${h} = v128.load(w, ${at + 16 * h});`);
}

function widened(name: string, source: string, h: number, sign: "s" | "u"): string {
  return `const ${name}${h} = f32x4.convert_i32x4_s(i32x4.extend_${
    PARTS[h]
  }_i16x8_${sign}(${source}));`;
}

/** m = d · OFFSET of group 0. */
const SYMMETRIC = HALVES.map((h) => `const m0_${h} = f32x4.mul(d0_${h}, OFFSET);`);

/** The zeros of a group without stored ones, or their minima. */
function fixedZeros(g: number, beside: Beside): string[] {
  return HALVES.map((h) => {
    const minimum = `f32x4.mul(d${g}_${h}, OFFSET)`;
    if (beside === "zero") return `const z${g}_${h} = OFFSET;`;
    if (beside === "minimum") return `const m${g}_${h} = ${minimum};`;
    return `const m${g}_${h} = exact ? OFFSET : ${minimum};`;
  });
}

/** The zeros at `w + at`, or their minima. */
function storedZeros(at: number, beside: Beside): string[] {
  return [
    ...singles("z0_", at),
    ...HALVES.flatMap((h) => {
      const minimum = `f32x4.mul(d0_${h}, z0_${h})`;
      if (beside === "zero") return [];
      return [`const m0_${h} = ${beside === "either" ? `exact ? z0_${h} : ` : ""}${minimum};`];
    }),
  ];
}

/** Minima of unsigned codes that are stored less 128. */
function unbiased(layout: WeightLayout): string[] {
  if (factorBits(layout) !== 8) return [...halves("d0_", 0), ...halves("m0_", 16)];
  return [
    ...halves("d0_", 0),
    ...halves("n0_", 16),
    ...HALVES.map((h) => `const m0_${h} = f32x4.add(n0_${h}, f32x4.mul(d0_${h}, BIAS));`),
  ];
}

/** Statements at the start of a block, `w` at its header. */
export function blockHeader(layout: WeightLayout, beside: Beside): string[] {
  switch (layout.scales) {
    case "f16|":
      return [...blockHalves("d0_", 0, layout.factor === 1 ? "" : "FACTOR"), ...SYMMETRIC];
    case "f32 f32|":
      return [...singles("d0_", 0), ...singles("m0_", 32)];
    case "f16 f16|":
      return unbiased(layout);
    case "f32|":
      return [...singles("d0_", 0), ...fixedZeros(0, beside)];
    case "f32 z32|":
      return [...singles("d0_", 0), ...storedZeros(32, beside)];
    case "f16|i8 by 16":
    case "f16|level i8":
    case "f16|u4":
    case "f16|u4 by 16":
    case "f16|u3 shift":
      return blockHalves("D", 0, layout.factor === 1 ? "" : "FACTOR");
    case "f16 f16|u8 u8":
    case "f16 f16|u4+u4 by 16":
      return [
        ...blockHalves("D", 0),
        ...blockHalves("e", 16),
        ...HALVES.map((h) => `const E${h} = f32x4.neg(e${h});`),
      ];
  }
  return [];
}

/** Statements at the start of a cell, `w` at it, after those of its block. */
export function cellScales(layout: WeightLayout, beside: Beside): string[] {
  switch (layout.scales) {
    case "|f16":
      return [...halves("d0_", 0), ...SYMMETRIC];
    case "|f16 f16":
      return unbiased(layout);
    case "|f32 f32":
      return [...singles("d0_", 0), ...singles("m0_", 32)];
    case "|f16 z32":
      return [...halves("d0_", 0, "FACTOR"), ...storedZeros(16, beside)];
    case "|level f16":
      return [...halves("d0_", 0), ...fixedZeros(0, beside)];
    case "|level bf16":
      return [
        "const S = v128.load(w);",
        ...PARTS.map((part, h) =>
          `const d0_${h} = i32x4.shl(i32x4.extend_${part}_i16x8_u(S), 16);`
        ),
        ...fixedZeros(0, beside),
      ];
    case "|level e4m3":
      return [0, 1].flatMap((g) => [
        `const S${g} = i16x8.extend_${PARTS[g]}_i8x16_u(v128.load(w));`,
        ...PARTS.map((part, h) =>
          `const d${g}_${h} = f32x4.mul(i32x4.shl(i32x4.extend_${part}_i16x8_u(S${g}), 20), E4M3_SCALE);`
        ),
        ...fixedZeros(g, beside),
      ]);
    case "|u8 u8":
      return [0, 1].flatMap((g) => bytesOfGroup(g, beside));
    case "f16|i8 by 16":
      return HALVES.flatMap((h) => [
        `const S${h} = v128.load8x8_s(w, ${8 * h});`,
        `const s0_${h} = i32x4.shr_s(i32x4.shl(S${h}, 16), 16), s1_${h} = i32x4.shr_s(S${h}, 16);`,
        ...[0, 1].map((g) =>
          `const d${g}_${h} = f32x4.mul(f32x4.convert_i32x4_s(s${g}_${h}), D${h}), ` +
          `m${g}_${h} = f32x4.mul(d${g}_${h}, OFFSET);`
        ),
      ]);
    case "f16|u4":
      return [...nibblesOfRows(), ...halfSteps(0), ...fixedZeros(0, beside)];
    case "f16|u4 by 16":
      return [
        ...nibbles("v128.load64_zero(w)"),
        ...[0, 1].flatMap((g) => [
          `const S${g} = i16x8.extend_low_i8x16_u(N${g});`,
          ...HALVES.map((h) => widened(`n${g}_`, `S${g}`, h, "u")),
          ...halfSteps(g),
          ...fixedZeros(g, beside),
        ]),
      ];
    case "f16|u3 shift":
      return [...nibblesOfRows(), ...HALVES.flatMap((h) => shiftedZero(h, beside))];
    case "f16|level i8":
      return [
        "const S = i16x8.extend_low_i8x16_s(v128.load64_zero(w));",
        ...HALVES.flatMap((h) => [
          widened("s", "S", h, "s"),
          `const d0_${h} = f32x4.mul(s${h}, D${h});`,
        ]),
        ...fixedZeros(0, beside),
      ];
    case "f16 f16|u8 u8":
      return [
        "const S = i16x8.extend_low_i8x16_u(v128.load(w)), T = i16x8.extend_high_i8x16_u(v128.load(w));",
        ...HALVES.flatMap((h) => [
          widened("s", "S", h, "u"),
          widened("t", "T", h, "u"),
          `const d0_${h} = f32x4.mul(s${h}, D${h}), m0_${h} = f32x4.mul(t${h}, E${h});`,
        ]),
      ];
    case "f16 f16|u4+u4 by 16":
      return [
        "const ST = v128.load(w), SS = v128.and(ST, LOW4), TT = v128.and(i16x8.shr_u(ST, 4), LOW4);",
        ...[0, 1].flatMap((g) => [
          `const S${g} = i16x8.extend_${PARTS[g]}_i8x16_u(SS), T${g} = i16x8.extend_${
            PARTS[g]
          }_i8x16_u(TT);`,
          ...HALVES.flatMap((h) => [
            widened(`s${g}_`, `S${g}`, h, "u"),
            widened(`t${g}_`, `T${g}`, h, "u"),
            `const d${g}_${h} = f32x4.mul(s${g}_${h}, D${h});`,
            `const m${g}_${h} = f32x4.mul(t${g}_${h}, E${h});`,
          ]),
        ]),
      ];
  }
  return [];
}

/** Nibbles of loaded bytes: the low ones become N0, the high ones N1. */
function nibbles(bytes: string): string[] {
  return [
    `const N = ${bytes}, N0 = v128.and(N, LOW4), N1 = v128.and(i16x8.shr_u(N, 4), LOW4);`,
  ];
}

/** One number for each row: n0_{h}. */
function nibblesOfRows(): string[] {
  return [
    ...nibbles("v128.load32_zero(w)"),
    ...HALVES.map((h) =>
      `const n0_${h} = ` +
      `f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(N${h})));`
    ),
  ];
}

/** Scales of a group from n{g}_{h}. */
function halfSteps(g: number): string[] {
  return HALVES.map((h) => `const d${g}_${h} = f32x4.mul(f32x4.add(n${g}_${h}, ONE_HALF), D${h});`);
}

/** Scale and zero of rows whose number has a shift down as its bit 3. */
function shiftedZero(h: number, beside: Beside): string[] {
  const minimum = `f32x4.mul(d0_${h}, z0_${h})`;
  return [
    `const down${h} = f32x4.ge(n0_${h}, f32x4.splat(8));`,
    `const u${h} = f32x4.sub(n0_${h}, v128.and(down${h}, f32x4.splat(8)));`,
    `const d0_${h} = f32x4.mul(f32x4.add(u${h}, ONE_HALF), D${h});`,
    `const z0_${h} = f32x4.sub(f32x4.splat(-7), v128.and(down${h}, f32x4.splat(2)));`,
    ...beside === "zero"
      ? []
      : [`const m0_${h} = ${beside === "either" ? `exact ? z0_${h} : ` : ""}${minimum};`],
  ];
}

/** Thousandths and hundredths above -1; whole numbers where a decoder wants them (`exact`). */
function bytesOfGroup(g: number, beside: Beside): string[] {
  const either = (whole: string, value: string) =>
    beside === "either" ? `exact ? ${whole} : ${value}` : value;
  return [
    `const S${g} = i16x8.extend_low_i8x16_u(v128.load64_zero(w, ${8 * g}));`,
    `const T${g} = i16x8.extend_low_i8x16_u(v128.load64_zero(w, ${16 + 8 * g}));`,
    ...HALVES.flatMap((h) => [
      widened(`s${g}_`, `S${g}`, h, "u"),
      widened(`u${g}_`, `T${g}`, h, "u"),
      `const t${g}_${h} = f32x4.sub(u${g}_${h}, HUNDRED);`,
      `const d${g}_${h} = ${either(`s${g}_${h}`, `f32x4.mul(s${g}_${h}, SCALE)`)};`,
      `const m${g}_${h} = ${either(`t${g}_${h}`, `f32x4.mul(t${g}_${h}, BASE)`)};`,
    ]),
  ];
}
