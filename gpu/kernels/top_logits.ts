// The best logits of each row in order, so that a sampler which looks at few of them needs no whole row. Every workgroup
// brings the best of its part in order; further dispatches do the same with what the one before left, until one workgroup
// is enough. A workgroup sorts lists of as many as are wanted, then merges them by halves: of two sorted lists, one read
// backwards, the better of each pair are the best of both.

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";
import { LOGIT_ORDER } from "./logit_order.ts";

/** How many are found. */
export const TOP_LOGITS = 64;
/** Logits of a workgroup. */
export const TOP_TILE = 2048;

const SIZE = 256;

/** What the entries of a dispatch are: bits of logits, or what another dispatch left. */
export type TopSource = "logits" | "entries";

/**
 * Bindings source, top: (order, id) of the best, best first, `TOP_LOGITS` a workgroup; uniform: `count` of a row of the
 * source; workgroups: tiles of a row, rows.
 */
export function topLogitsShader(source: TopSource): Shader {
  return {
    name: `top_${source}`,
    storage: {
      source: source === "logits" ? "array<u32>" : "array<vec2<u32>>",
      top: "array<vec2<u32>>",
    },
    writes: ["top"],
    uniforms: { count: "u32" },
    code: wgsl`
      ${LOGIT_ORDER}

      var<workgroup> orders: array<u32, ${TOP_TILE}>;
      var<workgroup> ids: array<u32, ${TOP_TILE}>;

      fn swap(a: u32, b: u32) {
        let order = orders[a];
        let id = ids[a];
        orders[a] = orders[b];
        ids[a] = ids[b];
        orders[b] = order;
        ids[b] = id;
      }

      // Pairs that are \`stride\` apart, put in order, or in the opposite one where \`size\` says so.
      fn compare(thread: u32, pairs: u32, stride: u32, size: u32) {
        workgroupBarrier();
        for (var i = thread; i < pairs; i += ${SIZE}u) {
          let a = i / stride * 2u * stride + i % stride;
          let b = a + stride;
          let forward = size == ${TOP_LOGITS}u || (a & size) == 0u;
          if (is_better(orders[b], ids[b], orders[a], ids[a]) == forward) { swap(a, b); }
        }
      }

      @compute @workgroup_size(${SIZE})
      ${mainOf({ group: "group", groups: "groups", lane: "thread" })}
        let row = group.y * params.count;
        for (var i = thread; i < ${TOP_TILE}u; i += ${SIZE}u) {
          let at = group.x * ${TOP_TILE}u + i;
          var entry = vec2<u32>(0u, 0xffffffffu);
          if (at < params.count) {
            entry = ${
      source === "logits" ? "vec2<u32>(order_of(source[row + at]), at)" : "source[row + at]"
    };
          }
          orders[i] = entry.x;
          ids[i] = entry.y;
        }
        for (var size = 2u; size <= ${TOP_LOGITS}u; size <<= 1u) {
          for (var stride = size >> 1u; stride > 0u; stride >>= 1u) {
            compare(thread, ${TOP_TILE / 2}u, stride, size);
          }
        }
        for (var kept = ${TOP_TILE / 2}u; kept >= ${TOP_LOGITS}u; kept >>= 1u) {
          workgroupBarrier();
          for (var i = thread; i < kept; i += ${SIZE}u) {
            let other = kept + (i | ${TOP_LOGITS - 1}u) - i % ${TOP_LOGITS}u;
            if (is_better(orders[other], ids[other], orders[i], ids[i])) { swap(i, other); }
          }
          for (var stride = ${TOP_LOGITS / 2}u; stride > 0u; stride >>= 1u) {
            compare(thread, kept / 2u, stride, ${TOP_LOGITS}u);
          }
        }
        workgroupBarrier();
        if (thread < ${TOP_LOGITS}u) {
          top[(group.y * groups.x + group.x) * ${TOP_LOGITS}u + thread] = vec2<u32>(orders[thread], ids[thread]);
        }
      }
    `,
  };
}
