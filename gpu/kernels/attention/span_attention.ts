// Attention to spans of rows, a workgroup a row and head: encoders, and decoders that look at an encoder's
// output. Scores of a block of keys are computed side by side, then the values of the block are added up
// under a running maximum, so that memory does not depend on the length of a span.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { workgroupReduction } from "../reduce.ts";

const SIZE = 64;
/** Widest head; channels of values are spread over the workgroup. */
export const MOST_CHANNELS = 1024;

/** Which inputs there are. */
export interface SpanRule {
  readonly width: number;
  readonly valueWidth: number;
  /** Keys and values of float16 pairs. */
  readonly f16: boolean;
  readonly hasStarts: boolean;
  readonly hasEnds: boolean;
  readonly hasPositions: boolean;
  readonly hasSlots: boolean;
  readonly hasBias: boolean;
}

/**
 * Uniforms: `rows`, `heads`, `kv_heads`, `slot_rows` (rows of k in a slot), `reach` of the bias, `scale`.
 */
export function spanAttentionShader(rule: SpanRule): Shader {
  const { width, valueWidth, f16 } = rule;
  const perLane = Math.ceil(valueWidth / SIZE);
  const cache = f16 ? "array<u32>" : "array<f32>";
  const read = (name: string) =>
    f16
      ? `fn read_${name}(i: u32) -> f32 { return unpack2x16float(${name}[i >> 1u])[i & 1u]; }`
      : `fn read_${name}(i: u32) -> f32 { return ${name}[i]; }`;
  return {
    name: "span_attention",
    storage: {
      q: "array<f32>",
      k: cache,
      v: cache,
      ...rule.hasStarts && { starts: "array<i32>" },
      ...rule.hasEnds && { ends: "array<i32>" },
      ...rule.hasPositions && { positions: "array<i32>" },
      ...rule.hasSlots && { slots: "array<u32>" },
      ...rule.hasBias && { bias: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: {
      rows: "u32",
      heads: "u32",
      kv_heads: "u32",
      slot_rows: "u32",
      reach: "i32",
      scale: "f32",
    },
    code: wgsl`
      ${workgroupReduction("sum", SIZE, "a + b")}
      ${workgroupReduction("largest", SIZE, "max(a, b)")}
      ${read("k")}
      ${read("v")}
      const LEAST = -3.4e38;
      // The bounds of the span come from memory; through this the compiler knows that all share them.
      var<workgroup> span: vec2<i32>;
      var<workgroup> query: array<f32, ${width}>;
      var<workgroup> weights: array<f32, ${SIZE}>;

      @compute @workgroup_size(${SIZE})
      fn main(
        @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32,
      ) {
        let item = flat_workgroup(group, groups);
        if (item >= params.rows * params.heads) { return; }
        let row = item / params.heads;
        let head = item % params.heads;
        let kv_head = head / (params.heads / params.kv_heads);
        let position = ${rule.hasPositions ? "positions[row]" : "0"};
        let start = ${rule.hasStarts ? "starts[row]" : "0"};
        let end = ${rule.hasEnds ? "ends[row]" : "position + 1"};
        let base = ${rule.hasSlots ? "slots[row] * params.slot_rows" : "0u"};
        for (var i = lane; i < ${width}u; i += ${SIZE}u) {
          query[i] = q[item * ${width}u + i] * params.scale;
        }
        if (lane == 0u) { span = vec2<i32>(start, end); }
        let bounds = workgroupUniformLoad(&span);
        var most = LEAST;
        var total = 0.0;
        var values: array<f32, ${perLane}>;
        for (var first = bounds.x; first < bounds.y; first += ${SIZE}) {
          let key = first + i32(lane);
          let is_seen = key < bounds.y;
          var score = LEAST;
          if (is_seen) {
            let at = ((base + u32(key)) * params.kv_heads + kv_head) * ${width}u;
            score = 0.0;
            for (var i = 0u; i < ${width}u; i++) { score += query[i] * read_k(at + i); }
            ${
      rule.hasBias
        ? wgsl`
          let distance = clamp(key - start - position, -params.reach, params.reach);
          score += bias[head * u32(2 * params.reach + 1) + u32(params.reach + distance)];
        `
        : ""
    }
          }
          let next = max(most, largest(lane, score));
          let shrink = exp(most - next);
          most = next;
          weights[lane] = select(0.0, exp(score - next), is_seen);
          total = total * shrink + sum(lane, weights[lane]);
          let count = min(bounds.y - first, ${SIZE});
          for (var n = 0u; n < ${perLane}u; n++) {
            let channel = lane + n * ${SIZE}u;
            var value = values[n] * shrink;
            if (channel < ${valueWidth}u) {
              for (var j = 0; j < count; j++) {
                let at = (base + u32(first + j)) * params.kv_heads + kv_head;
                value += weights[j] * read_v(at * ${valueWidth}u + channel);
              }
            }
            values[n] = value;
          }
        }
        let factor = select(0.0, 1.0 / total, total > 0.0);
        for (var n = 0u; n < ${perLane}u; n++) {
          let channel = lane + n * ${SIZE}u;
          if (channel < ${valueWidth}u) { y[item * ${valueWidth}u + channel] = values[n] * factor; }
        }
      }
    `,
  };
}
