// Puts the splits of a row together: one workgroup a row and head. The statistics of all splits and their channels, a few
// splits an invocation, are read at once, before it is known how many splits there are: nothing waits for one load after
// the other, and what splits that are none have left counts nothing. The sink of a head is a score that takes part in the softmax and has no value. A row without keys gives zeros.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import type { HeadShape } from "./heads.ts";
import { layoutOf, NO_SCORE, type SpanRule, whereSeen } from "./spans.ts";
import { partialVectors, shareOf, type SplitBlocks } from "./split.ts";
import { list } from "../matmul/rows.ts";
import { groupQuantizer } from "../quantize_group.ts";

/** What a shader is made for. */
export interface MergeParams
  extends Pick<HeadShape, "heads" | "kvHeads" | "valueWidth">, SplitBlocks {
  readonly rule: SpanRule;
  readonly sinks: boolean;
  /** Write 8-bit rows (heads of a multiple of 32 channels), by shuffles or not; absent: floats. */
  readonly quantize?: "subgroup" | "workgroup";
}

const PARTS = "(span.end - first_of(span) + share - 1u) / share";

/** The shader; bindings partial, y, sinks, those of the rule; workgroups: heads, rows. */
export function attentionMerge(params: MergeParams): Shader {
  const { heads, valueWidth, rule, splits, sinks, quantize } = params;
  const vectors = partialVectors(valueWidth);
  const quads = vectors - 1;
  const workgroup = Math.max(128, Math.ceil(quads / 32) * 32, Math.ceil(splits / 32) * 32);
  const splitQuads = Math.ceil(splits / 4);
  const groups = Math.floor(workgroup / quads);
  const perPart = (text: (i: number) => string) => list(Math.ceil(splits / groups), text);
  const lineOf = (split: string) => `min(${split}, ${splits - 1}u) * ${vectors}u`;
  const quantizer = quantize && groupQuantizer({
    columns: heads * valueWidth,
    workgroup,
    passes: 1,
    subgroups: quantize === "subgroup",
  });
  return {
    name: quantize ? "attention_merge_q8" : "attention_merge",
    storage: {
      partial: "array<vec4<f32>>",
      y: quantize ? "array<u32>" : "array<f32>",
      ...sinks ? { sinks: "array<f32>" } : {},
      ...rule.storage,
    },
    writes: ["y"],
    uniforms: rule.uniforms ?? {},
    enables: quantizer?.enables ?? [],
    code: wgsl`
      ${rule.code}

      ${shareOf(rule, params)}

      ${quantizer?.declarations ?? ""}

      ${quantizer?.put ?? ""}

      var<workgroup> split_peaks: array<vec4<f32>, ${splitQuads}>;
      var<workgroup> weights: array<vec4<f32>, ${splitQuads}>;
      var<workgroup> split_totals: array<vec4<f32>, ${splitQuads}>;
      var<workgroup> sums: array<vec4<f32>, ${workgroup}>;

      @compute @workgroup_size(${workgroup})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let head = id.x;
        let row = id.y;
        let start = (row * ${heads}u + head) * ${splits * vectors}u;
        let stat = partial[start + ${lineOf("thread")} + ${quads}u];
        let quad = thread % ${quads}u;
        let group = thread / ${quads}u;
        ${
      perPart((i) =>
        wgsl`
        let part${i} = group + ${i * groups}u;
        let left${i} = partial[start + ${lineOf(`part${i}`)} + quad];
      `
      )
    }
        let span = span_of(row);
        let share = share_of(span);
        let parts = ${rule.leavesOwnKey ? `max(1u, ${PARTS})` : PARTS};
        let peak = select(${NO_SCORE}, stat.x, thread < parts);
        if (thread < ${4 * splitQuads}u) { split_peaks[thread >> 2u][thread & 3u] = peak; }
        workgroupBarrier();
        var most4 = split_peaks[0];
        ${list(splitQuads - 1, (i) => `most4 = max(most4, split_peaks[${i + 1}]);`)}
        let seen = max(max(most4.x, most4.y), max(most4.z, most4.w));
        let most = ${sinks ? "max(seen, sinks[head])" : "seen"};
        let weight = select(0.0, exp(peak - most), thread < parts);
        if (thread < ${4 * splitQuads}u) {
          weights[thread >> 2u][thread & 3u] = weight;
          split_totals[thread >> 2u][thread & 3u] = select(0.0, weight * stat.y, thread < parts);
        }
        workgroupBarrier();
        var sum = vec4<f32>();
        if (group < ${groups}u) {
          ${
      perPart((i) =>
        `if (part${i} < parts) { sum += weights[part${i} >> 2u][part${i} & 3u] * left${i}; }`
      )
    }
        }
        sums[thread] = sum;
        workgroupBarrier();
        let own = min(thread, ${quads - 1}u);
        var all = sums[own];
        ${list(groups - 1, (i) => `all += sums[own + ${(i + 1) * quads}u];`)}
        var total4 = split_totals[0];
        ${list(splitQuads - 1, (i) => `total4 += split_totals[${i + 1}];`)}
        let total = total4.x + total4.y + total4.z + total4.w${
      sinks ? " + exp(sinks[head] - most)" : ""
    };
        all *= ${whereSeen(rule, { sum: "total", factor: "1.0 / total" })};
        ${
      quantizer
        ? wgsl`
        let value0 = all;
        ${quantizer.quantize}
        if (thread < ${quads}u) {
          put(row, head * ${quads}u + thread, scale0, codes0, half0, rest0);
        }
      `
        : wgsl`
        let at = (${layoutOf(rule, params).result("row", "head")}) * ${valueWidth}u + 4u * thread;
        ${
          list(
            4,
            (c) =>
              `if (4u * thread + ${c}u < ${valueWidth}u) { y[at + ${c}u] = all.${"xyzw"[c]}; }`,
          )
        }
      `
    }
      }
    `,
  };
}
