// Heads of a joined product of queries, keys and values on their way to attention: a workgroup some heads of a row. It
// reads a head once, normalises it if the model does that, rotates it, and writes it where it belongs: queries
// to the result, keys and values to the caches. float16 caches are written in pairs, those of q8_0 by whole blocks. Where a
// device has too few bindings for all of that, a dispatch takes the queries, one the keys and one the values.

import type { Shader } from "../kernel.ts";
import { mainOf, wgsl } from "../wgsl.ts";
import { CACHE_BLOCK, ROUND_BLOCK, storeBlock } from "./cache_blocks.ts";
import { inPage, pageRow, type PageTable, tableOf } from "./cache_pages.ts";
import type { ChannelType } from "./channel_reader.ts";
import { HALF_PAIR } from "./kv_append.ts";
import { list } from "./matmul/rows.ts";
import { workgroupReduction } from "./reduce.ts";

const SIZE = 64;

/** Heads of one kind. */
export type HeadPart = "queries" | "keys" | "values";

/** What the shader is made for. */
export interface RopeAppendRule {
  /** Channels of a head, an even number. */
  readonly width: number;
  readonly interleaved: boolean;
  /** Of the caches. */
  readonly dtype: ChannelType;
  readonly pages: PageTable;
  readonly hasQueryNorm: boolean;
  readonly hasKeyNorm: boolean;
  /** Whether keys and values come in bindings of their own. */
  readonly isApart: boolean;
  /** The only heads that are taken; absent: all of them. */
  readonly part?: HeadPart;
}

/** The rule for heads of one kind alone. */
export function ropeAppendPart(rule: RopeAppendRule, part: HeadPart): RopeAppendRule {
  return {
    ...rule,
    part,
    hasQueryNorm: rule.hasQueryNorm && part === "queries",
    hasKeyNorm: rule.hasKeyNorm && part === "keys",
  };
}

/** Heads of a workgroup: as many as it has pairs for; a norm is a sum of the whole workgroup. */
export function ropeAppendHeads(
  { width, hasQueryNorm, hasKeyNorm }: Pick<
    RopeAppendRule,
    "width" | "hasQueryNorm" | "hasKeyNorm"
  >,
): number {
  if (hasQueryNorm || hasKeyNorm) return 1;
  return Math.max(1, 2 ** Math.floor(Math.log2(2 * SIZE / width)));
}

/**
 * Uniforms: `items` = rows · (heads + 2 groups), or those of the part, `heads`, `groups`, `pairs` that are rotated, and
 * `epsilon` and `base` of the norms.
 */
export function ropeAppendShader(rule: RopeAppendRule): Shader {
  const { width, interleaved, dtype, pages, hasQueryNorm, hasKeyNorm, isApart, part } = rule;
  const hasNorms = hasQueryNorm || hasKeyNorm;
  const takes = (one: HeadPart) => part === undefined || part === one;
  const writes = [
    ...takes("keys") ? ["keys"] : [],
    ...takes("values") ? ["values"] : [],
    ...takes("queries") ? ["y"] : [],
  ];
  const half = width / 2, together = ropeAppendHeads(rule), lanes = SIZE / together;
  const cache = dtype === "f32" ? "array<vec2<f32>>" : "array<u32>";
  return {
    name: "rope_append",
    storage: {
      ...(takes("queries") || !isApart) && { qkv: "array<vec2<f32>>" },
      ...part !== "values" && { table: "array<f32>" },
      ...takes("keys") && { keys: cache },
      ...takes("values") && { values: cache },
      ...part !== "queries" && { positions: "array<u32>", slots: "array<u32>" },
      ...hasQueryNorm && { query_norm: "array<f32>" },
      ...hasKeyNorm && { key_norm: "array<f32>" },
      ...isApart && takes("keys") && { k: "array<vec2<f32>>" },
      ...isApart && takes("values") && { v: "array<vec2<f32>>" },
      ...takes("queries") && { y: "array<vec2<f32>>" },
    },
    writes,
    uniforms: {
      ...{ items: "u32", heads: "u32", groups: "u32", pairs: "u32" },
      ...hasNorms && { epsilon: "f32", base: "f32" },
    },
    code: wgsl`
      ${part !== "queries" ? [dtype === "f16" ? HALF_PAIR : "", pageRow(pages)] : ""}
      ${
      dtype === "q8_0" && part !== "queries"
        ? [ROUND_BLOCK, ...writes.filter((name) => name !== "y").map(storeBlock)]
        : ""
    }
      ${hasNorms ? workgroupReduction("sum", { size: SIZE, combine: "a + b" }) : ""}
      var<workgroup> channels: array<array<f32, ${width}>, ${together}>;

      ${part !== "values" ? rotation(interleaved) : ""}

      @compute @workgroup_size(${SIZE})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let place = thread / ${lanes}u;
        let lane = thread % ${lanes}u;
        let index = flat_workgroup(id, count) * ${together}u + place;
        let item = min(index, params.items - 1u);
        let all = params.heads + 2u * params.groups;
        let per_row = ${
      { queries: "params.heads", keys: "params.groups", values: "params.groups" }[part!] ?? "all"
    };
        let row = item / per_row;
        let head = item % per_row + ${
      { queries: "0u", keys: "params.heads", values: "params.heads + params.groups" }[part!] ?? "0u"
    };
        let is_query = head < params.heads;
        let is_value = head >= params.heads + params.groups;
        ${hasNorms ? "var squares = 0.0;" : ""}
        for (var i = lane; i < ${half}u; i += ${lanes}u) {
          ${isApart ? apart(half, part) : `let pair = qkv[(row * all + head) * ${half}u + i];`}
          channels[place][2u * i] = pair.x;
          channels[place][2u * i + 1u] = pair.y;
          ${hasNorms ? "squares += dot(pair, pair);" : ""}
        }
        workgroupBarrier();
        ${
      hasNorms
        ? wgsl`
          let factor = 1.0 / sqrt(sum(thread, squares) / ${width}.0 + params.epsilon);
          for (var i = lane; i < ${width}u; i += ${lanes}u) {
            ${hasQueryNorm ? normed("query_norm", "is_query") : ""}
            ${hasKeyNorm ? normed("key_norm", "!is_query && !is_value") : ""}
          }
          workgroupBarrier();
        `
        : ""
    }
        if (index >= params.items) { return; }
        let angles = 2u * row * params.pairs;
        ${part !== "queries" ? line(pages) : ""}
        ${dtype === "q8_0" ? storeBlocks(rule, lanes) : storePairs(rule, lanes)}
      }
    `,
  };
}

