// Adds up the sums that the splits of a tile kernel made, with what is added to them, and norms the rows of that into 8 bit:
// a workgroup a row, whose sums never leave registers in between.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { normedQuads, normMain, type RmsNormQ8Params } from "../rms_norm_q8.ts";
import { type Addends, finishedBy } from "./rows.ts";

/** The shader; bindings partial, sum (y of matmulReduce), bias, residual, gain, y (8-bit rows); workgroups: rows. */
export function matmulReduceNormQ8(
  added: Addends,
  params: RmsNormQ8Params,
): Shader {
  const { bias, activation, residual } = added;
  const { columns, weight, workgroup } = params, quads = columns / 4;
  const isWhole = quads % workgroup === 0;
  const norm = normedQuads(params, (p, place) => {
    const besides = { bias: `bias[${place}]`, residual: `residual[at${p}]`, isQuad: true };
    const store = `sum[row * ${quads}u + quad${p}] = x${p};`;
    return wgsl`
      let at${p} = row * ${quads}u + ${place};
      var x${p} = partial[at${p}];
      for (var split = 1u; split < params.splits; split++) {
        x${p} += partial[split * params.rows * ${quads}u + at${p}];
      }
      x${p} = ${finishedBy(`x${p}`, added, besides)};
      ${isWhole ? store : `if (quad${p} < ${quads}u) { ${store} }`}
    `;
  });
  return {
    name: "matmul_reduce_norm_q8",
    storage: {
      partial: "array<vec4<f32>>",
      sum: "array<vec4<f32>>",
      ...bias && { bias: "array<vec4<f32>>" },
      ...residual && { residual: "array<vec4<f32>>" },
      ...weight && { gain: "array<vec4<f32>>" },
      y: "array<u32>",
    },
    writes: ["sum", "y"],
    uniforms: { rows: "u32", splits: "u32" },
    enables: norm.enables,
    code: wgsl`
      ${norm.declarations}

      ${norm.put}

      ${activation ?? ""}

      ${normMain(norm, workgroup)}
    `,
  };
}
