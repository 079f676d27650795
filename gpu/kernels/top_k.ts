// The best elements of lines, with their places, best first: an invocation an element counts those of its line that come
// before it, through workgroup memory a tile at a time, and is written where that puts it if that is among the first k.
// So ties keep their order, whatever the line. NaN is above all numbers, and zeros of both signs are equal.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";

/** Elements of a workgroup, all of one line. */
export const TOP_BLOCK = 256;

/** `key(bits)`: unsigned numbers in the order of the elements, by their type. */
const KEYS = {
  f32: wgsl`
    fn key(bits: u32) -> u32 {
      let size = bits & 0x7fffffffu;
      if (size > 0x7f800000u) { return 0xffffffffu; }
      return select(0x80000000u + size, 0x80000000u - size, bits != size);
    }
  `,
  i32: "fn key(bits: u32) -> u32 { return bits ^ 0x80000000u; }",
  u32: "fn key(bits: u32) -> u32 { return bits; }",
} as const;

/** Types of elements that are ordered. */
export type OrderedType = keyof typeof KEYS;

/** Uniforms: `blocks` of a line and `count` of them in all, `length` of a line, `inner` between its elements, `k`. */
export function topKShader(
  { type, largest, wide }: {
    readonly type: OrderedType;
    readonly largest: boolean;
    /** Whether places are of 64 bits. */
    readonly wide: boolean;
  },
): Shader {
  return {
    name: "top_k",
    storage: {
      x: "array<u32>",
      values: "array<u32>",
      indices: wide ? "array<vec2<u32>>" : "array<u32>",
    },
    writes: ["values", "indices"],
    uniforms: { count: "u32", blocks: "u32", length: "u32", inner: "u32", k: "u32" },
    code: wgsl`
      var<workgroup> tile: array<u32, ${TOP_BLOCK}>;

      ${KEYS[type]}

      @compute @workgroup_size(${TOP_BLOCK})
      ${GROUP_MAIN}
        let block = flat_workgroup(group, groups);
        if (block >= params.count) { return; }
        let line = block / params.blocks;
        let outer = line / params.inner;
        let rest = line % params.inner;
        let at = outer * params.length * params.inner + rest;
        let own = block % params.blocks * ${TOP_BLOCK}u + lane;
        let bits = x[at + min(own, params.length - 1u) * params.inner];
        let mine = key(bits);
        var before = 0u;
        for (var first = 0u; first < params.length; first += ${TOP_BLOCK}u) {
          workgroupBarrier();
          tile[lane] = key(x[at + min(first + lane, params.length - 1u) * params.inner]);
          workgroupBarrier();
          let end = min(${TOP_BLOCK}u, params.length - first);
          for (var i = 0u; i < end; i++) {
            let other = tile[i];
            before += u32(other ${largest ? ">" : "<"} mine || (other == mine && first + i < own));
          }
        }
        if (own < params.length && before < params.k) {
          let place = (outer * params.k + before) * params.inner + rest;
          values[place] = bits;
          indices[place] = ${wide ? "vec2<u32>(own, 0u)" : "own"};
        }
      }
    `,
  };
}
