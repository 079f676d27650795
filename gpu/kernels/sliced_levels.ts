// WGSL that makes levels of 4-bit codes without a table: each bit of a level is a function of four bits, and a word
// holds the same bit of eight codes, so that a few logical operations make that bit of eight levels at once. The
// functions are written as choices between functions of two bits; compilers merge three operands into one operation.
// What was measured beside it on an H100 (share of what a plain read of the same bytes reaches, 4096 × 14336) stands
// in layouts/ggml_formats.ts.

import { wgsl } from "../wgsl.ts";

/** All functions of x0 and x1; entry t has bit i of t for x1 x0 = i. */
const OF_TWO: readonly string[] = [
  ...["none", "~(x0 | x1)", "(x0 & ~x1)", "~x1", "(~x0 & x1)", "~x0", "(x0 ^ x1)", "~(x0 & x1)"],
  ...["(x0 & x1)", "~(x0 ^ x1)", "x0", "(x0 | ~x1)", "x1", "(~x0 | x1)", "(x0 | x1)", "all"],
];

/** `high` where a bit of `by` is set, else `low`. */
function choice(by: string, high: string, low: string): string {
  if (high === low) return high;
  if (low === "none") return high === "all" ? by : `(${by} & ${high})`;
  if (high === "none") return low === "all" ? `~${by}` : `(~${by} & ${low})`;
  if (high === "all") return `(${by} | ${low})`;
  if (low === "all") return `(~${by} | ${high})`;
  return `(${low} ^ (${by} & (${high} ^ ${low})))`;
}

/** Bit `bit` of the level of x3 x2 x1 x0. */
function bitOf(levels: ArrayLike<number>, bit: number): string {
  const table = (first: number) =>
    [0, 1, 2, 3].reduce((all, i) => all | (((levels[first + i]! >> bit) & 1) << i), 0);
  const half = (first: number) => choice("x2", OF_TWO[table(first + 4)]!, OF_TWO[table(first)]!);
  return choice("x3", half(8), half(0));
}

/** Statements that return `Codes` of `packed: vec4<u32>`, nibbles of columns j low and j + 16 high. */
export function slicedLevels(levels: ArrayLike<number>): string {
  // Bits 0 to 3 of all eight levels make a word of nibbles, bits 4 to 7 another.
  const nibbles = (first: number) =>
    [0, 1, 2, 3].map((i) => {
      const shifted = i === 0 ? `o${first}` : `(o${first + i} << vec4<u32>(${i}u))`;
      return `(${shifted} & vec4<u32>(0x${(0x11111111 << i >>> 0).toString(16)}u))`;
    }).join(" | ");
  // A sign that fills several bits is made once.
  const all = Array.from({ length: 8 }, (_, bit) => bitOf(levels, bit));
  const bits = all.map((text, bit) => all.indexOf(text) < bit ? `o${all.indexOf(text)}` : text);
  return wgsl`
    let x0 = packed;
    let x1 = packed >> vec4<u32>(1u);
    let x2 = packed >> vec4<u32>(2u);
    let x3 = packed >> vec4<u32>(3u);
    ${Array.from({ length: 8 }, (_, bit) => `let o${bit} = ${bits[bit]};`)}
    let lower = ${nibbles(0)};
    let upper = ${nibbles(4)};
    let mask = vec4<u32>(0x0f0f0f0fu);
    return Codes(
      (lower & mask) | ((upper & mask) << vec4<u32>(4u)),
      ((lower >> vec4<u32>(4u)) & mask) | (upper & ~mask),
    );
  `;
}
