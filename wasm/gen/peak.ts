// Loops of nothing but the arithmetic of matrix products: `peakDot`, `peakPair`, `peakWide`, `peakFloat`.
// Twelve sums, so that latency does not count, and no loads. Every step depends on its own sum, because a
// compiler would take a product of constants out of the loop. Codes may wrap; floats stay between 0 and 2.

const SUMS = Array.from({ length: 12 }, (_, i) => `c${i}`);

interface Arithmetic {
  readonly name: string;
  readonly start: (index: number) => string;
  readonly step: (sum: string) => string;
  readonly isRelaxed: boolean;
}

const CODES = (index: number) => `i8x16.splat(${index + 1})`;

const KINDS: readonly Arithmetic[] = [
  {
    ...{ name: "peakDot", start: CODES, isRelaxed: true },
    step: (c) => `${c} = i32x4.relaxed_dot_i8x16_i7x16_add_s(${c}, factor, ${c});`,
  },
  {
    ...{ name: "peakPair", start: CODES, isRelaxed: true },
    step: (c) => `${c} = i16x8.add(${c}, i16x8.relaxed_dot_i8x16_i7x16_s(${c}, factor));`,
  },
  {
    ...{ name: "peakWide", start: CODES, isRelaxed: false },
    step: (c) => `${c} = i32x4.add(${c}, i32x4.dot_i16x8_s(${c}, factor));`,
  },
  {
    ...{ name: "peakFloat", start: (i) => `f32x4.splat(0.${i + 10})`, isRelaxed: false },
    step: (c) => `${c} = madd(${c}, half, one);`,
  },
];

function loop({ name, start, step, isRelaxed }: Arithmetic): string {
  const body = [
    "const factor = i8x16.splat(3), half = f32x4.splat(0.5), one = f32x4.splat(1);",
    ...SUMS.map((sum, i) => `let ${sum} = ${start(i)};`),
    "for (let i: u32 = 0; i < times; i++) {",
    ...SUMS.map(step),
    "}",
    ...SUMS.slice(1).map((sum) => `c0 = v128.xor(c0, ${sum});`),
    "return c0;",
  ];
  const guarded = isRelaxed
    ? ["if (ASC_FEATURE_RELAXED_SIMD) {", ...body, "}", "unreachable();", "return i32x4.splat(0);"]
    : body;
  return [`export function ${name}(times: u32): v128 {`, ...guarded, "}"].join("\n");
}

/** Module `generated/peak`. */
export function peakModule(): string {
  return ['import { madd } from "../simd";', ...KINDS.map(loop)].join("\n\n");
}
