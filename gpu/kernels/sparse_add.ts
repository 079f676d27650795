// base + x · Sᵀ with a sparse matrix S in rows: one invocation an element of the result walks the entries of
// its row of S. Entries are few (outliers of a quantised matrix), so nothing is shared between invocations.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Elements of a workgroup. */
export const SPARSE_BLOCK = 64;

/** Uniforms: `count` elements of y, its columns `outputs`, and the columns of x, `inner`. */
export const sparseAddShader: Shader = {
  name: "sparse_add",
  storage: {
    base: "array<f32>",
    x: "array<f32>",
    starts: "array<u32>",
    columns: "array<u32>",
    values: "array<f32>",
    y: "array<f32>",
  },
  writes: ["y"],
  uniforms: { count: "u32", outputs: "u32", inner: "u32" },
  code: wgsl`
    @compute @workgroup_size(${SPARSE_BLOCK})
    ${GROUP_MAIN}
      let i = flat_workgroup(group, groups) * ${SPARSE_BLOCK}u + lane;
      if (i >= params.count) { return; }
      let row = i / params.outputs * params.inner;
      let column = i % params.outputs;
      var total = base[i];
      for (var e = starts[column]; e < starts[column + 1u]; e++) {
        total += x[row + columns[e]] * values[e];
      }
      y[i] = total;
    }
  `,
};
