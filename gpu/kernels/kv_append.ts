// New keys or values into the caches of their sessions, in place: each row's page is looked up. A float16 cache is
// written two values at a time, rounded to nearest even; a value beyond 65,504 becomes NaN there, so that what is
// computed from it is an error of the sampler and never a wrong number (WGSL leaves the result of packing it open). One
// of q8_0 is written by whole blocks (cache_blocks.ts).

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";
import { CACHE_BLOCK, ROUND_BLOCK, storeBlock } from "./cache_blocks.ts";
import { inPage, pageRow, type PageTable, tableOf } from "./cache_pages.ts";
import type { ChannelType } from "./channel_reader.ts";
import { list } from "./matmul/rows.ts";

const WORKGROUP = 64;

/** Items of a workgroup. */
export const KV_APPEND_ITEMS: number = WORKGROUP;

/** Sizes of a cache. */
export interface KvAppendParams {
  readonly dtype: ChannelType;
  /** Values of a row; whole items. */
  readonly width: number;
  readonly pages: PageTable;
}

/** Values that an invocation stores. */
export function itemOf(dtype: ChannelType): number {
  return dtype === "q8_0" ? CACHE_BLOCK : 2;
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

/** How an item `i` of `x` goes to item `at` of the cache. */
const STORES: Readonly<
  Record<ChannelType, { readonly x: string; readonly cache: string; code: string; store: string }>
> = {
  f32: {
    ...{ x: "array<vec2<f32>>", cache: "array<vec2<f32>>", code: "" },
    store: "cache[at] = x[i];",
  },
  f16: {
    ...{ x: "array<vec2<f32>>", cache: "array<u32>", code: HALF_PAIR },
    store: "cache[at] = half_pair(x[i]);",
  },
  q8_0: {
    ...{ x: "array<vec4<f32>>", cache: "array<u32>" },
    code: [ROUND_BLOCK, storeBlock("cache")].join("\n"),
    store: `store_cache(at, array(${list(8, (q) => `x[8u * i + ${q}u]`).join(", ")}));`,
  },
};

/** The shader; bindings x, cache, positions, slots; uniform: items of all rows. */
export function kvAppend({ dtype, width, pages }: KvAppendParams): Shader {
  const items = width / itemOf(dtype), { x, cache, code, store } = STORES[dtype];
  return {
    name: `kv_append_${dtype}`,
    storage: { x, cache, positions: "array<u32>", slots: "array<u32>" },
    writes: ["cache"],
    uniforms: { items: "u32" },
    code: wgsl`
      ${code}

      ${pageRow(pages)}

      @compute @workgroup_size(${WORKGROUP})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let i = flat_workgroup(id, count) * ${WORKGROUP}u + thread;
        if (i >= params.items) { return; }
        let row = i / ${items}u;
        let position = positions[row];
        let line = page_row(${tableOf(pages, "slots[row]")}, position) + ${
      inPage(pages, "position")
    };
        let at = line * ${items}u + i % ${items}u;
        ${store}
      }
    `,
  };
}
