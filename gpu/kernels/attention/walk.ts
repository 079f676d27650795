// Attention for few rows where the channels of a key fit into a part of a subgroup: what attention_split does,
// without a barrier in the loop. A walker, some lanes of a subgroup, takes a few neighbouring keys of every block, which
// lie in one page, each lane having a unit of its channels; a score is added up by shuffles and stands in all lanes of the walker, which
// keeps a running maximum of its own. Keys and values of a turn are loaded before any of them is used. At
// the end walkers put their sums together. Where contexts are short one large workgroup takes all keys of a
// head and writes the result itself: a second dispatch would cost more than it brings. The newest row may come as it
// leaves the product (fresh.ts): then the first walker begins with the row's own key.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import {
  beginDealt,
  canDeal,
  dealScores,
  endDealt,
  halve,
  isUpper,
  powersOf2,
} from "./dealt_scores.ts";
import { type FreshReader, freshReader, type FreshRow } from "./fresh.ts";
import { type HeadReaders, headReaders, type HeadShape, tilesOfGroup } from "./heads.ts";
import { isEarly, layoutOf, NO_SCORE, pageOf, placeOf, type SpanRule, whereSeen } from "./spans.ts";
import { partialVectors, shareOf } from "./split.ts";
import { channelReader } from "../channel_reader.ts";
import { list } from "../matmul/rows.ts";
import { shuffledSum } from "../matmul/team_sum.ts";
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
  const { units } = channelReader("k", { dtype, width });
  return width === valueWidth && width % 4 === 0 && units <= subgroupSize &&
    Number.isInteger(Math.log2(units));
}

