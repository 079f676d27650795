// The most probable token of each row of logits, fed back as the input of the next step: a step can then follow
// another without anything crossing to the host in between. The second dispatch also moves the rows' positions on, and
// leaves what it found where the host may fetch it.

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";
import { LOGIT_ORDER } from "./logit_order.ts";

const SIZE = 256;
/** Workgroups of a row in the first dispatch, and pairs that it leaves for the second. */
export const ARGMAX_PARTS = 128;

const BEST = wgsl`
  ${LOGIT_ORDER}

  var<workgroup> orders: array<u32, ${SIZE}>;
  var<workgroup> ids: array<u32, ${SIZE}>;

  // The best of a workgroup, in place 0.
  fn reduce(lane: u32, order: u32, id: u32) {
    orders[lane] = order;
    ids[lane] = id;
    for (var step = ${SIZE / 2}u; step > 0u; step >>= 1u) {
      workgroupBarrier();
      if (lane < step && is_better(orders[lane + step], ids[lane + step], orders[lane], ids[lane])) {
        orders[lane] = orders[lane + step];
        ids[lane] = ids[lane + step];
      }
    }
    workgroupBarrier();
  }
`;

/**
 * Bindings logits (bits), parts: (order, id) of each workgroup's best, kept: a copy of the first row's logits, for which
 * another dispatch or a pause between passes costs more, allowed: by bit, the only columns that count; uniform: `count` of
 * logits of a row; workgroups: parts, rows.
 */
export function argmaxParts(
  { keeps, among = false }: { readonly keeps: boolean; readonly among?: boolean },
): Shader {
  return {
    name: "argmax_parts",
    storage: {
      logits: "array<u32>",
      parts: "array<vec2<u32>>",
      ...keeps ? { kept: "array<u32>" } : {},
      ...among ? { allowed: "array<u32>" } : {},
    },
    writes: ["parts", ...keeps ? ["kept"] : []],
    uniforms: { count: "u32" },
    code: wgsl`
      ${BEST}

      @compute @workgroup_size(${SIZE})
      ${mainOf({ group: "group", lane: "lane" })}
        var best = 0u;
        var id = 0xffffffffu;
        let row = group.y * params.count;
        for (var i = group.x * ${SIZE}u + lane; i < params.count; i += ${SIZE * ARGMAX_PARTS}u) {
          let bits = logits[row + i];
          ${keeps ? "if (group.y == 0u) { kept[i] = bits; }" : ""}
          let order = order_of(bits);
          if (order > best${
      among ? " && (allowed[i >> 5u] >> (i & 31u) & 1u) == 1u" : ""
    }) { best = order; id = i; }
        }
        reduce(lane, best, id);
        if (lane == 0u) {
          parts[group.y * ${ARGMAX_PARTS}u + group.x] = vec2<u32>(orders[0], ids[0]);
        }
      }
    `,
  };
}

/**
 * Bindings parts, tokens, positions, best: the best of a row goes to `best`, its id to `tokens`, and its position grows;
 * a workgroup a row.
 */
export const argmaxFeedbackShader: Shader = {
  name: "argmax_feedback",
  storage: {
    parts: "array<vec2<u32>>",
    tokens: "array<u32>",
    positions: "array<u32>",
    best: "array<vec2<u32>>",
  },
  writes: ["tokens", "positions", "best"],
  uniforms: {},
  code: wgsl`
    ${BEST}

    @compute @workgroup_size(${SIZE})
    ${mainOf({ group: "group", lane: "lane" })}
      let row = group.x;
      var part = vec2<u32>(0u, 0xffffffffu);
      if (lane < ${ARGMAX_PARTS}u) { part = parts[row * ${ARGMAX_PARTS}u + lane]; }
      reduce(lane, part.x, part.y);
      if (lane == 0u) {
        best[row] = vec2<u32>(orders[0], ids[0]);
        tokens[row] = ids[0];
        positions[row] += 1u;
      }
    }
  `,
};
