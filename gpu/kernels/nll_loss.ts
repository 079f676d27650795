// The negative entry of each line that a target names, times the weight of its class: one for each target, or their
// sum or weighted mean by a single workgroup. Of a target of 64 bits the low word says it all; a negative one counts
// from the end.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { workgroupReduction } from "./reduce.ts";

/** Targets of a workgroup, where each has a result. */
export const LOSS_BLOCK = 64;

/** What is done with the losses. */
export interface LossShape {
  readonly reduction: "none" | "sum" | "mean";
  readonly hasWeight: boolean;
}

/** Uniforms: `count` targets, `classes`, `places` behind them, `ignores` the target `ignored`; `wide`: words of one. */
export function nllLossShader({ reduction, hasWeight }: LossShape): Shader {
  return {
    name: `nll_loss_${reduction}`,
    storage: {
      ...{ x: "array<f32>", targets: "array<i32>" },
      ...hasWeight && { weight: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: {
      ...{ count: "u32", classes: "u32", places: "u32", wide: "u32", ignores: "u32" },
      ignored: "i32",
    },
    code: wgsl`
      ${workgroupReduction("together", { size: LOSS_BLOCK, combine: "a + b" })}

      fn is_ignored(wanted: i32) -> bool {
        return params.ignores != 0u && wanted == params.ignored;
      }

      fn weight_of(wanted: i32) -> f32 {
        return ${hasWeight ? "weight[class_of(wanted)]" : "1.0"};
      }

      fn class_of(wanted: i32) -> u32 {
        return select(u32(wanted), u32(wanted + i32(params.classes)), wanted < 0);
      }

      fn loss(i: u32, wanted: i32) -> f32 {
        if (is_ignored(wanted)) { return 0.0; }
        let at = (i / params.places * params.classes + class_of(wanted)) * params.places;
        return -x[at + i % params.places] * weight_of(wanted);
      }

      @compute @workgroup_size(${LOSS_BLOCK})
      ${GROUP_MAIN}
        ${reduction === "none" ? EACH : TOGETHER}
        ${reduction === "sum" ? "if (lane == 0u) { y[0] = total; }" : ""}
        ${
      reduction === "mean"
        ? "let share = together(lane, weights);\nif (lane == 0u) { y[0] = total / share; }"
        : ""
    }
      }
    `,
  };
}

const EACH = wgsl`
  let i = flat_workgroup(group, groups) * ${LOSS_BLOCK}u + lane;
  if (i < params.count) { y[i] = loss(i, targets[i * params.wide]); }
`;

const TOGETHER = wgsl`
  var losses = 0.0;
  var weights = 0.0;
  for (var i = lane; i < params.count; i += ${LOSS_BLOCK}u) {
    let wanted = targets[i * params.wide];
    if (is_ignored(wanted)) { continue; }
    losses += loss(i, wanted);
    weights += weight_of(wanted);
  }
  let total = together(lane, losses);
`;
