// Element types as shaders see them: what lies in memory, and what expressions compute with. Elements of 8 and 16
// bits lie in words, two or four in each; elements of 64 bits are pairs of words, the low one first. Numbers of 8 and
// 16 bits are computed in 32 and lose what is too much when they are stored.

import { wgsl } from "../wgsl.ts";

/** Names of the types; `pair` is any element of 64 bits. */
export type ElementType =
  | ("f32" | "i32" | "u32" | "pair")
  | ("bool" | "u8" | "i8" | "u16" | "i16" | "f16" | "bf16");

/** One type. */
export interface ElementCode {
  /** WGSL type of an element of the storage binding. */
  readonly memory: string;
  /** WGSL type of the value in expressions. */
  readonly value: "f32" | "i32" | "u32" | "bool" | "vec2<u32>";
  /** Elements in a word; 1: an element of memory is the value. */
  readonly perWord: 1 | 2 | 4;
  /** The value, where `perWord` is more: from its bits. */
  readonly decode: (bits: string) => string;
  /** Its low bits, from the value. */
  readonly encode: (value: string) => string;
}

const whole = (value: ElementCode["value"]): ElementCode => ({
  ...{ memory: value, value, perWord: 1 },
  decode: (bits) => bits,
  encode: (bits) => bits,
});

function packed(
  perWord: 2 | 4,
  value: ElementCode["value"],
  { decode, encode }: Pick<ElementCode, "decode" | "encode">,
): ElementCode {
  return { memory: "u32", value, perWord, decode, encode };
}

const unsigned = { decode: (bits: string) => bits, encode: (value: string) => value };
const signed = (width: number) => ({
  decode: (bits: string) => `extractBits(bitcast<i32>(${bits}), 0u, ${width}u)`,
  encode: (value: string) => `bitcast<u32>(${value})`,
});

/** Every type by name. */
export const ELEMENTS: Readonly<Record<ElementType, ElementCode>> = {
  f32: whole("f32"),
  i32: whole("i32"),
  u32: whole("u32"),
  pair: whole("vec2<u32>"),
  bool: packed(4, "bool", {
    decode: (bits) => `${bits} != 0u`,
    encode: (value) => `select(0u, 1u, ${value})`,
  }),
  u8: packed(4, "u32", unsigned),
  i8: packed(4, "i32", signed(8)),
  u16: packed(2, "u32", unsigned),
  i16: packed(2, "i32", signed(16)),
  f16: packed(2, "f32", {
    decode: (bits) => `half_value(${bits})`,
    encode: (value) => `half_bits(${value})`,
  }),
  bf16: packed(2, "f32", {
    decode: (bits) => `bitcast<f32>(${bits} << 16u)`,
    encode: (value) => `upper_bits(${value})`,
  }),
};

/** The element at `place` of a storage variable. */
export function readElement(
  type: ElementType,
  { variable, place }: { readonly variable: string; readonly place: string },
): string {
  const { perWord, decode } = ELEMENTS[type];
  if (perWord === 1) return `${variable}[${place}]`;
  const [shift, mask] = perWord === 4 ? [2, 3] : [1, 1], width = 32 / perWord;
  const word = `${variable}[${place} >> ${shift}u]`;
  const most = 2 ** width - 1;
  return decode(`((${word} >> (${width}u * (${place} & ${mask}u))) & ${most}u)`);
}

/** Words `y[i]` of a result, from `element(at)`, which gives the bits of one. */
export function writePacked(perWord: number): string {
  const width = 32 / perWord;
  return wgsl`
    if (${perWord}u * i >= params.count) { return; }
    var word = 0u;
    for (var k = 0u; k < ${perWord}u; k++) {
      let at = ${perWord}u * i + k;
      if (at < params.count) { word |= (element(at) & ${2 ** width - 1}u) << (${width}u * k); }
    }
    y[i] = word;
  `;
}

/**
 * Floats of 16 bits, as integers throughout: hardware may take small ones for 0. Rounding is to nearest, ties to even,
 * and NaN stays NaN.
 */
const HALF_FUNCTIONS = wgsl`
  fn half_value(bits: u32) -> f32 {
    let size = bits & 0x7fffu;
    let sign = (bits & 0x8000u) << 16u;
    if (size < 0x400u) { return select(1.0, -1.0, sign != 0u) * (f32(size) * 5.9604645e-8); }
    return bitcast<f32>(sign | ((size << 13u) + select(0x38000000u, 0x70000000u, size >= 0x7c00u)));
  }

  fn half_bits(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let size = bits & 0x7fffffffu;
    let sign = (bits >> 16u) & 0x8000u;
    if (size > 0x7f800000u) { return sign | 0x7e00u; }
    if (size >= 0x47800000u) { return sign | 0x7c00u; }
    // Below 2^-14 the last bit is 2^-24.
    let drop = select(13u, min(126u - (size >> 23u), 31u), size < 0x38800000u);
    let all = select(size - (112u << 23u), (size & 0x7fffffu) | 0x800000u, size < 0x38800000u);
    let kept = all >> drop;
    let rest = all & ((1u << drop) - 1u);
    let half = 1u << (drop - 1u);
    return sign | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u)));
  }
`;

const UPPER_BITS = wgsl`
  fn upper_bits(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  }
`;

/** The functions that reading and writing of some types call. */
export function elementFunctions(types: readonly ElementType[]): readonly string[] {
  return [
    ...types.includes("f16") ? [HALF_FUNCTIONS] : [],
    ...types.includes("bf16") ? [UPPER_BITS] : [],
  ];
}
