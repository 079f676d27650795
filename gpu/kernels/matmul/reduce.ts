// Adds up the sums that the splits of a tile kernel made, and the bias and the residual.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { type Addends, addends, resultStorage } from "./rows.ts";

const WORKGROUP = 256;

/** Workgroups for a number of results. */
export const REDUCE_RESULTS: number = WORKGROUP;

/** The shader; bindings partial, y, bias, residual; partial is [splits, results]. */
export function matmulReduce(added: Addends): Shader {
  return {
    name: "matmul_reduce",
    storage: { partial: "array<f32>", ...resultStorage(added) },
    writes: ["y"],
    uniforms: { results: "u32", outputs: "u32", splits: "u32" },
    code: wgsl`
      @compute @workgroup_size(${WORKGROUP})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let i = flat_workgroup(id, count) * ${WORKGROUP}u + thread;
        if (i >= params.results) { return; }
        var sum = 0.0;
        for (var split = 0u; split < params.splits; split++) {
          sum += partial[split * params.results + i];
        }
        y[i] = sum${addends(added, { output: "i % params.outputs", at: "i" })};
      }
    `,
  };
}
