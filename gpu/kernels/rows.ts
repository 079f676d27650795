// Copies and sums of rows: rows by index, rows of two tensors joined, the weighted sum of the items of a row, a
// row whose first half gates the second.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Elements of a workgroup. */
export const ROWS_BLOCK = 64;

/** A kernel with an invocation an element of the result, of `count`. */
function elementKernel(body: string): string {
  return wgsl`
    @compute @workgroup_size(${ROWS_BLOCK})
    ${GROUP_MAIN}
      let i = flat_workgroup(group, groups) * ${ROWS_BLOCK}u + lane;
      if (i >= params.count) { return; }
      ${body}
    }
  `;
}

/** y[row] = x[indices[row]]; uniforms: `count`, `columns`. */
export const selectRowsShader: Shader = {
  name: "select_rows",
  storage: { x: "array<f32>", indices: "array<u32>", y: "array<f32>" },
  writes: ["y"],
  uniforms: { count: "u32", columns: "u32" },
  code: elementKernel(
    "y[i] = x[indices[i / params.columns] * params.columns + i % params.columns];",
  ),
};

/** y[row] = a[row], then b[row]; uniforms: `count`, `left` and `right` columns. */
export const joinColumnsShader: Shader = {
  name: "join_columns",
  storage: { a: "array<f32>", b: "array<f32>", y: "array<f32>" },
  writes: ["y"],
  uniforms: { count: "u32", left: "u32", right: "u32" },
  code: elementKernel(wgsl`
    let row = i / (params.left + params.right);
    let column = i % (params.left + params.right);
    if (column < params.left) { y[i] = a[row * params.left + column]; }
    else { y[i] = b[row * params.right + column - params.left]; }
  `),
};

/** y[row] = Σ weights[row, item] · x[row, item]; uniforms: `count`, `items`, `columns`. */
export const weightedSumShader: Shader = {
  name: "weighted_sum",
  storage: { x: "array<f32>", weights: "array<f32>", y: "array<f32>" },
  writes: ["y"],
  uniforms: { count: "u32", items: "u32", columns: "u32" },
  code: elementKernel(wgsl`
    let row = i / params.columns;
    let column = i % params.columns;
    var total = 0.0;
    for (var item = 0u; item < params.items; item++) {
      let at = row * params.items + item;
      total += weights[at] * x[at * params.columns + column];
    }
    y[i] = total;
  `),
};

/** y[row] = activation(first half of x[row]) · second half; uniforms: `count`, `width` of a half. */
export function gluHalvesShader(activation: string): Shader {
  return {
    name: "glu_halves",
    storage: { x: "array<f32>", y: "array<f32>" },
    writes: ["y"],
    uniforms: { count: "u32", width: "u32" },
    code: [
      activation,
      elementKernel(wgsl`
        let gate = i + i / params.width * params.width;
        y[i] = activation(vec4<f32>(x[gate])).x * x[gate + params.width];
      `),
    ].join("\n"),
  };
}
