// Keys and values as halves for attention on subgroup matrices (halves.ts), made in scratch memory first.

import type { Shader } from "../../kernel.ts";
import { float, mainOf, wgsl } from "../../wgsl.ts";
import { EIGHT, HALVES_FACTOR, LARGEST_HALF } from "../matmul/halves.ts";
import { UNIT } from "../matmul/matrix_tile.ts";
import { list } from "../matmul/rows.ts";
import { headReaders, type HeadShape } from "./heads.ts";
import { layoutOf, type SpanRule } from "./spans.ts";

/** Keys of a block. */
export const HALVES_KEYS = 32;

/** Invocations of a workgroup of `headHalves`. */
const WORKGROUP = 128;

/** Channels of a head in whole matrices. */
export function padded(width: number): number {
  return UNIT * Math.ceil(width / UNIT);
}

/** Halves of keys and values for so many keys of an item's head, and how many blocks they are. */
export function headHalvesSizes(
  { width, valueWidth }: Pick<HeadShape, "width" | "valueWidth">,
  keys: number,
): { readonly blocks: number; readonly k: number; readonly v: number; readonly vTops: number } {
  const blocks = Math.ceil(keys / HALVES_KEYS), all = HALVES_KEYS * blocks;
  return {
    ...{ blocks, k: all * padded(width), v: all * padded(valueWidth) },
    vTops: padded(valueWidth) / 8,
  };
}

function headStorage(params: HeadShape): Record<string, string> {
  const { q, storage } = headReaders(params), { k, v } = params.memory ?? { k: "k", v: "v" };
  return { ...(k === "q" || v === "q") && { q: q.type }, ...storage };
}

/**
 * Keys and values of heads as halves: keys [items, heads, keys, channels], values [items, heads, channels, keys], in whole blocks and
 * matrices, behind their ends zeros; divided by a part of the largest magnitude of a block of keys and of eight channels
 * of values, which go to the tops [items, heads, blocks] and [items, heads, channels / 8]. Bindings: those of heads, k_halves,
 * v_halves, k_tops, v_tops. Workgroups: `blocks` and eights of channels, heads, items.
 */
export function headHalves(params: HeadShape & { readonly rule: SpanRule }): Shader {
  const { rule, kvHeads, width, valueWidth } = params;
  const { k, v } = headReaders(params), layout = layoutOf(rule, params);
  const quads = width / 4, eights = padded(width) / 8;
  const valueQuads = valueWidth / 4, valueEights = padded(valueWidth) / 8;
  return {
    name: "head_halves",
    storage: {
      ...headStorage(params),
      ...{ k_halves: "array<vec4<u32>>", v_halves: "array<vec4<u32>>" },
      ...{ k_tops: "array<f32>", v_tops: "array<f32>" },
    },
    writes: ["k_halves", "v_halves", "k_tops", "v_tops"],
    uniforms: { ...rule.uniforms, blocks: "u32" },
    code: wgsl`
      ${k.code}

      ${v.code}

      ${EIGHT}

      var<workgroup> largest: array<f32, ${WORKGROUP}>;

      fn largest_of(lane: u32, own: vec4<f32>) -> f32 {
        largest[lane] = max(max(own.x, own.y), max(own.z, own.w));
        for (var other = ${WORKGROUP / 2}u; other > 0u; other >>= 1u) {
          workgroupBarrier();
          if (lane < other) { largest[lane] = max(largest[lane], largest[lane + other]); }
        }
        workgroupBarrier();
        return largest[0];
      }

      fn key_quad(base: u32, head: u32, key: u32, quad: u32) -> vec4<f32> {
        if (key >= params.keys || quad >= ${quads}u) { return vec4<f32>(); }
        return k_quad(${layout.key("base", "key", "head")}, quad);
      }

      fn value_quad(base: u32, head: u32, key: u32, quad: u32) -> vec4<f32> {
        if (key >= params.keys || quad >= ${valueQuads}u) { return vec4<f32>(); }
        return v_quad(${layout.value("base", "key", "head")}, quad);
      }

      @compute @workgroup_size(${WORKGROUP})
      ${mainOf({ group: "group", lane: "lane" })}
        let base = group.z * params.keys;
        let stack = group.z * ${kvHeads}u + group.y;
        var own = vec4<f32>();
        if (group.x < params.blocks) {
          let first = group.x * ${HALVES_KEYS}u;
          for (var i = lane; i < ${HALVES_KEYS * quads}u; i += ${WORKGROUP}u) {
            own = max(own, abs(key_quad(base, group.y, first + i / ${quads}u, i % ${quads}u)));
          }
          let top = largest_of(lane, own);
          let inverse = ${HALVES_FACTOR};
          for (var i = lane; i < ${HALVES_KEYS * eights}u; i += ${WORKGROUP}u) {
            let key = first + i / ${eights}u;
            let quad = i % ${eights}u * 2u;
            let to = ((stack * params.blocks + group.x) * ${HALVES_KEYS}u) * ${eights}u + i;
            k_halves[to] = eight(
              key_quad(base, group.y, key, quad) * inverse,
              key_quad(base, group.y, key, quad + 1u) * inverse,
            );
          }
          if (lane == 0u) { k_tops[stack * params.blocks + group.x] = top / ${
      float(LARGEST_HALF)
    }; }
        } else {
          let eighth = group.x - params.blocks;
          for (var key = lane; key < params.keys; key += ${WORKGROUP}u) {
            own = max(own, abs(value_quad(base, group.y, key, 2u * eighth)));
            own = max(own, abs(value_quad(base, group.y, key, 2u * eighth + 1u)));
          }
          let top = largest_of(lane, own);
          let inverse = ${HALVES_FACTOR};
          for (var i = lane; i < ${HALVES_KEYS / 8}u * params.blocks; i += ${WORKGROUP}u) {
            ${
      list(8, (n) =>
        wgsl`
          let low${n} = value_quad(base, group.y, 8u * i + ${n}u, 2u * eighth) * inverse;
          let high${n} = value_quad(base, group.y, 8u * i + ${n}u, 2u * eighth + 1u) * inverse;
        `)
    }
            let line = ${HALVES_KEYS / 8}u * params.blocks;
            let to = (stack * ${8 * valueEights}u + 8u * eighth) * line + i;
            ${
      list(8, (c) => {
        const of = (from: number) =>
          list(4, (n) => `${c < 4 ? "low" : "high"}${from + n}.${"xyzw"[c % 4]}`).join(", ");
        return `v_halves[to + ${c}u * line] = eight(vec4<f32>(${of(0)}), vec4<f32>(${of(4)}));`;
      })
    }
          }
          if (lane == 0u) { v_tops[stack * ${valueEights}u + eighth] = top / ${
      float(LARGEST_HALF)
    }; }
        }
      }
    `,
  };
}
