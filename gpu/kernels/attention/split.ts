// Attention for few rows: the keys of a row are cut into splits, a workgroup each, that leave an unnormalised
// sum, the largest score and the sum of exponentials; attention_merge puts them together. Several query heads
// that share keys are served by one read of them. Keys outside the span are never read.
//
// A workgroup takes a block of keys at a time: (1) invocations share the channels of a key and the keys of the
// block, and make its scores; (2) the running maximum moves and the exponentials are made; (3) invocations
// share the channels of a value, and add up the weighted values of every n-th key in registers. How many
// splits are at work follows from the length of the row, so no size of a step has to be known on the CPU.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { type HeadReaders, headReaders, type HeadShape, tilesOfGroup } from "./heads.ts";
import { firstOf, isEarly, layoutOf, NO_SCORE, pageOf, placeOf, type SpanRule } from "./spans.ts";
import { list } from "../matmul/rows.ts";

/** What a shader is made for. */
export interface SplitParams extends HeadShape {
  readonly rule: SpanRule;
  /** Query heads that a workgroup serves, all of one key head. */
  readonly tileHeads: number;
  /** Keys of a block; a multiple of 4. */
  readonly block: number;
  /** Most splits of a row. */
  readonly splits: number;
  readonly workgroup: number;
}

/** Vectors of a split of a head in scratch memory: channels, then (maximum, sum, 0, 0). */
export function partialVectors(valueWidth: number): number {
  return Math.ceil(valueWidth / 4) + 1;
}

/** Blocks of keys, as splits are made of them. */
export interface SplitBlocks {
  readonly block: number;
  /** Keys within a page: `block`, or less if it takes several. */
  readonly run: number;
  readonly splits: number;
}

/** `first_of(span)`, and `share_of(span)`: keys of a split, whole blocks; the same in attention_merge. */
export function shareOf(rule: SpanRule, { block, run, splits }: SplitBlocks): string {
  return wgsl`
    ${firstOf(rule, run)}

    fn share_of(span: Span) -> u32 {
      let blocks = (span.end - first_of(span) + ${block - 1}u) / ${block}u;
      return max(1u, (blocks + ${splits - 1}u) / ${splits}u) * ${block}u;
    }
  `;
}

