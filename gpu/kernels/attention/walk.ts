// Attention for few rows where the channels of a key fit into a part of a subgroup: what attention_split does,
// without a barrier in the loop. A walker, some lanes of a subgroup, takes every n-th key of the split, each
// lane having a unit of its channels; a score is added up by shuffles and stands in all lanes of the walker, which
// keeps a running maximum of its own. Keys and values of a turn are loaded before any of them is used. At
// the end walkers put their sums together. Where contexts are short one large workgroup takes all keys of a
// head and writes the result itself: a second dispatch would cost more than it brings. The newest row may come as it
// leaves the product (fresh.ts): then the first walker begins with the row's own key.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { type FreshReader, freshReader, type FreshRow } from "./fresh.ts";
import type { SpanRule } from "./spans.ts";
import { type HeadShape, NO_SCORE, partialVectors, shareOf } from "./split.ts";
import { channelReader } from "../channel_reader.ts";
import { list } from "../matmul/rows.ts";
import { groupQuantizer } from "../quantize_group.ts";

/** What a shader is made for. */
export interface WalkParams extends HeadShape {
  readonly rule: SpanRule;
  /** Query heads that a workgroup serves, all of one key head. */
  readonly tileHeads: number;
  /** Keys that a walker takes in one turn. */
  readonly turn: number;
  /** Most splits of a row. */
  readonly splits: number;
  readonly workgroup: number;
  /** Lanes of a subgroup. */
  readonly subgroupSize: number;
  /** Write the result; there is one split then. Absent: leave partial results for attention_merge. */
  readonly direct?: DirectResult;
  /** One row comes out of the product, and the rule leaves its key out; absent: rows of queries, keys in the cache. */
  readonly fresh?: FreshRow;
}

/** What a result that needs no merging is like. */
export interface DirectResult {
  readonly sinks: boolean;
  /** Whether it is written in 8 bit: heads of a multiple of 32 channels, and subgroups of at least 8 lanes. */
  readonly quantize: boolean;
}

/** Whether heads of this shape can be walked over: a key and a value take the same lanes, a power of 2. */
export function canWalk({ width, valueWidth, dtype }: HeadShape, subgroupSize: number): boolean {
  const { units } = channelReader("k", dtype, width);
  return width === valueWidth && width % 4 === 0 && units <= subgroupSize &&
    Number.isInteger(Math.log2(units));
}

/** Keys of one turn of a workgroup. */
export function walkBlock(
  { width, dtype, turn, workgroup }: Pick<WalkParams, "width" | "dtype" | "turn" | "workgroup">,
): number {
  return workgroup / channelReader("k", dtype, width).units * turn;
}

/** Bytes of workgroup memory that a shader takes. */
export function walkBytes(
  { tileHeads, width, workgroup, subgroupSize }: Pick<
    WalkParams,
    "tileHeads" | "width" | "workgroup" | "subgroupSize"
  >,
): number {
  return workgroup / subgroupSize * tileHeads * (4 * width + 8) + 64;
}

/**
 * The shader; bindings q (or those of a fresh row), k, v, partial or y, sinks, the rule's; workgroups: head tiles,
 * splits, rows.
 */
