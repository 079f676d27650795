// WGSL that reads codes: from the planes of a group of 32 columns (layouts/code_planes.ts) to bytes of columns 0..15
// and 16..31, four neighbours a word, in the order of packed dot products.

import {
  CODE_KINDS,
  type CodeKind,
  type ColumnKind,
  type VectorKind,
} from "../../layouts/code_planes.ts";
import { wgsl } from "../../wgsl.ts";
import { type CodeBody, VECTOR_CODES } from "./vector_codes.ts";

/** WGSL types of the planes of codes by the names of their bindings. */
export function codeStorage(kind: CodeKind): Record<string, string> {
  return Object.fromEntries(CODE_KINDS[kind].map(({ name, type }) => [name, `array<${type}>`]));
}

/** Whether bytes are signed. */
export function isSigned(kind: CodeKind): boolean {
  return !/^([utf]|p11)/.test(kind);
}

/** Declares `Codes` and `weight_codes(index) -> Codes`; index is row · K/32 + group. */
export function codeFunctions(kind: CodeKind): string {
  const { body, functions } = bodyOf(kind);
  const reader = wgsl`
    struct Codes { low: vec4<u32>, high: vec4<u32> }

    fn weight_codes(index: u32) -> Codes {
      ${body}
    }
  `;
  return functions ? `${reader}\n\n${functions}` : reader;
}

const NIBBLES = wgsl`
  let packed = w_codes[index];
  let low = packed & vec4<u32>(0x0f0f0f0fu);
  let high = (packed >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
`;

/** Bits of columns 0..15 as the lowest of bytes; of those behind from bit 4 on. */
const LOW_BITS = "((bits >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(0x01010101u))";
const HIGH_BITS = "((bits >> vec4<u32>(4u, 5u, 6u, 7u)) & vec4<u32>(0x01010101u))";

/** Bit pairs of columns 0..15 as the lowest of bytes, and of those behind. */
const PAIRS = wgsl`
  let pairs = w_pairs[index];
  let by = vec4<u32>(0u, 2u, 4u, 6u);
`;
const LOW_PAIRS = "((vec4<u32>(pairs.x) >> by) & vec4<u32>(0x03030303u))";
const HIGH_PAIRS = "((vec4<u32>(pairs.y) >> by) & vec4<u32>(0x03030303u))";

/** A set bit is 1, a clear one -1: 0xff without all bits but the lowest. */
function signs(bits: string): string {
  return `~(${bits} * vec4<u32>(0xfeu))`;
}

const COLUMN_CODES: Readonly<Record<ColumnKind, string>> = {
  s1: wgsl`
    let bits = vec4<u32>(w_bits[index]);
    return Codes(
      ${signs(LOW_BITS)},
      ${signs(HIGH_BITS)},
    );
  `,
  u2: wgsl`
    ${PAIRS}
    return Codes(${LOW_PAIRS}, ${HIGH_PAIRS});
  `,
  u3: wgsl`
    ${PAIRS}
    let bits = vec4<u32>(w_bits[index]);
    return Codes(
      ${LOW_PAIRS} | (${LOW_BITS} << vec4<u32>(2u)),
      ${HIGH_PAIRS} | (${HIGH_BITS} << vec4<u32>(2u)),
    );
  `,
  u4: wgsl`
    ${NIBBLES}
    return Codes(low, high);
  `,
  u5: wgsl`
    ${NIBBLES}
    let bits = vec4<u32>(w_bits[index]);
    return Codes(
      low | (${LOW_BITS} << vec4<u32>(4u)),
      high | (${HIGH_BITS} << vec4<u32>(4u)),
    );
  `,
  u6: wgsl`
    ${NIBBLES}
    ${PAIRS}
    return Codes(
      low | (${LOW_PAIRS} << vec4<u32>(4u)),
      high | (${HIGH_PAIRS} << vec4<u32>(4u)),
    );
  `,
  i8: `return Codes(w_codes[2u * index], w_codes[2u * index + 1u]);`,
  // A byte is two levels; four of them, each column's in the byte where its code was.
  l4: wgsl`
    let packed = w_codes[index];
    let mask = vec4<u32>(0xffu);
    let first = levels_of(packed & mask) | (levels_of((packed >> vec4<u32>(8u)) & mask) << vec4<u32>(8u));
    let second = levels_of((packed >> vec4<u32>(16u)) & mask) |
      (levels_of(packed >> vec4<u32>(24u)) << vec4<u32>(8u));
    let lower = vec4<u32>(0xffffu);
    return Codes(
      (first & lower) | (second << vec4<u32>(16u)),
      (first >> vec4<u32>(16u)) | (second & ~lower),
    );
  `,
  // Doubled magnitudes 0, 1, 2, 3, 4, 6, 8, 12 of three bits: from 4 on the two lower bits are added, and 2 more to
  // the last. The sign is a complement of five bits: 16 + m or 16 - m, without a carry into the next byte.
  f4: wgsl`
    let packed = w_codes[index];
    let large = (packed >> vec4<u32>(2u)) & vec4<u32>(0x11111111u);
    let added = packed & (large | (large << vec4<u32>(1u)));
    let both = added & (added >> vec4<u32>(1u)) & vec4<u32>(0x11111111u);
    let magnitudes = (packed & vec4<u32>(0x77777777u)) + added + (both << vec4<u32>(1u));
    let nibbles = vec4<u32>(0x0f0f0f0fu);
    return Codes(
      with_sign(magnitudes & nibbles, packed >> vec4<u32>(3u)),
      with_sign((magnitudes >> vec4<u32>(4u)) & nibbles, packed >> vec4<u32>(7u)),
    );
  `,
};

const FUNCTIONS: Partial<Record<CodeKind, string>> = {
  l4: wgsl`
    fn levels_of(pairs: vec4<u32>) -> vec4<u32> {
      return vec4<u32>(w_table[pairs.x], w_table[pairs.y], w_table[pairs.z], w_table[pairs.w]);
    }
  `,
  f4: wgsl`
    fn with_sign(magnitudes: vec4<u32>, raised: vec4<u32>) -> vec4<u32> {
      let negative = raised & vec4<u32>(0x01010101u);
      return ((magnitudes | vec4<u32>(0x10101010u)) ^ (negative * vec4<u32>(0x1fu))) + negative;
    }
  `,
};

function bodyOf(kind: CodeKind): CodeBody {
  if (isOfVectors(kind)) return VECTOR_CODES[kind];
  const functions = FUNCTIONS[kind];
  return { body: COLUMN_CODES[kind], ...functions && { functions } };
}

function isOfVectors(kind: CodeKind): kind is VectorKind {
  return Object.hasOwn(VECTOR_CODES, kind);
}
