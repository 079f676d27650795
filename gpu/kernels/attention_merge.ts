// Puts the splits of attention_split together: one workgroup a row and head. The sink of a head is a score
// that takes part in the softmax and has no value. A row without keys gives zeros.

import type { Shader } from "../kernel.ts";
import { wgsl } from "../wgsl.ts";
import { NO_SCORE, partialFloats, shareOf, type SplitParams } from "./attention_split.ts";

const WORKGROUP = 64;

/** The shader; bindings partial, y, sinks, those of the rule; workgroups: heads, rows. */
export function attentionMerge(
  { heads, valueWidth, rule, block, splits }: SplitParams,
  sinks: boolean,
): Shader {
  const floats = partialFloats(valueWidth);
  const start = sinks ? "var most = sinks[head];" : `var most = ${NO_SCORE};`;
  return {
    name: "attention_merge",
    storage: {
      partial: "array<f32>",
      y: "array<f32>",
      ...sinks ? { sinks: "array<f32>" } : {},
      ...rule.storage,
    },
    writes: ["y"],
    uniforms: {},
    code: wgsl`
      ${rule.code}

      ${shareOf(block, splits)}

      @compute @workgroup_size(${WORKGROUP})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let head = id.x;
        let row = id.y;
        let span = span_of(row);
        let share = share_of(span);
        let parts = (span.end - span.start + share - 1u) / share;
        let at = (row * ${heads}u + head) * ${splits * floats}u;
        ${start}
        for (var part = 0u; part < parts; part++) {
          most = max(most, partial[at + part * ${floats}u + ${floats - 4}u]);
        }
        var total = ${sinks ? "exp(sinks[head] - most)" : "0.0"};
        for (var part = 0u; part < parts; part++) {
          let own = at + part * ${floats}u + ${floats - 4}u;
          total += partial[own + 1u] * exp(partial[own] - most);
        }
        for (var channel = thread; channel < ${valueWidth}u; channel += ${WORKGROUP}u) {
          var sum = 0.0;
          for (var part = 0u; part < parts; part++) {
            let own = at + part * ${floats}u;
            sum += partial[own + channel] * exp(partial[own + ${floats - 4}u] - most);
          }
          y[(row * ${heads}u + head) * ${valueWidth}u + channel] =
            select(0.0, sum / total, total > 0.0);
        }
      }
    `,
  };
}
