// Slices along an axis by index, element by element, as words of any meaning. A negative index counts from the end;
// of an index of 64 bits the low word says it all.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Elements of a workgroup. */
export const GATHER_BLOCK = 64;

/** Uniforms: `count` elements, `size` of the axis, `inner` elements behind it, `picks`, `wide`: words of an index. */
export const gatherShader: Shader = {
  name: "gather",
  storage: { x: "array<u32>", indices: "array<i32>", y: "array<u32>" },
  writes: ["y"],
  uniforms: { count: "u32", size: "u32", inner: "u32", picks: "u32", wide: "u32" },
  code: wgsl`
    @compute @workgroup_size(${GATHER_BLOCK})
    ${GROUP_MAIN}
      let i = flat_workgroup(group, groups) * ${GATHER_BLOCK}u + lane;
      if (i >= params.count) { return; }
      let line = i / params.inner;
      let index = indices[line % params.picks * params.wide];
      let pick = select(u32(index), u32(index + i32(params.size)), index < 0);
      y[i] = x[(line / params.picks * params.size + pick) * params.inner + i % params.inner];
    }
  `,
};

/**
 * Runs by tuples of indices; uniforms: `count` words, `run` of a slice, `tuples` and words `of_item` of an item of the
 * batch, sizes `n0`… of the dims that tuples choose from, and words `s0`… between their elements.
 */
export function gatherNdShader(
  { depth, wide }: { readonly depth: number; readonly wide: boolean },
): Shader {
  const dims = Array.from({ length: depth }, (_, dim) => dim);
  return {
    name: "gather_nd",
    storage: { x: "array<u32>", indices: "array<i32>", y: "array<u32>" },
    writes: ["y"],
    uniforms: {
      ...{ count: "u32", run: "u32", tuples: "u32", of_item: "u32" },
      ...Object.fromEntries(dims.flatMap((dim) => [[`n${dim}`, "i32"], [`s${dim}`, "u32"]])),
    },
    code: wgsl`
      @compute @workgroup_size(${GATHER_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${GATHER_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let tuple = i / params.run;
        var at = tuple / params.tuples * params.of_item + i % params.run;
        ${
      dims.map((dim) =>
        wgsl`
          let index${dim} = indices[(tuple * ${depth}u + ${dim}u) * ${wide ? 2 : 1}u];
          at += u32(index${dim} + select(0, params.n${dim}, index${dim} < 0)) * params.s${dim};
        `
      )
    }
        y[i] = x[at];
      }
    `,
  };
}
