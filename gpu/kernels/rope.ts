// Rotary embeddings: the table of cosines and sines of a step, and the rotation of heads by it.
//
// Angles need more than float32: position · frequency of a long context has 17 bits before the point. Instead
// of a wide float the table counts in turns, as fixed point: frequency / 2π as 64 bits behind the point, times
// the position, modulo one turn. That is integer arithmetic, exact on every device, and what is left is
// within an eighth of a turn of a multiple of a quarter, where short polynomials are exact to float32.

import type { Shader } from "../kernel.ts";
import { float, GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Positions × pairs of a workgroup. */
export const ROPE_BLOCK = 64;

/**
 * Frequencies, in radians a position, as turns: 64 bits behind the point, low word first.
 *
 * @throws {RangeError} If one is not finite.
 */
export function frequencyTurns(frequencies: Float32Array): Uint32Array {
  const turns = new BigUint64Array(frequencies.length);
  frequencies.forEach((frequency, i) => {
    const turn = frequency / (2 * Math.PI);
    // In two halves, so that the low bits of small frequencies are kept.
    const high = turn * 2 ** 32;
    const whole = Math.floor(high);
    turns[i] = BigInt.asUintN(
      64,
      BigInt(whole) * 2n ** 32n + BigInt(Math.round((high - whole) * 2 ** 32)),
    );
  });
  return new Uint32Array(turns.buffer);
}

const SINE_COSINE = wgsl`
  // High word of a product of words.
  fn high_product(a: u32, b: u32) -> u32 {
    let low_a = a & 0xffffu;
    let high_a = a >> 16u;
    let low_b = b & 0xffffu;
    let high_b = b >> 16u;
    let middle = high_a * low_b + ((low_a * low_b) >> 16u);
    let carry = low_a * high_b + (middle & 0xffffu);
    return high_a * high_b + (middle >> 16u) + (carry >> 16u);
  }

  // Cosine and sine of a fraction of a turn, 32 bits behind the point.
  fn cosine_sine(turn: u32) -> vec2<f32> {
    let quadrant = (turn + 0x20000000u) >> 30u;
    let rest = bitcast<i32>(turn - (quadrant << 30u));
    let r = f32(rest) * ${float(2 * Math.PI / 2 ** 32)};
    let q = r * r;
    let s = r + r * q * (-0.16666667 + q * (0.008333331 + q * (-0.00019840874 + q * 2.7525562e-06)));
    let c = 1.0 + q * (-0.5 + q * (0.041666667 + q * (-0.0013888889 + q * (2.4801587e-05 - q * 2.7557319e-07))));
    let swapped = select(vec2<f32>(c, s), vec2<f32>(s, c), (quadrant & 1u) == 1u);
    let signs = vec2<bool>(quadrant == 1u || quadrant == 2u, quadrant >= 2u);
    return select(swapped, -swapped, signs);
  }
`;

/** y[row] = cosines, then sines; uniforms: `count` = rows · pairs, `pairs`, `magnitude`, `beyond`. */
export function ropeTableShader({ hasSpans }: { readonly hasSpans: boolean }): Shader {
  return {
    name: "rope_table",
    storage: {
      positions: "array<i32>",
      turns: "array<vec2<u32>>",
      ...hasSpans && { spans: "array<i32>", long_turns: "array<vec2<u32>>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: { count: "u32", pairs: "u32", magnitude: "f32", ...hasSpans && { beyond: "i32" } },
    code: wgsl`
      ${SINE_COSINE}
      @compute @workgroup_size(${ROPE_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${ROPE_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let row = i / params.pairs;
        let pair = i % params.pairs;
        var frequency = turns[pair];
        ${hasSpans ? "if (spans[row] > params.beyond) { frequency = long_turns[pair]; }" : ""}
        let position = bitcast<u32>(positions[row]);
        let turn = position * frequency.y + high_product(position, frequency.x);
        let both = cosine_sine(turn) * params.magnitude;
        y[2u * row * params.pairs + pair] = both.x;
        y[(2u * row + 1u) * params.pairs + pair] = both.y;
      }
    `,
  };
}

/** Uniforms: `count` = rows · heads · ceil(width / 2) pairs of channels, `heads`, `width`, `pairs` rotated. */
export function ropeShader({ interleaved }: { readonly interleaved: boolean }): Shader {
  return {
    name: "rope",
    storage: { x: "array<f32>", table: "array<f32>", y: "array<f32>" },
    writes: ["y"],
    uniforms: { count: "u32", heads: "u32", width: "u32", pairs: "u32" },
    code: wgsl`
      @compute @workgroup_size(${ROPE_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${ROPE_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let per_head = (params.width + 1u) / 2u;
        let head = i / per_head;
        let pair = i % per_head;
        let at = head * params.width;
        if (pair < params.pairs) {
          let angles = head / params.heads * 2u * params.pairs + pair;
          let cosine = table[angles];
          let sine = table[angles + params.pairs];
          let first = at + ${interleaved ? "2u * pair" : "pair"};
          let second = first + ${interleaved ? "1u" : "params.pairs"};
          let a = x[first];
          let b = x[second];
          y[first] = a * cosine - b * sine;
          y[second] = b * cosine + a * sine;
        } else {
          // Channels behind the rotated ones pass through.
          let channel = 2u * pair;
          y[at + channel] = x[at + channel];
          if (channel + 1u < params.width) { y[at + channel + 1u] = x[at + channel + 1u]; }
        }
      }
    `,
  };
}
