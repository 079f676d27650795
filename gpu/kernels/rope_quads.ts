// Heads of a joined product on their way to attention, as rope_append.ts has them, where all channels are rotated and nothing
// is normed: an invocation has four pairs of channels, whose rotation is their own matter, so that nobody waits for others'
// channels in workgroup memory.

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";
import { inPage, pageRow, tableOf } from "./cache_pages.ts";
import { HALF_PAIR } from "./kv_append.ts";
import type { RopeAppendRule } from "./rope_append.ts";

const SIZE = 128;

/** Whether such heads are of that kind; `pairs`: how many pairs of channels are rotated. */
export function takesRopeQuads(
  { width, dtype, hasQueryNorm, hasKeyNorm, isApart, part }: RopeAppendRule,
  pairs: number,
): boolean {
  return !part && !hasQueryNorm && !hasKeyNorm && !isApart && dtype !== "q8_0" &&
    width % 8 === 0 && 2 * pairs === width;
}

/** Channels of a workgroup. */
export const ROPE_QUADS_CHANNELS: number = 8 * SIZE;

/** Uniforms: `items` = rows · (heads + 2 groups), `heads`, `groups`; bindings those of rope_append.ts. */
export function ropeQuadsShader(
  { width, interleaved, dtype, pages }: Pick<
    RopeAppendRule,
    "width" | "interleaved" | "dtype" | "pages"
  >,
): Shader {
  const quads = width / 4, half = width / 8, isHalf = dtype === "f16";
  const cache = isHalf ? "array<vec2<u32>>" : "array<vec4<f32>>";
  const stored = (quad: string) =>
    isHalf ? `vec2<u32>(half_pair(${quad}.xy), half_pair(${quad}.zw))` : quad;
  const [firstAt, secondAt] = interleaved
    ? ["2u * lane", "2u * lane + 1u"]
    : ["lane", `${half}u + lane`];
  const store = (to: string, quad: (name: string) => string = (name) => name) =>
    wgsl`
      ${to}[start + ${firstAt}] = ${quad("first")};
      ${to}[start + ${secondAt}] = ${quad("second")};
    `;
  return {
    name: "rope_quads",
    storage: {
      qkv: "array<vec4<f32>>",
      table: "array<vec4<f32>>",
      keys: cache,
      values: cache,
      positions: "array<u32>",
      slots: "array<u32>",
      y: "array<vec4<f32>>",
    },
    writes: ["keys", "values", "y"],
    uniforms: { items: "u32", heads: "u32", groups: "u32" },
    code: wgsl`
      ${isHalf ? HALF_PAIR : ""}
      ${pageRow(pages)}

      @compute @workgroup_size(${SIZE})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let index = flat_workgroup(id, count) * ${SIZE}u + thread;
        let item = index / ${half}u;
        let lane = index % ${half}u;
        if (item >= params.items) { return; }
        let per_row = params.heads + 2u * params.groups;
        let row = item / per_row;
        let head = item % per_row;
        var first = qkv[item * ${quads}u + ${firstAt}];
        var second = qkv[item * ${quads}u + ${secondAt}];
        let is_value = head >= params.heads + params.groups;
        if (!is_value) {
          let cosine = table[row * ${quads}u + lane];
          let sine = table[row * ${quads}u + ${half}u + lane];
          ${interleaved ? INTERLEAVED : HALVES}
        }
        if (head < params.heads) {
          let start = (row * params.heads + head) * ${quads}u;
          ${store("y")}
          return;
        }
        let position = positions[row];
        let token = page_row(${tableOf(pages, "slots[row]")}, position) + ${
      inPage(pages, "position")
    };
        let group = head - params.heads - select(0u, params.groups, is_value);
        let start = (token * params.groups + group) * ${quads}u;
        if (is_value) {
          ${store("values", stored)}
        } else {
          ${store("keys", stored)}
        }
      }
    `,
  };
}

const HALVES = wgsl`
  let turned = first * cosine - second * sine;
  second = second * cosine + first * sine;
  first = turned;
`;

const INTERLEAVED = wgsl`
  let a = vec4<f32>(first.xz, second.xz);
  let b = vec4<f32>(first.yw, second.yw);
  let c = a * cosine - b * sine;
  let d = b * cosine + a * sine;
  first = vec4<f32>(c.x, d.x, c.y, d.y);
  second = vec4<f32>(c.z, d.z, c.w, d.w);
`;
