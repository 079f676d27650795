// Floats as what subgroup matrices multiply, made before the product in scratch memory: a number is two halves, which together
// have all but the last two bits of it.

import type { Capabilities, Shader } from "../../kernel.ts";
import { float, GROUP_MAIN, wgsl } from "../../wgsl.ts";

const WORKGROUP = 64;

/**
 * `eight`: two quads as halves; `nearest`: what they keep of a quad, found by its bits. What the conversion gives back would do, but a
 * compiler may take that for the number itself, and then nothing is left: on an H200 results were those of one half.
 */
export const EIGHT: string = wgsl`
  fn eight(a: vec4<f32>, b: vec4<f32>) -> vec4<u32> {
    return vec4<u32>(
      pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw),
    );
  }

  fn nearest(a: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>((bitcast<vec4<u32>>(a) + vec4<u32>(0x1000u)) & vec4<u32>(0xffffe000u));
  }
`;

/** Halves of a number: one where it may be rounded, else two. */
export type HalvesParts = 1 | 2;

/** How many a device wants. */
export function halvesParts({ roundsToHalves }: Pick<Capabilities, "roundsToHalves">): HalvesParts {
  return roundsToHalves ? 1 : 2;
}

/** Statements that store eight numbers, quads `low` and `high`, as halves `to` of y, their second parts `behind` the first. */
export function putHalves(parts: HalvesParts, behind: string): string {
  if (parts === 1) return "y[to] = eight(low, high);";
  return wgsl`
    let low_half = nearest(low);
    let high_half = nearest(high);
    y[to] = eight(low_half, high_half);
    y[to + ${behind}] = eight(low - low_half, high - high_half);
  `;
}

/** Largest magnitude of a half: what is left of numbers far below it is no subnormal half, which a card may take for zero. */
export const LARGEST_HALF: number = 2 ** 14;

/** What numbers are multiplied by before they become halves, where the largest of them is `top`; next to nothing is zero. */
export const HALVES_FACTOR: string = `select(0.0, ${float(LARGEST_HALF)} / top, top > ${
  float(2 ** -100)
})`;

/**
 * Rows of floats as halves: numbers divided by a part of the row's largest magnitude, so that nothing leaves the range of
 * float16, and behind all of them, where a number has two parts, what roundings to 11 bits left. Bindings x, y, tops: those
 * divisors. Uniforms: rows, eights of a row of x; workgroups: rows.
 */
export function rowHalves(parts: HalvesParts): Shader {
  return {
    name: "row_halves",
    storage: { x: "array<vec4<f32>>", y: "array<vec4<u32>>", tops: "array<f32>" },
    writes: ["y", "tops"],
    uniforms: { rows: "u32", eighths: "u32" },
    code: wgsl`
      ${EIGHT}

      var<workgroup> largest: array<f32, ${WORKGROUP}>;

      @compute @workgroup_size(${WORKGROUP})
      ${GROUP_MAIN}
        let row = min(flat_workgroup(group, groups), params.rows - 1u);
        let first = row * 2u * params.eighths;
        var own = vec4<f32>();
        for (var quad = lane; quad < 2u * params.eighths; quad += ${WORKGROUP}u) {
          own = max(own, abs(x[first + quad]));
        }
        largest[lane] = max(max(own.x, own.y), max(own.z, own.w));
        for (var other = ${WORKGROUP / 2}u; other > 0u; other >>= 1u) {
          workgroupBarrier();
          if (lane < other) { largest[lane] = max(largest[lane], largest[lane + other]); }
        }
        workgroupBarrier();
        let top = largest[0];
        let inverse = ${HALVES_FACTOR};
        for (var at = lane; at < params.eighths; at += ${WORKGROUP}u) {
          let low = x[first + 2u * at] * inverse;
          let high = x[first + 2u * at + 1u] * inverse;
          let to = row * ${parts}u * params.eighths + at;
          ${putHalves(parts, "params.eighths")}
        }
        if (lane == 0u) { tops[row] = top / ${float(LARGEST_HALF)}; }
      }
    `,
  };
}
