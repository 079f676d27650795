// New keys or values into the caches of their sessions, in place. A float16 cache is written two values at a
// time, rounded to nearest even; a value beyond 65,504 becomes NaN there, so that what is computed from it is an error
// of the sampler and never a wrong number (WGSL leaves the result of packing it open).

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";

const WORKGROUP = 64;

/** Pairs of values of a workgroup. */
export const KV_APPEND_PAIRS: number = WORKGROUP;

/** Sizes of a cache. */
export interface KvAppendParams {
  readonly dtype: "f32" | "f16";
  /** Values of a row; even. */
  readonly width: number;
  readonly capacity: number;
}

/** WGSL that packs two values for a float16 cache; those that do not fit become NaN, as infinities do. */
export const HALF_PAIR: string = wgsl`
  fn half_pair(pair: vec2<f32>) -> u32 {
    // By bits, since compilers may assume that comparisons see no NaN; 65520 is the least that rounds to infinity.
    let magnitude = bitcast<vec2<u32>>(pair) & vec2<u32>(0x7fffffffu);
    let fits = magnitude < vec2<u32>(0x477ff000u);
    let packed = pack2x16float(select(vec2<f32>(), pair, fits));
    return packed | select(0x7e00u, 0u, fits.x) | select(0x7e000000u, 0u, fits.y);
  }
`;

/** The shader; bindings x, cache, positions, slots; uniform: pairs of all rows. */
export function kvAppend({ dtype, width, capacity }: KvAppendParams): Shader {
  const pairs = width / 2;
  return {
    name: `kv_append_${dtype}`,
    storage: {
      x: "array<vec2<f32>>",
      cache: dtype === "f16" ? "array<u32>" : "array<vec2<f32>>",
      positions: "array<u32>",
      slots: "array<u32>",
    },
    writes: ["cache"],
    uniforms: { pairs: "u32" },
    code: wgsl`
      ${dtype === "f16" ? HALF_PAIR : ""}
      @compute @workgroup_size(${WORKGROUP})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let i = flat_workgroup(id, count) * ${WORKGROUP}u + thread;
        if (i >= params.pairs) { return; }
        let row = i / ${pairs}u;
        let line = slots[row] * ${capacity}u + positions[row];
        cache[line * ${pairs}u + i % ${pairs}u] = ${dtype === "f16" ? "half_pair(x[i])" : "x[i]"};
      }
    `,
  };
}