export function attentionWalk(params: WalkParams): Shader {
  const { heads, kvHeads, width, valueWidth, dtype, rule } = params;
  const { tileHeads, turn, splits, workgroup, subgroupSize, direct } = params;
  const group = heads / kvHeads;
  const tilesOfGroup = Math.ceil(group / tileHeads);
  const q = channelReader("q", "f32", width);
  const k = channelReader("k", dtype, width);
  const v = channelReader("v", dtype, valueWidth);
  const lanes = k.units, quads = k.unitQuads;
  const shuffles = (
    name: string,
    least: number,
    below: number,
    combine: (other: string) => string,
  ) =>
    list(
      Math.log2(below / least),
      (i) => `${name} = ${combine(`subgroupShuffleXor(${name}, ${least << i}u)`)};`,
    );
  const sumOfLanes = (name: string) =>
    shuffles(name, 1, lanes, (other) => `${name} + ${other}`).join("\n");
  const fresh = params.fresh && freshReader(params, params.fresh, { quads, sum: sumOfLanes });
  const walkers = workgroup / lanes;
  const block = walkBlock(params);
  const subgroups = workgroup / subgroupSize;
  const headQuads = lanes * quads;
  const quantizer = direct?.quantize
    ? groupQuantizer({ columns: heads * valueWidth, workgroup, passes: 1, subgroups: true })
    : undefined;
  const each = (text: (h: number) => string) => list(tileHeads, text);
  const perKey = (text: (j: number) => string) => list(turn, text);
  return {
    name: direct ? "attention_walk_direct" : "attention_walk",
    storage: {
      ...fresh ? fresh.storage : { q: q.type },
      ...{ k: k.type, v: v.type },
      ...direct
        ? {
          y: quantizer ? "array<u32>" : "array<vec4<f32>>",
          ...direct.sinks ? { sinks: "array<f32>" } : {},
        }
        : { partial: "array<vec4<f32>>" },
      ...rule.storage,
    },
    writes: [direct ? "y" : "partial", ...fresh ? ["k", "v"] : []],
    uniforms: {},
    enables: ["subgroups"],
    code: wgsl`
      ${rule.code}

      ${shareOf(block, splits)}

      ${fresh ? fresh.declarations : q.code}

      ${k.code}

      ${v.code}

      ${quantizer?.declarations ?? ""}

      ${quantizer?.put ?? ""}

      var<workgroup> range: Span;
      var<workgroup> sums: array<vec4<f32>, ${subgroups * tileHeads * headQuads}>;
      var<workgroup> stats: array<vec2<f32>, ${subgroups * tileHeads}>;

      @compute @workgroup_size(${workgroup})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let row = id.z;
        let kv_head = id.x / ${tilesOfGroup}u;
        let first_head = kv_head * ${group}u + id.x % ${tilesOfGroup}u * ${tileHeads}u;
        let last_head = (kv_head + 1u) * ${group}u - 1u;
        if (thread == 0u) { range = span_of(row); }
        let span = workgroupUniformLoad(&range);
        let share = share_of(span);
        let begin = span.start + id.y * share;
        let end = min(begin + share, span.end);
        ${direct ? "" : `if (begin >= end${fresh ? " && id.y > 0u" : ""}) { return; }`}

        let lane = thread % ${lanes}u;
        let walker = thread / ${lanes}u;
        ${
      each((h) =>
        wgsl`
        let head${h} = min(first_head + ${h}u, last_head);
        ${
          fresh
            ? fresh.query(`q${h}_`, `head${h}`)
            : list(quads, (i) =>
              `let q${h}_${i} = q_quad(row * ${heads}u + head${h}, ${quads}u * lane + ${i}u);`)
        }
        var peak${h} = ${NO_SCORE};
        var total${h} = 0.0;
        ${
          list(quads, (i) => `var sum${h}_${i} = vec4<f32>();`)
        }
      `
      )
    }
        ${fresh ? beginWithOwnKey(params, fresh, { lanes, quads, tilesOfGroup, sumOfLanes }) : ""}
        for (var base = begin; base < end; base += ${block}u) {
          ${
      perKey((j) =>
        wgsl`
          let key${j} = base + walker + ${j * walkers}u;
          let line${j} = (span.base + min(key${j}, end - 1u)) * ${kvHeads}u + kv_head;
          ${k.load(`k${j}_`, `line${j}`, "lane")}
          ${v.load(`v${j}_`, `line${j}`, "lane")}
        `
      )
    }
          ${
      each((h) =>
        wgsl`
          ${
          perKey((j) =>
            wgsl`
            var score${h}_${j} = ${list(quads, (i) => `dot(q${h}_${i}, k${j}_${i})`).join(" + ")};
            ${shuffles(`score${h}_${j}`, 1, lanes, (other) => `score${h}_${j} + ${other}`)}
            score${h}_${j} = select(
              ${NO_SCORE}, adjust(score${h}_${j}, head${h}, key${j}, span), key${j} < end,
            );
          `
          )
        }
          let fresh${h} = ${
          Array.from({ length: turn }, (_, j) => `score${h}_${j}`)
            .reduce((most, score) => `max(${most}, ${score})`, `peak${h}`)
        };
          let factor${h} = exp(peak${h} - fresh${h});
          peak${h} = fresh${h};
          ${
          perKey((j) =>
            `let weight${h}_${j} = select(0.0, exp(score${h}_${j} - fresh${h}), key${j} < end);`
          )
        }
          total${h} = total${h} * factor${h} + ${perKey((j) => `weight${h}_${j}`).join(" + ")};
          ${
          list(quads, (i) =>
            `sum${h}_${i} = sum${h}_${i} * factor${h} + ${
              perKey((j) => `weight${h}_${j} * v${j}_${i}`).join(" + ")
            };`)
        }
        `
      )
    }
        }

        let subgroup = thread / ${subgroupSize}u;
        ${
      each((h) =>
        wgsl`
        var most${h} = peak${h};
        ${shuffles(`most${h}`, lanes, subgroupSize, (other) => `max(most${h}, ${other})`)}
        let share${h} = exp(peak${h} - most${h});
        total${h} *= share${h};
        ${shuffles(`total${h}`, lanes, subgroupSize, (other) => `total${h} + ${other}`)}
        ${
          list(quads, (i) =>
            wgsl`
          sum${h}_${i} *= share${h};
          ${shuffles(`sum${h}_${i}`, lanes, subgroupSize, (other) => `sum${h}_${i} + ${other}`)}
        `)
        }
        if (thread % ${subgroupSize}u < ${lanes}u) {
          let at = (subgroup * ${tileHeads}u + ${h}u) * ${headQuads}u + ${quads}u * lane;
          ${list(quads, (i) => `sums[at + ${i}u] = sum${h}_${i};`)}
          if (lane == 0u) {
            stats[subgroup * ${tileHeads}u + ${h}u] = vec2<f32>(most${h}, total${h});
          }
        }
      `
      )
    }
        workgroupBarrier();
        for (var start = 0u; start < ${tileHeads * headQuads}u; start += ${workgroup}u) {
          let i = min(start + thread, ${tileHeads * headQuads - 1}u);
          let inside = start + thread < ${tileHeads * headQuads}u;
          let head = i / ${headQuads}u;
          let quad = i % ${headQuads}u;
          ${list(subgroups, (s) => `let stat${s} = stats[${s * tileHeads}u + head];`)}
          let most = ${
      list(subgroups, (s) => `stat${s}.x`).reduce((most, own) => `max(${most}, ${own})`)
    };
          ${list(subgroups, (s) => `let part${s} = exp(stat${s}.x - most);`)}
          let total = ${list(subgroups, (s) => `part${s} * stat${s}.y`).join(" + ")};
          let all = ${
      list(subgroups, (s) => `part${s} * sums[(${s * tileHeads}u + head) * ${headQuads}u + quad]`)
        .join(" + ")
    };
          let isHead = first_head + head <= last_head;
          ${direct ? writeResult(params, direct, quantizer?.quantize) : writePartial(params)}
        }
      }
    `,
  };
}