/** The shader; bindings q, k, v, partial, those of the rule; workgroups: head tiles, splits, rows. */
export function attentionSplit(params: SplitParams): Shader {
  const { heads, kvHeads, rule, tileHeads, block, splits, workgroup } = params;
  const group = heads / kvHeads, tiles = tilesOfGroup(params), quads = block / 4;
  const readers = headReaders(params), { q, k, v } = readers;
  const { query } = layoutOf(rule, params);
  return {
    name: "attention_split",
    storage: { q: q.type, ...readers.storage, partial: "array<vec4<f32>>", ...rule.storage },
    writes: ["partial"],
    uniforms: rule.uniforms ?? {},
    code: wgsl`
      ${rule.code}

      ${shareOf(rule, { block, run: block, splits })}

      ${q.code}

      ${k.code}

      ${v.code}

      var<workgroup> range: Span;
      var<workgroup> scores: array<vec4<f32>, ${tileHeads * quads}>;
      var<workgroup> lanes: array<f32, ${tileHeads * block * lanesOf(readers)}>;
      var<workgroup> peaks: array<f32, ${tileHeads}>;
      var<workgroup> factors: array<f32, ${tileHeads}>;
      var<workgroup> sums: array<vec4<f32>, ${valuesAtOnce(params, readers) * quadsOf(readers)}>;

      var<private> span: Span;
      var<private> first_head: u32;
      var<private> first_key: u32;

      fn put_score(head: u32, place: u32, score: f32) {
        let key = first_key + place;
        let own = adjust(score, min(first_head + head, ${heads - 1}u), key, span);
        scores[head * ${quads}u + (place >> 2u)][place & 3u] =
          select(${NO_SCORE}, own, ${isEarly(rule) ? "key >= span.start && " : ""}key < span.end);
      }

      @compute @workgroup_size(${workgroup})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let row = id.z;
        let kv_head = id.x / ${tiles}u;
        let tile = id.x % ${tiles}u;
        first_head = kv_head * ${group}u + tile * ${tileHeads}u;
        if (thread == 0u) { range = span_of(row); }
        let whole = workgroupUniformLoad(&range);
        span = whole;
        let share = share_of(whole);
        let begin = first_of(whole) + id.y * share;
        let end = min(begin + share, whole.end);
        if (begin >= end) { return; }

        let lane = thread % ${k.units}u;
        let key_thread = thread / ${k.units}u;
        ${
      list(tileHeads * k.unitQuads, (n) => {
        const h = Math.floor(n / k.unitQuads), i = n % k.unitQuads;
        const at = query("row", `min(first_head + ${h}u, ${heads - 1}u)`);
        return `let q${h}_${i} = q_quad(${at}, ${k.unitQuads}u * lane + ${i}u);`;
      })
    }
        let unit = thread % ${v.units}u;
        let value_thread = thread / ${v.units}u;
        ${
      list(tileHeads * v.unitQuads, (n) =>
        `var sum${Math.floor(n / v.unitQuads)}_${n % v.unitQuads} = vec4<f32>();`)
    }
        // Invocation h keeps the maximum and the sum of head h.
        var peak = ${NO_SCORE};
        var total = 0.0;

        // Private variables are not uniform, so loops around barriers have counters of their own.
        for (var base = begin; base < end; base += ${block}u) {
          first_key = base;
          let page = ${pageOf(rule, { base: "span.base", key: "base" })};
          ${scoreBlock(params, readers)}
          ${weighBlock(params)}
          ${sumBlock(params, readers)}
        }

        ${writePartials(params, readers)}
      }
    `,
  };
}

/** Floats that the lanes of a key leave; one more than there are lanes keeps neighbours in different banks. */
function lanesOf({ k }: HeadReaders): number {
  return k.units + 1;
}

/** Quads of a row of values. */
function quadsOf({ v }: HeadReaders): number {
  return v.units * v.unitQuads;
}

/** Values that a workgroup takes at once. */
function valuesAtOnce({ workgroup }: SplitParams, { v }: HeadReaders): number {
  return Math.floor(workgroup / v.units);
}

/** Scores of a block: lanes multiply, then each score is added up. */
function scoreBlock(params: SplitParams, readers: HeadReaders): string {
  const { rule, tileHeads, block, workgroup } = params;
  const { k } = readers, lanes = lanesOf(readers);
  const keysAtOnce = Math.floor(workgroup / k.units);
  const keyRow = layoutOf(rule, params).key("page", placeOf(rule, "key"), "kv_head");
  const least = isEarly(rule) ? "max(first_key + place, span.start)" : "first_key + place";
  const dots = (h: number) => list(k.unitQuads, (i) => `dot(q${h}_${i}, key${i})`).join(" + ");
  return wgsl`
    for (var start = 0u; start < ${block}u; start += ${keysAtOnce}u) {
      let place = start + key_thread;
      let inside = key_thread < ${keysAtOnce}u && place < ${block}u;
      let key = min(${least}, end - 1u);
      let key_row = ${keyRow};
      ${k.load("key", "key_row", "lane")}
      if (inside) {
        ${list(tileHeads, (h) => `lanes[(${h * block}u + place) * ${lanes}u + lane] = ${dots(h)};`)}
      }
    }
    workgroupBarrier();
    for (var i = thread; i < ${tileHeads * block}u; i += ${workgroup}u) {
      var score = 0.0;
      for (var other = 0u; other < ${k.units}u; other++) { score += lanes[i * ${lanes}u + other]; }
      put_score(i / ${block}u, i % ${block}u, score);
    }
    workgroupBarrier();
  `;
}

