// Where the largest or smallest element of each line stands: an invocation a line. Of equal elements the first or the
// last one; NaN is both largest and smallest, as in numpy.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { ELEMENTS, type ElementType, readElement } from "./element_types.ts";
import { FLOAT_TESTS } from "./element_functions.ts";

/** Lines of a workgroup. */
export const ARG_BLOCK = 64;

/** What is searched. */
export interface ArgReduceShape {
  readonly type: ElementType;
  readonly index: "i32" | "pair";
  readonly largest: boolean;
  readonly last: boolean;
}

/** Uniforms: `lines` in all, `length` of a line, `inner` between its elements. */
export function argReduceShader({ type, index, largest, last }: ArgReduceShape): Shader {
  const { memory, value } = ELEMENTS[type];
  const isFloat = value === "f32", beats = largest ? ">" : "<";
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

      @compute @workgroup_size(${ARG_BLOCK})
      ${GROUP_MAIN}
        let line = flat_workgroup(group, groups) * ${ARG_BLOCK}u + lane;
        if (line >= params.lines) { return; }
        let start = line / params.inner * params.inner * params.length + line % params.inner;
        var best = 0u;
        var top = ${readElement(type, { variable: "x", place: "start" })};
        for (var i = 1u; i < params.length; i++) {
          let at = start + i * params.inner;
          let a = ${readElement(type, { variable: "x", place: "at" })};
          if (is_better(a, top)) {
            best = i;
            top = a;
          }
        }
        y[line] = ${index === "pair" ? "vec2<u32>(best, 0u)" : "i32(best)"};
      }
    `,
  };
}

function nanFirst(last: boolean): string {
  return wgsl`
    if (is_nan(top)) { return ${last ? "is_nan(a)" : "false"}; }
    if (is_nan(a)) { return true; }
  `;
}
