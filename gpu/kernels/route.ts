// Choice of experts, an invocation a row: experts are few, and a row has a few hundred numbers at most. Equal
// scores go to the lower number, as in the reference, because a later one must be greater to win.

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";
import { FLOAT_TESTS } from "./element_functions.ts";

/** Rows of a workgroup. */
export const ROUTE_BLOCK = 32;
/** Most experts and groups that fit into an invocation's own memory. */
export const MOST_EXPERTS = 512;

/** What is baked into the shader. */
export interface RouteRule {
  readonly experts: number;
  readonly groups: number;
  readonly softmax: boolean;
  readonly bestTwo: boolean;
  readonly normalize: boolean;
  readonly hasCorrection: boolean;
}

/** Uniforms: `rows`, `count` experts to choose, `group_count` open groups, `scale` of the weights. */
export function routeShader(
  { experts, groups, softmax, bestTwo, normalize, hasCorrection }: RouteRule,
): Shader {
  const size = experts / groups;
  return {
    name: "route",
    storage: {
      logits: "array<f32>",
      ...hasCorrection && { correction: "array<f32>" },
      chosen: "array<i32>",
      weights: "array<f32>",
    },
    writes: ["chosen", "weights"],
    uniforms: { rows: "u32", count: "u32", group_count: "u32", scale: "f32" },
    code: wgsl`
      const LEAST = -3.4e38;
      ${FLOAT_TESTS}

      @compute @workgroup_size(${ROUTE_BLOCK})
      ${mainOf({ group: "group_id", groups: "group_counts", lane: "lane" })}
        let row = flat_workgroup(group_id, group_counts) * ${ROUTE_BLOCK}u + lane;
        if (row >= params.rows) { return; }
        var scores: array<f32, ${experts}>;
        var judged: array<f32, ${experts}>;
        ${softmax ? SOFTMAX(experts) : SIGMOIDS(experts)}
        for (var e = 0u; e < ${experts}u; e++) {
          judged[e] = scores[e]${hasCorrection ? " + correction[e]" : ""};
        }
        // NaN, if a score is: then no weight of the row is a number.
        var spoilt = 0.0;
        for (var e = 0u; e < ${experts}u; e++) {
          if (is_nan(judged[e])) { spoilt = judged[e]; judged[e] = LEAST; }
        }
        ${groups > 1 ? closeGroups(groups, size, bestTwo) : ""}
        var total = 1e-20;
        for (var i = 0u; i < params.count; i++) {
          var best = 0u;
          var most = LEAST;
          for (var e = 0u; e < ${experts}u; e++) {
            if (judged[e] > most) { most = judged[e]; best = e; }
          }
          judged[best] = LEAST;
          total += scores[best];
          chosen[row * params.count + i] = i32(best);
          weights[row * params.count + i] = scores[best];
        }
        let factor = params.scale${normalize ? " / total" : ""};
        for (var i = 0u; i < params.count; i++) {
          let weight = weights[row * params.count + i] * factor;
          weights[row * params.count + i] = weight + spoilt;
        }
      }
    `,
  };
}

const SOFTMAX = (experts: number) =>
  wgsl`
    var largest = LEAST;
    for (var e = 0u; e < ${experts}u; e++) { largest = max(largest, logits[row * ${experts}u + e]); }
    var sum = 0.0;
    for (var e = 0u; e < ${experts}u; e++) {
      scores[e] = exp(logits[row * ${experts}u + e] - largest);
      sum += scores[e];
    }
    for (var e = 0u; e < ${experts}u; e++) { scores[e] /= sum; }
  `;

const SIGMOIDS = (experts: number) =>
  wgsl`
    for (var e = 0u; e < ${experts}u; e++) {
      let x = logits[row * ${experts}u + e];
      let small = exp(-abs(x));
      scores[e] = select(small, 1.0, x >= 0.0) / (1.0 + small);
    }
  `;

/** Takes experts outside the best groups out of the choice. */
function closeGroups(groups: number, size: number, bestTwo: boolean): string {
  return wgsl`
    var open: array<bool, ${groups}>;
    var marks: array<f32, ${groups}>;
    for (var g = 0u; g < ${groups}u; g++) {
      var first = LEAST;
      var second = LEAST;
      for (var i = 0u; i < ${size}u; i++) {
        let value = judged[g * ${size}u + i];
        if (value > first) { second = first; first = value; }
        else { second = max(second, value); }
      }
      open[g] = false;
      marks[g] = first${bestTwo && size > 1 ? " + second" : ""};
    }
    for (var n = 0u; n < params.group_count; n++) {
      var best = 0u;
      var most = LEAST;
      for (var g = 0u; g < ${groups}u; g++) {
        if (!open[g] && marks[g] > most) { most = marks[g]; best = g; }
      }
      open[best] = true;
    }
    for (var e = 0u; e < ${size * groups}u; e++) {
      if (!open[e / ${size}u]) { judged[e] = LEAST; }
    }
  `;
}
