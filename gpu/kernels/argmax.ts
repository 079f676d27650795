// The most probable token of the first row of logits, fed back as the input of the next step: a step can then follow
// another without anything crossing to the host in between. Equal logits go to the lower id, as a sampler on the
// host decides. The second dispatch also moves the row's position on.

import type { Shader } from "../kernel.ts";
import { wgsl } from "../wgsl.ts";

const SIZE = 256;
/** Workgroups of the first dispatch, and pairs that it leaves for the second. */
export const ARGMAX_PARTS = 128;

const BEST = wgsl`
  var<workgroup> values: array<f32, ${SIZE}>;
  var<workgroup> ids: array<u32, ${SIZE}>;

  // The best of a workgroup, in place 0.
  fn reduce(lane: u32, value: f32, id: u32) {
    values[lane] = value;
    ids[lane] = id;
    for (var step = ${SIZE / 2}u; step > 0u; step >>= 1u) {
      workgroupBarrier();
      if (lane < step) {
        let other = values[lane + step];
        let other_id = ids[lane + step];
        if (other > values[lane] || (other == values[lane] && other_id < ids[lane])) {
          values[lane] = other;
          ids[lane] = other_id;
        }
      }
    }
    workgroupBarrier();
  }
`;

/** Bindings logits, parts; uniform: `count` of logits. Without a number among them the id is 2^32 - 1. */
export const argmaxPartsShader: Shader = {
  name: "argmax_parts",
  storage: { logits: "array<f32>", parts: "array<vec2<u32>>" },
  writes: ["parts"],
  uniforms: { count: "u32" },
  code: wgsl`
    ${BEST}

    @compute @workgroup_size(${SIZE})
    fn main(
      @builtin(workgroup_id) group: vec3<u32>,
      @builtin(local_invocation_index) lane: u32,
    ) {
      var best = -3.4e38;
      var id = 0xffffffffu;
      for (var i = group.x * ${SIZE}u + lane; i < params.count; i += ${SIZE * ARGMAX_PARTS}u) {
        if (logits[i] > best) { best = logits[i]; id = i; }
      }
      reduce(lane, best, id);
      if (lane == 0u) { parts[group.x] = vec2<u32>(bitcast<u32>(values[0]), ids[0]); }
    }
  `,
};

/** Bindings parts, tokens, positions: the best id goes to `tokens[0]`, and `positions[0]` grows by one. */
export const argmaxFeedbackShader: Shader = {
  name: "argmax_feedback",
  storage: { parts: "array<vec2<u32>>", tokens: "array<u32>", positions: "array<u32>" },
  writes: ["tokens", "positions"],
  uniforms: {},
  code: wgsl`
    ${BEST}

    @compute @workgroup_size(${SIZE})
    fn main(@builtin(local_invocation_index) lane: u32) {
      var part = vec2<u32>(bitcast<u32>(-3.4e38), 0xffffffffu);
      if (lane < ${ARGMAX_PARTS}u) { part = parts[lane]; }
      reduce(lane, bitcast<f32>(part.x), part.y);
      if (lane == 0u) {
        tokens[0] = ids[0];
        positions[0] += 1u;
      }
    }
  `,
};
