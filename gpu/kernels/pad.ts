// Margins that repeat the tensor, mirrored, by its border or again: an invocation a word of the result finds the index
// that each of its own stands for.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Words of a workgroup, and dims. */
export const PAD_BLOCK = 64, PAD_RANK = 5;

/** Where index `i`, which may lie outside, is read from, by mode; `n` is the size. */
const SOURCES = {
  reflect: wgsl`
    let period = max(1, 2 * n - 2);
    let turned = within(i, period);
    return select(turned, period - turned, turned >= n);
  `,
  edge: "return clamp(i, 0, n - 1);",
  wrap: "return within(i, n);",
} as const;

/** How margins are filled. */
export type PadMode = keyof typeof SOURCES;

/** Uniforms: `count` words, `words` of an element, for each dim its size `n`, the margin `before` and the size `out`. */
export function padShader(mode: PadMode): Shader {
  const dims = Array.from({ length: PAD_RANK }, (_, dim) => dim);
  return {
    name: `pad_${mode}`,
    storage: { x: "array<u32>", y: "array<u32>" },
    writes: ["y"],
    uniforms: {
      ...{ count: "u32", words: "u32" },
      ...Object.fromEntries(
        dims.flatMap((dim) => [[`n${dim}`, "i32"], [`before${dim}`, "i32"], [`out${dim}`, "u32"]]),
      ),
    },
    code: wgsl`
      // A remainder of a number below 0 is undefined in Vulkan, and not what WGSL says on an H200; a quotient is defined.
      fn within(i: i32, n: i32) -> i32 {
        let rest = i - i / n * n;
        return select(rest, rest + n, rest < 0);
      }

      fn source(i: i32, n: i32) -> i32 {
        ${SOURCES[mode]}
      }

      @compute @workgroup_size(${PAD_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${PAD_BLOCK}u + lane;
        if (i >= params.count) { return; }
        var rest = i / params.words;
        var at = 0;
        var step = 1;
        ${
      dims.toReversed().map((dim) =>
        wgsl`
          at += step * source(i32(rest % params.out${dim}) - params.before${dim}, params.n${dim});
          rest /= params.out${dim};
          step *= params.n${dim};
        `
      )
    }
        y[i] = x[u32(at) * params.words + i % params.words];
      }
    `,
  };
}