/** Keys of one turn of a workgroup. */
export function walkBlock(
  { width, dtype, turn, workgroup }: Pick<WalkParams, "width" | "dtype" | "turn" | "workgroup">,
): number {
  return workgroup / channelReader("k", { dtype, width }).units * turn;
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

/** What the pieces of the text are made of. */
interface Walk extends WalkParams {
  readonly readers: HeadReaders;
  /** Lanes of a walker, and quads of a lane. */
  readonly lanes: number;
  readonly quads: number;
  readonly subgroups: number;
  readonly freshReader: FreshReader | undefined;
  readonly quantize: string | undefined;
  /** Whether lanes deal out the scores of a turn (dealt_scores.ts). */
  readonly deals: boolean;
}

/** Statements that combine a variable over lanes whose numbers differ by `least` … `below` / 2. */
function shuffles(
  name: string,
  { least, below }: { readonly least: number; readonly below: number },
  combine: (other: string) => string,
): string[] {
  return powersOf2(least, below).map((distance) =>
    `${name} = ${combine(`subgroupShuffleXor(${name}, ${distance}u)`)};`
  );
}

/**
 * The shader; bindings q (or those of a fresh row), k, v, partial or y, sinks, the rule's; workgroups: head tiles,
 * splits, rows.
 */
export function attentionWalk(params: WalkParams): Shader {
  const { heads, kvHeads, valueWidth, rule } = params;
  const { tileHeads, turn, splits, workgroup, subgroupSize, direct } = params;
  const group = heads / kvHeads, tiles = tilesOfGroup(params);
  const readers = headReaders(params), { q, k, v } = readers;
  const lanes = k.units, quads = k.unitQuads, subgroups = workgroup / subgroupSize;
  const fresh = params.fresh &&
    freshReader(params, params.fresh, {
      quads,
      sum: (name) => shuffledSum(name, lanes).join("\n"),
    });
  const quantizer = direct?.quantize
    ? groupQuantizer({ columns: heads * valueWidth, workgroup, passes: 1, subgroups: true })
    : undefined;
  const walk: Walk = {
    ...{ ...params, readers, lanes, quads, subgroups, freshReader: fresh },
    deals: canDeal({ tileHeads, turn, lanes, subgroupSize }),
    quantize: quantizer?.quantize,
  };
  return {
    name: direct ? "attention_walk_direct" : "attention_walk",
    storage: {
      ...fresh ? fresh.storage : { q: q.type },
      ...readers.storage,
      ...direct
        ? {
          y: quantizer ? "array<u32>" : "array<vec4<f32>>",
          ...direct.sinks ? { sinks: "array<f32>" } : {},
        }
        : { partial: "array<vec4<f32>>" },
      ...rule.storage,
    },
    writes: [direct ? "y" : "partial", ...fresh ? ["k", "v"] : []],
    uniforms: rule.uniforms ?? {},
    enables: ["subgroups"],
    code: wgsl`
      ${rule.code}

      ${shareOf(rule, { block: walkBlock(params), run: turn, splits })}

      ${fresh ? fresh.declarations : q.code}

      ${k.code}

      ${v.code}

      ${quantizer?.declarations ?? ""}

      ${quantizer?.put ?? ""}

      var<workgroup> range: Span;
      var<workgroup> sums: array<vec4<f32>, ${subgroups * tileHeads * lanes * quads}>;
      var<workgroup> stats: array<vec2<f32>, ${subgroups * tileHeads}>;

      @compute @workgroup_size(${workgroup})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let row = id.z;
        let kv_head = id.x / ${tiles}u;
        let first_head = kv_head * ${group}u + id.x % ${tiles}u * ${tileHeads}u;
        let last_head = (kv_head + 1u) * ${group}u - 1u;
        if (thread == 0u) { range = span_of(row); }
        let span = workgroupUniformLoad(&range);
        let share = share_of(span);
        let begin = first_of(span) + id.y * share;
        let end = min(begin + share, span.end);
        ${direct ? "" : `if (begin >= end${fresh ? " && id.y > 0u" : ""}) { return; }`}

        let lane = thread % ${lanes}u;
        let walker = thread / ${lanes}u;
        let first = begin + ${turn}u * walker;
        var next_page = ${pageOf(rule, pageAt("first"))};
        ${beginHeads(walk)}
        ${fresh ? beginWithOwnKey(walk, fresh) : ""}
        ${walk.deals ? beginDealt(walk) : ""}
        for (var base = begin; base < end; base += ${walkBlock(params)}u) {
          ${takeTurn(walk)}
        }

        let subgroup = thread / ${subgroupSize}u;
        ${walk.deals ? endDealt(walk) : endHeads(walk)}
        ${leaveSums(walk)}
        workgroupBarrier();
        ${joinSums(walk)}
      }
    `,
  };
}

/** Queries, and sums of nothing. */
function beginHeads(walk: Walk): string[] {
  const { tileHeads, quads, freshReader: fresh, rule } = walk;
  const { query } = layoutOf(rule, walk);
  return list(tileHeads, (h) =>
    wgsl`
    let head${h} = min(first_head + ${h}u, last_head);
    ${
      fresh ? fresh.query(`q${h}_`, `head${h}`) : list(
        quads,
        (i) => `let q${h}_${i} = q_quad(${query("row", `head${h}`)}, ${quads}u * lane + ${i}u);`,
      )
    }
    var peak${h} = ${NO_SCORE};
    var total${h} = 0.0;
    ${list(quads, (i) => `var sum${h}_${i} = vec4<f32>();`)}
  `);
}

/** Where a walker's keys of a turn are looked for; behind the last key, with that. */
function pageAt(key: string): { base: string; key: string } {
  return { base: "span.base", key: `min(${key}, end - 1u)` };
}

/** The keys of one turn, all loaded before any is used, and their page a turn before. */
function takeTurn(walk: Walk): string {
  const { rule, turn, tileHeads, readers: { k, v } } = walk;
  const { key, value } = layoutOf(rule, walk);
  const perKey = (text: (j: number) => string) => list(turn, text);
  const seen = (j: number) => isEarly(rule) ? `max(key${j}, span.start)` : `key${j}`;
  return wgsl`
    let page = next_page;
    let first_key = base + ${turn}u * walker;
    ${
    perKey((j) => {
      const at = placeOf(rule, `min(${seen(j)}, end - 1u)`);
      const keyLine = key("page", at, "kv_head"), valueLine = value("page", at, "kv_head");
      const isApart = valueLine !== keyLine;
      return wgsl`
      let key${j} = first_key + ${j}u;
      let line${j} = ${keyLine};
      ${[
        k.load(`k${j}_`, `line${j}`, "lane"),
        ...isApart ? [`let value_line${j} = ${valueLine};`] : [],
        v.load(`v${j}_`, isApart ? `value_line${j}` : `line${j}`, "lane"),
      ]}
    `;
    })
  }
    next_page = ${pageOf(rule, pageAt(`first_key + ${walkBlock(walk)}u`))};
    ${walk.deals ? takeDealt(walk) : list(tileHeads, (h) => takeKeys(walk, h))}
  `;
}

/** Whether a key lies in the span: of an expression. */
function isInside({ rule }: Walk, key: string): string {
  return isEarly(rule) ? `${key} >= span.start && ${key} < end` : `${key} < end`;
}

/** The weights of a turn's keys, dealt out, on the sums. */
function takeDealt(walk: Walk): string {
  const { rule, turn, tileHeads, quads } = walk;
  return wgsl`
    ${
    list(tileHeads * turn, (n) => {
      const h = Math.floor(n / turn), j = n % turn;
      const dots = list(quads, (i) => `dot(q${h}_${i}, k${j}_${i})`);
      return `let part${h}_${j} = ${dots.join(" + ")};`;
    })
  }
    ${
    dealScores(walk, {
      isSeen: (key) => isInside(walk, key),
      isMasked: rule.nothing !== undefined,
    })
  }
    ${list(tileHeads, (h) => addValues(walk, h))}
  `;
}

/** The weights of a turn's keys on the sums of a head. */
function addValues({ turn, quads }: Walk, h: number): string {
  return list(
    quads,
    (i) =>
      `sum${h}_${i} = sum${h}_${i} * factor${h} + ${
        list(turn, (j) => `weight${h}_${j} * v${j}_${i}`).join(" + ")
      };`,
  ).join("\n");
}

/** Scores of a turn's keys for one head, and their weights on the sums. */
function takeKeys(walk: Walk, h: number): string {
  const { rule, turn, lanes, quads } = walk;
  const perKey = (text: (j: number) => string) => list(turn, text);
  // A mask hides keys of the span.
  const isSeen = (j: number) =>
    rule.nothing === undefined ? isInside(walk, `key${j}`) : `score${h}_${j} > ${NO_SCORE}`;
  return wgsl`
    ${
    perKey((j) =>
      wgsl`
      var score${h}_${j} = ${list(quads, (i) => `dot(q${h}_${i}, k${j}_${i})`).join(" + ")};
      ${shuffledSum(`score${h}_${j}`, lanes)}
      score${h}_${j} = select(
        ${NO_SCORE}, adjust(score${h}_${j}, head${h}, key${j}, span), ${isInside(walk, `key${j}`)},
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
      `let weight${h}_${j} = select(0.0, exp(score${h}_${j} - fresh${h}), ${isSeen(j)});`
    )
  }
    total${h} = total${h} * factor${h} + ${perKey((j) => `weight${h}_${j}`).join(" + ")};
    ${addValues(walk, h)}
  `;
}

/** The largest scores and sums of the walkers of a subgroup, and each one's `share{h}`. */
function endHeads({ tileHeads, lanes, subgroupSize }: Walk): string[] {
  const walkers = { least: lanes, below: subgroupSize };
  return list(tileHeads, (h) =>
    wgsl`
    var most${h} = peak${h};
    ${shuffles(`most${h}`, walkers, (other) => `max(most${h}, ${other})`)}
    let share${h} = exp(peak${h} - most${h});
    total${h} *= share${h};
    ${shuffles(`total${h}`, walkers, (other) => `total${h} + ${other}`)}
    if (thread % ${subgroupSize}u == 0u) {
      stats[subgroup * ${tileHeads}u + ${h}u] = vec2<f32>(most${h}, total${h});
    }
  `);
}

/** The sums of the walkers of a subgroup, put together: they halve the channels of a lane among them. */
function leaveSums({ tileHeads, lanes, quads, subgroupSize }: Walk): string[] {
  const distances = powersOf2(lanes, subgroupSize), sums = 4 * quads;
  const part = distances.map((distance, i) =>
    `select(0u, ${sums >> i + 1}u, ${isUpper(distance)})`
  );
  return list(tileHeads, (h) => {
    const names = list(sums, (n) => `(share${h} * sum${h}_${n >> 2}.${"xyzw"[n & 3]})`);
    const { text, left } = halve(names, { distances, name: `sum${h}_by` });
    const at = `${quads}u * ((subgroup * ${tileHeads}u + ${h}u) * ${lanes}u + lane)`;
    const first = part.slice(0, Math.log2(sums / left.length)).join(" + ") || "0u";
    return wgsl`
      ${text}
      let first${h} = ${first};
      ${
      left.map((name, i) => {
        const place = `(first${h} + ${i}u)`;
        return `sums[${at} + ${place} / 4u][${place} % 4u] = ${name};`;
      })
    }
    `;
  });
}

/** What the subgroups have seen, put together and written. */
function joinSums(walk: Walk): string {
  const { tileHeads, lanes, quads, subgroups, workgroup, direct } = walk;
  const headQuads = lanes * quads;
  return wgsl`
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
      ${direct ? writeResult(walk, direct) : writePartial(walk)}
    }
  `;
}

/** The first walker of the first split begins with the row's own key; the first tile of a key head stores it. */
function beginWithOwnKey(walk: Walk, fresh: FreshReader): string {
  const { rule, tileHeads, lanes, quads } = walk;
  const ownPage = pageOf(rule, { base: "span.base", key: "own_key" });
  return wgsl`
    if (id.y == 0u) {
      let own_key = u32(span.position);
      let is_first = walker == 0u;
      ${fresh.keyAndValue}
      ${
    list(tileHeads, (h) =>
      wgsl`
      var own${h} = ${list(quads, (i) => `dot(q${h}_${i}, fresh_k${i})`).join(" + ")};
      ${shuffledSum(`own${h}`, lanes)}
      if (is_first) {
        peak${h} = adjust(own${h}, head${h}, own_key, span);
        total${h} = 1.0;
        ${list(quads, (i) => `sum${h}_${i} = fresh_v${i};`)}
      }
    `)
  }
      if (is_first && id.x % ${tilesOfGroup(walk)}u == 0u) {
        let own_row = ${layoutOf(rule, walk).key(ownPage, placeOf(rule, "own_key"), "kv_head")};
        ${fresh.store("own_row")}
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

function writeResult(walk: Walk, { sinks }: DirectResult): string {
  const { heads, valueWidth, rule, quantize } = walk;
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
  const result = rule.layout
    ? `(${rule.layout.result("row", "first_head + head")}) * ${quads}u + quad`
    : `row * ${heads * quads}u + ${place}`;
  return wgsl`
    ${shared}
    let value0 = all * ${whereSeen(rule, { sum: "whole", factor: "scale / whole" })};
    ${quantize ?? ""}
    if (inside && isHead) {
      ${quantize ? `put(row, ${place}, scale0, codes0, half0, rest0);` : `y[${result}] = value0;`}
    }
  `;
}