/** Scores of a block become weights relative to the largest so far. */
function weighBlock({ tileHeads, block, workgroup }: SplitParams): string {
  const quads = block / 4;
  return wgsl`
    if (thread < ${tileHeads}u) {
      var most = scores[thread * ${quads}u];
      for (var i = 1u; i < ${quads}u; i++) { most = max(most, scores[thread * ${quads}u + i]); }
      let next = max(peak, max(max(most.x, most.y), max(most.z, most.w)));
      let factor = exp(peak - next);
      peak = next;
      total *= factor;
      peaks[thread] = next;
      factors[thread] = factor;
    }
    workgroupBarrier();
    for (var i = thread; i < ${tileHeads * quads}u; i += ${workgroup}u) {
      let own = scores[i];
      let weights = exp(own - peaks[i / ${quads}u]);
      scores[i] = select(vec4<f32>(), weights, own > vec4<f32>(${NO_SCORE}));
    }
    workgroupBarrier();
    if (thread < ${tileHeads}u) {
      var all = vec4<f32>();
      for (var i = 0u; i < ${quads}u; i++) { all += scores[thread * ${quads}u + i]; }
      total += all.x + all.y + all.z + all.w;
    }
  `;
}

/** Adds the weighted values of a block to the sums. */
function sumBlock(params: SplitParams, readers: HeadReaders): string {
  const { rule, tileHeads, block } = params, { v } = readers, quads = block / 4;
  const atOnce = valuesAtOnce(params, readers);
  const valueRow = layoutOf(rule, params).value(
    "page",
    placeOf(rule, "(first_key + place)"),
    "kv_head",
  );
  // A key before the span weighs nothing, and its value may be anything.
  const early = isEarly(rule) ? "if (first_key + place < span.start) { continue; }" : "";
  return wgsl`
    ${
    list(tileHeads, (h) =>
      wgsl`
      let factor${h} = factors[${h}];
      ${list(v.unitQuads, (i) => `sum${h}_${i} *= factor${h};`)}
    `)
  }
    if (value_thread < ${atOnce}u) {
      let count = min(${block}u, end - first_key);
      for (var place = value_thread; place < count; place += ${atOnce}u) {
        ${early}
        let value_row = ${valueRow};
        ${v.load("value", "value_row", "unit")}
        ${
    list(tileHeads, (h) =>
      wgsl`
          let weight${h} = scores[${h * quads}u + (place >> 2u)][place & 3u];
          ${list(v.unitQuads, (i) => `sum${h}_${i} += weight${h} * value${i};`)}
        `)
  }
      }
    }
    workgroupBarrier();
  `;
}

/** Puts the sums of the workgroup together, head by head. */
function writePartials(params: SplitParams, readers: HeadReaders): string {
  const { heads, kvHeads, tileHeads, splits, workgroup, valueWidth } = params;
  const { v } = readers, vectors = partialVectors(valueWidth), quads = quadsOf(readers);
  const atOnce = valuesAtOnce(params, readers);
  return list(tileHeads, (h) =>
    wgsl`
    if (value_thread < ${atOnce}u) {
      ${list(v.unitQuads, (i) => `sums[thread * ${v.unitQuads}u + ${i}u] = sum${h}_${i};`)}
    }
    workgroupBarrier();
    if (first_head + ${h}u < (kv_head + 1u) * ${heads / kvHeads}u) {
      let at = ((row * ${heads}u + first_head + ${h}u) * ${splits}u + id.y) * ${vectors}u;
      for (var i = thread; i < ${quads}u; i += ${workgroup}u) {
        var all = vec4<f32>();
        for (var other = 0u; other < ${atOnce}u; other++) {
          all += sums[other * ${quads}u + i];
        }
        partial[at + i] = all;
      }
      if (thread == ${h}u) {
        partial[at + ${vectors - 1}u] = vec4<f32>(peak, total, 0.0, 0.0);
      }
    }
    workgroupBarrier();
  `).join("\n");
}
