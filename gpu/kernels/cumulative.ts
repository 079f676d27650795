// Running totals along lines, whose elements are `inner` apart: an invocation a line, or a workgroup a long one, which
// adapters that compute on the CPU would not walk to its end (Mesa's leave a loop after 65,535 rounds).

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Lines of a workgroup, or invocations of a line. */
export const CUMULATIVE_BLOCK = 64;

/** Uniforms: `lines` in all, `length` of a line, `inner` between its elements. */
export function cumulativeShader(
  { type, product, exclusive, reverse, long }: {
    readonly type: "f32" | "i32" | "u32";
    readonly product: boolean;
    readonly exclusive: boolean;
    readonly reverse: boolean;
    /** Whether a workgroup walks along each line, every invocation a part of it. */
    readonly long: boolean;
  },
): Shader {
  const sign = product ? "*" : "+", none = `${type}(${product ? 1 : 0})`;
  const next = `total ${sign}= x[at];`;
  const step = exclusive ? `y[at] = total; ${next}` : `${next} y[at] = total;`;
  const walk = (from: string, to: string, body: string) =>
    wgsl`
      for (var i = ${from}; i < ${to}; i++) {
        let at = start + ${reverse ? "(params.length - 1u - i)" : "i"} * params.inner;
        ${body}
      }
    `;
  const index = "flat_workgroup(group, groups)";
  const line = long ? index : `${index} * ${CUMULATIVE_BLOCK}u + lane`;
  return {
    name: "cumulative",
    storage: { x: `array<${type}>`, y: `array<${type}>` },
    writes: ["y"],
    uniforms: { lines: "u32", length: "u32", inner: "u32" },
    code: wgsl`
      ${long ? `var<workgroup> totals: array<${type}, ${CUMULATIVE_BLOCK}>;` : ""}

      @compute @workgroup_size(${CUMULATIVE_BLOCK})
      ${GROUP_MAIN}
        let line = ${line};
        if (line >= params.lines) { return; }
        let start = line / params.inner * params.inner * params.length + line % params.inner;
        var total = ${none};
        ${
      long
        ? wgsl`
          let part = (params.length + ${CUMULATIVE_BLOCK - 1}u) / ${CUMULATIVE_BLOCK}u;
          let first = lane * part;
          let end = min(first + part, params.length);
          ${walk("first", "end", next)}
          totals[lane] = total;
          workgroupBarrier();
          total = ${none};
          for (var before = 0u; before < lane; before++) { total ${sign}= totals[before]; }
          ${walk("first", "end", step)}
        `
        : walk("0u", "params.length", step)
    }
      }
    `,
  };
}
