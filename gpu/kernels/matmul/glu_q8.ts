// The wide half of a gated feed-forward block for one row, in one dispatch: each team makes a gate and its up
// value, a workgroup 32 pairs and so a whole group of the 8-bit row that the next product reads. Nothing is
// stored as floats, and one dispatch less stands in the way of the next.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { type GemvQ8Params, gemvQ8Parts } from "./gemv_q8.ts";
import { list } from "./rows.ts";
import { groupQuantizer } from "../quantize_group.ts";
import { normInFront, type NormOfX } from "./norm_in_front.ts";
import { shuffledSum, teamLoop } from "./team_sum.ts";

/** Results of a workgroup: a group of an 8-bit row. */
const RESULTS = 32;

/** What a shader is made for. */
export interface MatmulGluQ8Params
  extends Pick<GemvQ8Params, "layout" | "columns" | "unroll" | "bias" | "packedDot"> {
  /** Results: half of the weight's rows, gates first; a multiple of 32. */
  readonly results: number;
  /** Lanes of a team: a power of 2, at most a subgroup. */
  readonly lanes: number;
  /** WGSL of `activation(x: vec4<f32>) -> vec4<f32>`. */
  readonly activation: string;
  /** A norm of x, which is floats then; every workgroup makes it anew. */
  readonly norm?: NormOfX;
}

/** Workgroups of a row. */
export function gluWorkgroups({ results }: Pick<MatmulGluQ8Params, "results">): number {
  return results / RESULTS;
}

/** Invocations of a workgroup. */
export function gluWorkgroup(lanes: number): number {
  return RESULTS * lanes;
}

/** The shader; bindings x, the planes of the weight, y, bias; workgroups: those of the row. */
export function matmulGluQ8(params: MatmulGluQ8Params): Shader {
  const { results, lanes, bias, activation } = params;
  const workgroup = gluWorkgroup(lanes);
  const product = gemvQ8Parts({ ...params, rows: 1, outputs: 2 }, params.norm ? "tile" : "rows");
  const norm = params.norm && normInFront({ ...params.norm, columns: params.columns, workgroup });
  const quantizer = groupQuantizer({ columns: results, workgroup, passes: 1, subgroups: true });
  const added = (i: number) => bias ? `sum${i} + bias[line${i}]` : `sum${i}`;
  return {
    name: `${norm ? "norm_" : ""}matmul_glu_${params.layout}`,
    storage: {
      x: norm ? "array<vec4<f32>>" : "array<vec4<u32>>",
      ...product.storage,
      y: "array<u32>",
      ...bias ? { bias: "array<f32>" } : {},
      ...norm?.storage,
    },
    writes: ["y"],
    uniforms: {},
    enables: ["subgroups"],
    code: wgsl`
      ${product.declarations}

      ${norm?.declarations ?? ""}

      ${activation}

      ${quantizer.declarations}

      ${quantizer.put}

      var<workgroup> values: array<vec4<f32>, ${RESULTS / 4}>;

      @compute @workgroup_size(${workgroup})
      ${mainOf({ group: "id", lane: "thread" })}
        ${norm?.statements ?? ""}
        let lane = thread % ${lanes}u;
        let team = thread / ${lanes}u;
        let row0 = 0u;
        let line0 = id.x * ${RESULTS}u + team;
        let line1 = line0 + ${results}u;
        ${list(2, (i) => `var sum${i} = 0.0;`)}
        ${teamLoop(product.step, { ...params, count: product.steps })}
        ${list(2, (i) => shuffledSum(`sum${i}`, lanes).join("\n"))}
        if (lane == 0u) {
          values[team >> 2u][team & 3u] = activation(vec4<f32>(${added(0)})).x * (${added(1)});
        }
        workgroupBarrier();
        let value0 = values[thread & ${RESULTS / 4 - 1}u];
        ${quantizer.quantize}
        if (thread < ${RESULTS / 4}u) {
          put(0u, id.x * ${RESULTS / 4}u + thread, scale0, codes0, half0, rest0);
        }
      }
    `,
  };
}
