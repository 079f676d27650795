// RMS and layer norm: a workgroup a row. The row is read again for each pass over it; it comes from a cache.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { workgroupReduction } from "./reduce.ts";

const SIZE = 128;
const SUM = workgroupReduction("sum", { size: SIZE, combine: "a + b" });

/** Uniforms: `rows`, `columns`, `epsilon`, and `base`, which is added to the weight. */
export function rmsNormShader({ hasWeight }: { readonly hasWeight: boolean }): Shader {
  return {
    name: "rms_norm",
    storage: { x: "array<f32>", ...hasWeight && { w: "array<f32>" }, y: "array<f32>" },
    writes: ["y"],
    uniforms: { rows: "u32", columns: "u32", epsilon: "f32", base: "f32" },
    code: wgsl`
      ${SUM}
      ${ROW_KERNEL}
        var squares = 0.0;
        for (var i = lane; i < params.columns; i += ${SIZE}u) {
          let value = x[at + i];
          squares += value * value;
        }
        let factor = 1.0 / sqrt(sum(lane, squares) / f32(params.columns) + params.epsilon);
        for (var i = lane; i < params.columns; i += ${SIZE}u) {
          let gain = ${hasWeight ? "params.base + w[i]" : "1.0"};
          y[at + i] = x[at + i] * factor * gain;
        }
      }
    `,
  };
}

/** Uniforms: `rows`, `columns`, `epsilon`. */
export function layerNormShader(
  { hasWeight, hasBias }: { readonly hasWeight: boolean; readonly hasBias: boolean },
): Shader {
  return {
    name: "layer_norm",
    storage: {
      x: "array<f32>",
      ...hasWeight && { w: "array<f32>" },
      ...hasBias && { b: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: { rows: "u32", columns: "u32", epsilon: "f32" },
    code: wgsl`
      ${SUM}
      ${ROW_KERNEL}
        var total = 0.0;
        for (var i = lane; i < params.columns; i += ${SIZE}u) { total += x[at + i]; }
        let mean = sum(lane, total) / f32(params.columns);
        var squares = 0.0;
        for (var i = lane; i < params.columns; i += ${SIZE}u) {
          let distance = x[at + i] - mean;
          squares += distance * distance;
        }
        let factor = 1.0 / sqrt(sum(lane, squares) / f32(params.columns) + params.epsilon);
        for (var i = lane; i < params.columns; i += ${SIZE}u) {
          let normal = (x[at + i] - mean) * factor;
          y[at + i] = normal${hasWeight ? " * w[i]" : ""}${hasBias ? " + b[i]" : ""};
        }
      }
    `,
  };
}

// The head of a kernel with a workgroup a row. A whole workgroup leaves or stays, so barriers stay uniform.
const ROW_KERNEL = wgsl`
  @compute @workgroup_size(${SIZE})
  ${GROUP_MAIN}
    let row = flat_workgroup(group, groups);
    if (row >= params.rows) { return; }
    let at = row * params.columns;
`;
