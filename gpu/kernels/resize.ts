// Planes resized along both of their dims. Where elements only stand several times, a place is divided. Else which elements make a place, and how much each weighs, comes in
// tables that were computed before in float64, so that every kind of interpolation is one shader. An element that
// weighs nothing is left out, for it may be infinite.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Elements of a workgroup. */
export const RESIZE_BLOCK = 64;

/**
 * Uniforms: `count` elements, sizes of the planes, taps of a row and of a column. Tables of rows and columns: taps of
 * the first place, then of the next.
 */
export const resizeShader: Shader = {
  name: "resize",
  storage: {
    x: "array<f32>",
    ...{ row_indices: "array<u32>", row_weights: "array<f32>" },
    ...{ column_indices: "array<u32>", column_weights: "array<f32>" },
    y: "array<f32>",
  },
  writes: ["y"],
  uniforms: {
    ...{ count: "u32", height: "u32", width: "u32", out_height: "u32", out_width: "u32" },
    ...{ row_taps: "u32", column_taps: "u32" },
  },
  code: wgsl`
    @compute @workgroup_size(${RESIZE_BLOCK})
    ${GROUP_MAIN}
      let i = flat_workgroup(group, groups) * ${RESIZE_BLOCK}u + lane;
      if (i >= params.count) { return; }
      let column = i % params.out_width;
      let rest = i / params.out_width;
      let row = rest % params.out_height;
      let plane = rest / params.out_height * params.height;
      var sum = 0.0;
      for (var r = row * params.row_taps; r < (row + 1u) * params.row_taps; r++) {
        let at = (plane + row_indices[r]) * params.width;
        var line = 0.0;
        for (var c = column * params.column_taps; c < (column + 1u) * params.column_taps; c++) {
          let weight = column_weights[c];
          line += select(x[at + column_indices[c]] * weight, 0.0, weight == 0.0);
        }
        let weight = row_weights[r];
        sum += select(line * weight, 0.0, weight == 0.0);
      }
      y[i] = sum;
    }
  `,
};

/** Each element `scale_h` × `scale_w` times. Uniforms: `count` elements of the result, sizes of its planes. */
export const repeatShader: Shader = {
  name: "resize_repeat",
  storage: { x: "array<f32>", y: "array<f32>" },
  writes: ["y"],
  uniforms: {
    ...{ count: "u32", out_height: "u32", out_width: "u32", scale_h: "u32", scale_w: "u32" },
  },
  code: wgsl`
    @compute @workgroup_size(${RESIZE_BLOCK})
    ${GROUP_MAIN}
      let i = flat_workgroup(group, groups) * ${RESIZE_BLOCK}u + lane;
      if (i >= params.count) { return; }
      let rest = i / params.out_width;
      let plane = rest / params.out_height * (params.out_height / params.scale_h);
      let row = plane + rest % params.out_height / params.scale_h;
      y[i] = x[row * (params.out_width / params.scale_w) + i % params.out_width / params.scale_w];
    }
  `,
};
