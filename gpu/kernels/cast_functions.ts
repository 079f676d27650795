// Conversions as WGSL, from and to the types that expressions compute with. WGSL says nothing of floats beyond the
// range of an integer, so the bits of a float are shifted into place, and what does not fit is as the engine's op `cast`
// says.

import { wgsl } from "../wgsl.ts";
import type { ElementCode } from "./element_types.ts";

type ValueType = ElementCode["value"];

const PAIR = "vec2<u32>";

/** Expressions of `a` by `from to`. */
const CASTS: Readonly<Record<string, string>> = {
  "f32 i32": "bitcast<i32>(whole_bits(a))",
  "f32 u32": "whole_bits(a)",
  // Compilers may take it that there are no NaNs, which are true.
  "f32 bool": "(bitcast<u32>(a) & 0x7fffffffu) != 0u",
  "i32 f32": "f32(a)",
  "i32 u32": "bitcast<u32>(a)",
  "i32 bool": "a != 0",
  [`i32 ${PAIR}`]: "vec2<u32>(bitcast<u32>(a), select(0u, 0xffffffffu, a < 0))",
  "u32 f32": "f32(a)",
  "u32 i32": "bitcast<i32>(a)",
  "u32 bool": "a != 0u",
  [`u32 ${PAIR}`]: "vec2<u32>(a, 0u)",
  "bool f32": "select(0.0, 1.0, a)",
  "bool i32": "select(0, 1, a)",
  "bool u32": "select(0u, 1u, a)",
  [`bool ${PAIR}`]: "vec2<u32>(select(0u, 1u, a), 0u)",
  [`${PAIR} i32`]: "bitcast<i32>(a.x)",
  [`${PAIR} u32`]: "a.x",
  [`${PAIR} bool`]: "any(a != vec2<u32>())",
};

/** `a` as another type; undefined where there is no expression for it. */
export function castExpression(from: ValueType, to: ValueType): string | undefined {
  return from === to ? "a" : CASTS[`${from} ${to}`];
}

/** Expression of `a`, a float, as u32, whose numbers do not fit an i32; smaller types go through one. */
export const FLOAT_TO_U32 = "unsigned_bits(a)";

/** The functions that the expressions call. */
export const CAST_FUNCTIONS: string = wgsl`
  fn low_bits(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let exponent = i32((bits >> 23u) & 255u) - 150;
    // From 2^55 on, and of what is not finite, no bit is left.
    if (exponent < -23 || exponent > 31) { return 0u; }
    let digits = (bits & 0x7fffffu) | 0x800000u;
    let size = select(digits >> u32(max(-exponent, 0)), digits << u32(max(exponent, 0)), exponent > 0);
    return select(size, 0u - size, bits >= 0x80000000u);
  }

  fn whole_bits(value: f32) -> u32 {
    return select(low_bits(value), 0x80000000u, (bitcast<u32>(value) & 0x7fffffffu) >= 0x4f000000u);
  }

  fn unsigned_bits(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    // From 2^31 to 2^32 there is the upper half, from there to infinity nothing.
    let upper = select(low_bits(value), 0u, bits >= 0x4f800000u);
    return select(whole_bits(value), upper, bits >= 0x4f000000u && bits <= 0x7f800000u);
  }
`;

/** `find_code`: of `params.steps` keys in `table_in` the last that is not above that of a float; codes follow. */
export const FIND_CODE: string = wgsl`
  fn find_code(bits: u32) -> u32 {
    let key = select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
    var low = 0u;
    var high = params.steps;
    while (high - low > 1u) {
      let middle = (low + high) / 2u;
      if (table_in[middle] <= key) { low = middle; } else { high = middle; }
    }
    return table_in[params.steps + low];
  }
`;
