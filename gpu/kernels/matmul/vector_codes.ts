// WGSL that reads codes of several columns: indices of points with signs, digits of base 3 (layouts/point_planes.ts,
// layouts/code_layout.ts). Coordinates of points are bytes of `w_table`, so that a point of eight columns is two
// of its words, and signs are applied to four bytes at a time.

import type { VectorKind } from "../../layouts/code_planes.ts";
import { wgsl } from "../../wgsl.ts";

/** How a kind is read: statements that return `Codes`, and functions that they call. */
export interface CodeBody {
  readonly body: string;
  readonly functions?: string;
}

/** Four positive bytes, negative where a bit of the lowest four is set. */
const SIGNED = wgsl`
  fn signed(word: u32, signs: u32) -> u32 {
    // Four copies seven bits apart bring bit i to byte i.
    let negative = ((signs & 0xfu) * 0x00204081u) & 0x01010101u;
    return (word ^ (negative * 0xffu)) + negative;
  }
`;

/** Points of eight columns whose indices are `points` and whose signs are eight bits of each of `signs`. */
const SIGNED_POINTS = wgsl`
  let at = points << vec4<u32>(1u);
  return Codes(
    vec4<u32>(
      signed(w_table[at.x], signs.x), signed(w_table[at.x + 1u], signs.x >> 4u),
      signed(w_table[at.y], signs.y), signed(w_table[at.y + 1u], signs.y >> 4u),
    ),
    vec4<u32>(
      signed(w_table[at.z], signs.z), signed(w_table[at.z + 1u], signs.z >> 4u),
      signed(w_table[at.w], signs.w), signed(w_table[at.w + 1u], signs.w >> 4u),
    ),
  );
`;

const BYTES_BY = "vec4<u32>(0u, 8u, 16u, 24u)";
/** A byte of a group of a plane of them. */
const UPPER_BYTE = "w_upper[index >> 2u] >> ((index & 3u) << 3u)";

/** Index and signs in 16 bits, four a group. */
function sixteenBits(index: number, signs: string): CodeBody {
  return {
    body: wgsl`
      let pair = w_pairs[index];
      let codes = vec4<u32>(pair.x, pair.x >> 16u, pair.y, pair.y >> 16u) & vec4<u32>(0xffffu);
      let points = codes & vec4<u32>(${2 ** index - 1}u);
      let stored = codes >> vec4<u32>(${index}u);
      let signs = ${signs};
      ${SIGNED_POINTS}
    `,
    functions: SIGNED,
  };
}

/** Points of four columns, eight a group; `upper` has the ninth bits of their indices. */
function fours(upper: string): CodeBody {
  const point = (p: number) => {
    const byte = `(pair.${p < 4 ? "x" : "y"} >> ${8 * (p & 3)}u) & 0xffu`;
    return upper === "" ? byte : `(${byte}) | (((upper >> ${p}u) & 1u) << 8u)`;
  };
  const word = (p: number) => `signed(w_table[${point(p)}], signs >> ${4 * p}u)`;
  return {
    body: wgsl`
      let first = 3u * index;
      let pair = vec2<u32>(w_points[first], w_points[first + 1u]);
      let signs = w_points[first + 2u];
      ${upper === "" ? [] : [upper]}
      return Codes(
        vec4<u32>(
          ${[0, 1, 2, 3].map((p) => `${word(p)},`)}
        ),
        vec4<u32>(
          ${[4, 5, 6, 7].map((p) => `${word(p)},`)}
        ),
      );
    `,
    functions: SIGNED,
  };
}

/** How each kind is read. */
export const VECTOR_CODES: Readonly<Record<VectorKind, CodeBody>> = {
  p8: sixteenBits(8, "stored"),
  // The eighth sign makes the number of minus signs even.
  p9: sixteenBits(9, "stored | ((countOneBits(stored) & vec4<u32>(1u)) << vec4<u32>(7u))"),
  p10: {
    body: wgsl`
      let pair = w_pairs[index];
      let upper = vec4<u32>(${UPPER_BYTE});
      let points = ((vec4<u32>(pair.x) >> ${BYTES_BY}) & vec4<u32>(0xffu)) |
        (((upper >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u)) << vec4<u32>(8u));
      let signs = vec4<u32>(pair.y) >> ${BYTES_BY};
      ${SIGNED_POINTS}
    `,
    functions: SIGNED,
  },
  // Coordinates are 8, 16 or 24, and one more or less: no byte runs over.
  p11: {
    body: wgsl`
      let upper = vec4<u32>(w_upper[index >> 1u] >> ((index & 1u) << 4u)) >> vec4<u32>(0u, 4u, 8u, 12u);
      let points = ((vec4<u32>(w_bits[index]) >> ${BYTES_BY}) & vec4<u32>(0xffu)) |
        ((upper & vec4<u32>(7u)) << vec4<u32>(8u));
      let at = points << vec4<u32>(1u);
      let shift = select(vec4<u32>(0x01010101u), vec4<u32>(0xfefefeffu), (upper & vec4<u32>(8u)) != vec4<u32>());
      return Codes(
        vec4<u32>(w_table[at.x], w_table[at.x + 1u], w_table[at.y], w_table[at.y + 1u]) + shift.xxyy,
        vec4<u32>(w_table[at.z], w_table[at.z + 1u], w_table[at.w], w_table[at.w + 1u]) + shift.zzww,
      );
    `,
  },
  q8: fours(""),
  q9: fours(`let upper = ${UPPER_BYTE};`),
  // A digit is what is left of a fraction of 256 times a power of 3, times 3, over 8 bits.
  t5: {
    body: wgsl`
      let block = 13u * (index >> 3u);
      let group = index & 7u;
      if (group < 5u) {
        return Codes(
          digits(four_words(block), vec4<u32>(group)), digits(four_words(block + 4u), vec4<u32>(group)),
        );
      }
      let sixteen = four_words(block + 8u);
      let first = 2u * (group - 5u);
      if (group < 7u) {
        return Codes(digits(sixteen, vec4<u32>(first)), digits(sixteen, vec4<u32>(first + 1u)));
      }
      return Codes(
        digits(sixteen, vec4<u32>(4u)), digits(vec4<u32>(w_digits[block + 12u]), vec4<u32>(0u, 1u, 2u, 3u)),
      );
    `,
    functions: wgsl`
      fn four_words(at: u32) -> vec4<u32> {
        return vec4<u32>(w_digits[at], w_digits[at + 1u], w_digits[at + 2u], w_digits[at + 3u]);
      }

      fn digits(words: vec4<u32>, number: vec4<u32>) -> vec4<u32> {
        // 3, 9, 27 and 81 are sums of shifts; a power of 3 below 256 times a byte fits 16 bits.
        let power = select(vec4<u32>(1u), vec4<u32>(3u), (number & vec4<u32>(1u)) == vec4<u32>(1u)) *
          select(vec4<u32>(1u), vec4<u32>(9u), (number & vec4<u32>(2u)) == vec4<u32>(2u)) *
          select(vec4<u32>(1u), vec4<u32>(81u), number == vec4<u32>(4u));
        let mask = vec4<u32>(0x00ff00ffu);
        let even = (((words & mask) * power) & mask) * vec4<u32>(3u);
        let odd = ((((words >> vec4<u32>(8u)) & mask) * power) & mask) * vec4<u32>(3u);
        return ((even >> vec4<u32>(8u)) & mask) | (odd & ~mask);
      }
    `,
  },
};
