// Where the largest or smallest element of each line stands: an invocation a line, or a workgroup a long one, which
// adapters that compute on the CPU would not walk to its end (Mesa's leave a loop after 65,535 rounds). Of equal elements
// the first or the last one; NaN is both largest and smallest, as in numpy.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { ELEMENTS, type ElementType, readElement } from "./element_types.ts";
import { FLOAT_TESTS } from "./element_functions.ts";

/** Lines of a workgroup, or invocations of a line. */
export const ARG_BLOCK = 64;

/** What is searched. */
export interface ArgReduceShape {
  readonly type: ElementType;
  readonly index: "i32" | "pair";
  readonly largest: boolean;
  readonly last: boolean;
  /** Whether a workgroup walks along each line, every invocation a part of it. */
  readonly long: boolean;
}

/** Uniforms: `lines` in all, `length` of a line, `inner` between its elements. */
export function argReduceShader({ type, index, largest, last, long }: ArgReduceShape): Shader {
  const { memory, value } = ELEMENTS[type];
  const isFloat = value === "f32", beats = largest ? ">" : "<";
  const read = (place: string) => readElement(type, { variable: "x", place });
  const walk = (from: string, to: string) =>
    wgsl`
      for (var i = ${from}; i < ${to}; i++) {
        let at = start + i * params.inner;
        let a = ${read("at")};
        if (is_better(a, top)) {
          best = i;
          top = a;
        }
      }
    `;
  const group = "flat_workgroup(group, groups)";
  const line = long ? group : `${group} * ${ARG_BLOCK}u + lane`;
  const write = `y[line] = ${index === "pair" ? "vec2<u32>(best, 0u)" : "i32(best)"};`;
  return {
    name: `arg_${largest ? "max" : "min"}`,
    storage: { x: `array<${memory}>`, y: `array<${ELEMENTS[index].memory}>` },
    writes: ["y"],
    uniforms: { lines: "u32", length: "u32", inner: "u32" },
    code: wgsl`
      ${isFloat ? FLOAT_TESTS : ""}

      fn is_better(a: ${value}, top: ${value}) -> bool {
        ${isFloat ? nanFirst(last) : ""}
        return a ${beats}${last ? "=" : ""} top;
      }

      ${long ? partsOf(value) : ""}

      @compute @workgroup_size(${ARG_BLOCK})
      ${GROUP_MAIN}
        let line = ${line};
        if (line >= params.lines) { return; }
        let start = line / params.inner * params.inner * params.length + line % params.inner;
        ${
      long
        ? wgsl`
          let part = (params.length + ${ARG_BLOCK - 1}u) / ${ARG_BLOCK}u;
          // An invocation behind the end looks at the last element once more.
          let first = min(lane * part, params.length - 1u);
          let own = start + first * params.inner;
          var best = first;
          var top = ${read("own")};
          ${walk("first + 1u", "min(first + part, params.length)")}
          bests[lane] = best;
          tops[lane] = top;
          workgroupBarrier();
          if (lane > 0u) { return; }
          for (var other = 1u; other < ${ARG_BLOCK}u; other++) {
            if (is_better(tops[other], top)) {
              best = bests[other];
              top = tops[other];
            }
          }
        `
        : wgsl`
          var best = 0u;
          var top = ${read("start")};
          ${walk("1u", "params.length")}
        `
    }
        ${write}
      }
    `,
  };
}

/** What the invocations of a workgroup have found. */
function partsOf(value: string): string {
  return wgsl`
    var<workgroup> bests: array<u32, ${ARG_BLOCK}>;
    var<workgroup> tops: array<${value}, ${ARG_BLOCK}>;
  `;
}

function nanFirst(last: boolean): string {
  return wgsl`
    if (is_nan(top)) { return ${last ? "is_nan(a)" : "false"}; }
    if (is_nan(a)) { return true; }
  `;
}
