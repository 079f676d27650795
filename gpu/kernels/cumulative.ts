// Running totals along lines, whose elements are `inner` apart: an invocation a line.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Lines of a workgroup. */
export const CUMULATIVE_BLOCK = 64;

/** Uniforms: `lines` in all, `length` of a line, `inner` between its elements. */
export function cumulativeShader(
  { type, product, exclusive, reverse }: {
    readonly type: "f32" | "i32" | "u32";
    readonly product: boolean;
    readonly exclusive: boolean;
    readonly reverse: boolean;
  },
): Shader {
  const next = `total ${product ? "*" : "+"}= x[at];`;
  return {
    name: "cumulative",
    storage: { x: `array<${type}>`, y: `array<${type}>` },
    writes: ["y"],
    uniforms: { lines: "u32", length: "u32", inner: "u32" },
    code: wgsl`
      @compute @workgroup_size(${CUMULATIVE_BLOCK})
      ${GROUP_MAIN}
        let line = flat_workgroup(group, groups) * ${CUMULATIVE_BLOCK}u + lane;
        if (line >= params.lines) { return; }
        let start = line / params.inner * params.inner * params.length + line % params.inner;
        var total = ${type}(${product ? 1 : 0});
        for (var i = 0u; i < params.length; i++) {
          let at = start + ${reverse ? "(params.length - 1u - i)" : "i"} * params.inner;
          ${exclusive ? `y[at] = total; ${next}` : `${next} y[at] = total;`}
        }
      }
    `,
  };
}