function rotation(interleaved: boolean): string {
  return wgsl`
    // Two neighbouring channels after the rotation.
    fn rotated(place: u32, channel: u32, angles: u32) -> vec2<f32> {
      ${interleaved ? INTERLEAVED : HALVES}
    }
  `;
}

/** Where a key or value lies in its cache. */
function line(pages: PageTable): string {
  return wgsl`
    let position = positions[row];
    let token = page_row(${tableOf(pages, "slots[row]")}, position) + ${inPage(pages, "position")};
    let group = head - params.heads - select(0u, params.groups, is_value);
    let line = token * params.groups + group;
  `;
}

/** What is done to a head of each kind. */
function byPart(part: HeadPart | undefined, code: Readonly<Record<HeadPart, string>>): string {
  if (part) return code[part];
  return wgsl`
    if (is_query) {
      ${code.queries}
    } else if (is_value) {
      ${code.values}
    } else {
      ${code.keys}
    }
  `;
}

function storePairs({ dtype, width, part }: RopeAppendRule, lanes: number): string {
  const half = width / 2, stored = dtype === "f16" ? "half_pair(pair)" : "pair";
  const turned = "let pair = rotated(place, 2u * i, angles);";
  return wgsl`
    for (var i = lane; i < ${half}u; i += ${lanes}u) {
      ${
    byPart(part, {
      queries: wgsl`
        ${turned}
        y[(row * params.heads + head) * ${half}u + i] = pair;
      `,
      keys: wgsl`
        ${turned}
        keys[line * ${half}u + i] = ${stored};
      `,
      values: wgsl`
        let pair = vec2<f32>(channels[place][2u * i], channels[place][2u * i + 1u]);
        values[line * ${half}u + i] = ${stored};
      `,
    })
  }
    }
  `;
}

/** An invocation a block; queries are pairs as ever. */
function storeBlocks({ width, part }: RopeAppendRule, lanes: number): string {
  const blocks = width / CACHE_BLOCK, half = width / 2;
  const quads = (pair: (channel: string) => string) =>
    list(
      CACHE_BLOCK / 4,
      (q) => `vec4<f32>(${[0, 2].map((c) => pair(`first + ${4 * q + c}u`)).join(", ")}),`,
    );
  const each = (code: string) =>
    wgsl`
      for (var block = lane; block < ${blocks}u; block += ${lanes}u) {
        let first = ${CACHE_BLOCK}u * block;
        ${code}
      }
    `;
  return byPart(part, {
    queries: wgsl`
      for (var i = lane; i < ${half}u; i += ${lanes}u) {
        y[(row * params.heads + head) * ${half}u + i] = rotated(place, 2u * i, angles);
      }
    `,
    keys: each(wgsl`
      store_keys(line * ${blocks}u + block, array(
        ${quads((channel) => `rotated(place, ${channel}, angles)`)}
      ));
    `),
    values: each(wgsl`
      store_values(line * ${blocks}u + block, array(
        ${quads((channel) => `channels[place][${channel}], channels[place][${channel} + 1u]`)}
      ));
    `),
  });
}

function apart(half: number, part: HeadPart | undefined): string {
  return wgsl`
    var pair: vec2<f32>;
    ${
    byPart(part, {
      queries: `pair = qkv[(row * params.heads + head) * ${half}u + i];`,
      keys: `pair = k[(row * params.groups + head - params.heads) * ${half}u + i];`,
      values:
        `pair = v[(row * params.groups + head - params.heads - params.groups) * ${half}u + i];`,
    })
  }
  `;
}

function normed(weight: string, condition: string): string {
  return `if (${condition}) { channels[place][i] *= factor * (params.base + ${weight}[i]); }`;
}

const INTERLEAVED = wgsl`
  let a = channels[place][channel];
  let b = channels[place][channel + 1u];
  let pair = channel / 2u;
  if (pair >= params.pairs) { return vec2<f32>(a, b); }
  let cosine = table[angles + pair];
  let sine = table[angles + params.pairs + pair];
  return vec2<f32>(a * cosine - b * sine, b * cosine + a * sine);
`;

// A pair of neighbours may straddle the middle of the rotated channels, so each is looked at alone.
const HALVES = wgsl`
  var result: vec2<f32>;
  for (var n = 0u; n < 2u; n++) {
    let own = channel + n;
    if (own >= 2u * params.pairs) { result[n] = channels[place][own]; continue; }
    let is_second = own >= params.pairs;
    let pair = select(own, own - params.pairs, is_second);
    let other = channels[place][select(own + params.pairs, pair, is_second)];
    let sine = table[angles + params.pairs + pair];
    result[n] = channels[place][own] * table[angles + pair] + select(-other, other, is_second) * sine;
  }
  return result;
`;