/** The first walker of the first split begins with the row's own key; the first tile of a key head stores it. */
function beginWithOwnKey(
  { kvHeads, tileHeads }: WalkParams,
  fresh: FreshReader,
  { lanes, quads, tilesOfGroup, sumOfLanes }: {
    readonly lanes: number;
    readonly quads: number;
    readonly tilesOfGroup: number;
    readonly sumOfLanes: (name: string) => string;
  },
): string {
  return wgsl`
    if (id.y == 0u) {
      let own_key = u32(span.position);
      let is_first = walker == 0u;
      ${fresh.keyAndValue}
      ${
    list(tileHeads, (h) =>
      wgsl`
      var own${h} = ${list(quads, (i) => `dot(q${h}_${i}, fresh_k${i})`).join(" + ")};
      ${sumOfLanes(`own${h}`)}
      if (is_first) {
        peak${h} = adjust(own${h}, head${h}, own_key, span);
        total${h} = 1.0;
        ${list(quads, (i) => `sum${h}_${i} = fresh_v${i};`)}
      }
    `)
  }
      if (is_first && id.x % ${tilesOfGroup}u == 0u) {
        let at = ((span.base + own_key) * ${kvHeads}u + kv_head) * ${lanes}u + lane;
        ${fresh.store("at")}
      }
    }
  `;
}

function writePartial({ heads, splits, valueWidth }: WalkParams): string {
  const vectors = partialVectors(valueWidth);
  return wgsl`
    if (inside && isHead) {
      let at = ((row * ${heads}u + first_head + head) * ${splits}u + id.y) * ${vectors}u;
      partial[at + quad] = all;
      if (quad == 0u) { partial[at + ${vectors - 1}u] = vec4<f32>(most, total, 0.0, 0.0); }
    }
  `;
}

function writeResult(
  { heads, valueWidth }: WalkParams,
  { sinks }: DirectResult,
  quantize: string | undefined,
): string {
  const quads = valueWidth / 4;
  const shared = sinks
    ? wgsl`
      let sink = sinks[min(first_head + head, last_head)];
      let top = max(most, sink);
      let scale = exp(most - top);
      let whole = total * scale + exp(sink - top);
    `
    : wgsl`
      let scale = 1.0;
      let whole = total;
    `;
  const place = `(first_head + head) * ${quads}u + quad`;
  return wgsl`
    ${shared}
    let value0 = all * select(0.0, scale / whole, whole > 0.0);
    ${quantize ?? ""}
    if (inside && isHead) {
      ${
    quantize
      ? `put(row, ${place}, scale0, codes0, half0, rest0);`
      : `y[row * ${heads * quads}u + ${place}] = value0;`
  }
    }
  `;
}
