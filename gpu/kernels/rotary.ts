// Heads in tensors turned by tables of cosines and sines: an invocation an element, which looks at the other one of its
// pair. Channels behind the tables pass through.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Elements of a workgroup. */
export const ROTARY_BLOCK = 64;

/** Uniforms: `count` elements, `heads`, `width` of a head, `rows` of an item, `pairs` and `entries` of the tables. */
export function rotaryShader(
  { joined, interleaved, positions }: {
    /** Whether heads stand side by side in rows. */
    readonly joined: boolean;
    readonly interleaved: boolean;
    /** One for each row, one of the first row of an item, or rows from 0 on. */
    readonly positions: "rows" | "first" | "none";
  },
): Shader {
  const entry = {
    rows: "u32(positions[row * params.words])",
    first: "u32(positions[0]) + row % params.rows",
    none: "row % params.entries",
  };
  return {
    name: "rotary",
    storage: {
      ...{ x: "array<f32>", cosines: "array<f32>", sines: "array<f32>" },
      ...positions !== "none" && { positions: "array<i32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: {
      ...{ count: "u32", heads: "u32", width: "u32", rows: "u32", pairs: "u32", entries: "u32" },
      words: "u32",
    },
    code: wgsl`
      @compute @workgroup_size(${ROTARY_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${ROTARY_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let channel = i % params.width;
        if (channel >= 2u * params.pairs) {
          y[i] = x[i];
          return;
        }
        let head = i / params.width;
        let row = ${
      joined
        ? "head / params.heads"
        : "head / params.rows / params.heads * params.rows + head % params.rows"
    };
        let pair = ${interleaved ? "channel / 2u" : "channel % params.pairs"};
        let is_second = ${interleaved ? "channel % 2u == 1u" : "channel >= params.pairs"};
        let step = ${interleaved ? "1u" : "params.pairs"};
        let at = (${entry[positions]}) * params.pairs + pair;
        let other = x[select(i + step, i - step, is_second)] * sines[at];
        y[i] = x[i] * cosines[at] + select(-other, other, is_second);
      }
    `,
  };
}
