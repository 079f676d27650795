// Attention for many rows on subgroup matrices (Dawn's experiment), over a cache of float16: tiles as those of tile.ts, each
// subgroup with 16 queries of its own, which it keeps as matrices, as it keeps the sums of their values.
//
// Nothing leaves the range of float16: a query is divided by its largest magnitude before it is rounded to 11 bits, keys
// and values are the halves of the cache, and weights are at most exp(SLACK). What scores are measured from moves only when
// one is more than SLACK above it (Flash Attention 4), because sums are matrices whose places in an invocation nobody knows: they
// go through memory to be rescaled, at the first block and seldom after. Values are turned while they are brought, because a card
// gives zeros for right matrices that are loaded by rows.

import type { Shader } from "../../kernel.ts";
import { float, mainOf, wgsl } from "../../wgsl.ts";
import { LEFT, RESULT, RIGHT, UNIT } from "../matmul/matrix_tile.ts";
import { list } from "../matmul/rows.ts";
import { type GroupQuantizer, groupQuantizer } from "../quantize_group.ts";
import { headReaders, type HeadShape, tilesOfGroup } from "./heads.ts";
import { isOfRun, runsOf, sinkSum, TAKE_RUN } from "./runs.ts";
import { isEarly, layoutOf, NO_SCORE, pageOf, placeOf, type SpanRule, whereSeen } from "./spans.ts";

/** Channels of a value that leave the matrices at once: they share a scale where they are quantised. */
const GROUP = 32;
/** Elements between lines of workgroup memory beyond what they hold, so that neighbours lie in other banks. */
const HALVES_APART = 8, FLOATS_APART = 4;
/** By how much a score may be above what weights are measured from. */
const SLACK = 6;

/** What a shader is made for. */
export interface AttentionMatrixParams extends HeadShape {
  readonly rule: SpanRule;
  /** Query heads that a workgroup serves, all of one key head. */
  readonly tileHeads: number;
  readonly subgroups: number;
  /** Keys of a block: a multiple of 32. */
  readonly block: number;
  /** Invocations of a subgroup: a multiple of 16. */
  readonly subgroupSize: number;
  readonly sinks: boolean;
}

/** Whether there is such a shader for heads: of a cache of float16, whole matrices, results in whole groups of 32. */
export function hasMatrices({ width, valueWidth, dtype }: HeadShape): boolean {
  return dtype === "f16" && width % UNIT === 0 && valueWidth % GROUP === 0;
}

/** Queries of a tile. */
export function matrixQueries(subgroups: number): number {
  return UNIT * subgroups;
}

/** Rows of a tile. */
export function attentionMatrixRows(
  { subgroups, tileHeads }: Pick<AttentionMatrixParams, "subgroups" | "tileHeads">,
): number {
  return Math.floor(matrixQueries(subgroups) / tileHeads);
}

/** Sizes that a block of keys and values takes. */
type BlockSizes = Pick<AttentionMatrixParams, "subgroups" | "block" | "width" | "valueWidth">;

/** Vectors of four halves from one key to the next, and from one channel of values. */
function linesOf(
  { block, width }: BlockSizes,
): { readonly line: number; readonly valueLine: number } {
  return { line: (width + HALVES_APART) / 4, valueLine: (block + HALVES_APART) / 4 };
}

/** Vectors of four halves: the queries of a tile, and later keys and values of a block. */
function halvesOf(sizes: BlockSizes): number {
  const { line, valueLine } = linesOf(sizes);
  const { subgroups, block, valueWidth } = sizes;
  return Math.max(matrixQueries(subgroups) * line, block * line + valueWidth * valueLine);
}

/** Bytes of workgroup memory that a shader takes. */
export function attentionMatrixBytes(sizes: BlockSizes): number {
  const queries = matrixQueries(sizes.subgroups), { block } = sizes;
  return 8 * halvesOf(sizes) + 2 * queries * (block + HALVES_APART) +
    4 * queries * (block + FLOATS_APART) + 4 * queries + 16 * queries + 64;
}

/** What the pieces of the text are made of. */
interface Tile extends AttentionMatrixParams {
  readonly queries: number;
  readonly threads: number;
  /** Invocations of a query. */
  readonly lanes: number;
  /** Vectors from one line of keys, of values and of weights to the next, floats from one of scores. */
  readonly line: number;
  readonly valueLine: number;
  readonly weightLine: number;
  readonly scoreLine: number;
  readonly quantizer: GroupQuantizer;
}

function tileOf(params: AttentionMatrixParams): Tile {
  const { heads, valueWidth, subgroups, subgroupSize, block } = params;
  const queries = matrixQueries(subgroups), threads = subgroups * subgroupSize;
  return {
    ...{ ...params, queries, threads, lanes: threads / queries },
    ...linesOf(params),
    scoreLine: block + FLOATS_APART,
    weightLine: (block + HALVES_APART) / 4,
    quantizer: groupQuantizer({
      columns: heads * valueWidth,
      ...{ workgroup: threads, passes: 1, subgroups: true },
    }),
  };
}

/** The shader, which writes 8-bit rows; bindings q, k, v, y, sinks, those of the rule; workgroups: row tiles, head tiles. */
export function attentionMatrix(params: AttentionMatrixParams): Shader {
  const tile = tileOf(params);
  const { rule, sinks, tileHeads, queries, threads, quantizer, valueWidth, block } = tile;
  const { q, storage } = headReaders(params);
  const rows = attentionMatrixRows(params);
  const group = params.heads / params.kvHeads, tiles = tilesOfGroup(params);
  const first = isEarly(rule) ? `run.start / ${block}u * ${block}u` : "run.start";
  return {
    name: "attention_matrix_q8",
    storage: {
      ...{ q: q.type, ...storage, y: "array<u32>" },
      ...sinks ? { sinks: "array<f32>" } : {},
      ...rule.storage,
    },
    writes: ["y"],
    uniforms: { rows: "u32", ...rule.uniforms },
    enables: ["f16", "subgroups", "subgroup_matrix"],
    code: wgsl`
      ${rule.code}

      ${quantizer.put}

      ${q.code}

      ${runsOf(rows)}

      // Queries, then the keys of a block and behind them its values by channels.
      var<workgroup> halves: array<vec4<f16>, ${halvesOf(tile)}>;
      var<workgroup> scores: array<f32, ${queries * tile.scoreLine}>;
      var<workgroup> weights: array<vec4<f16>, ${queries * tile.weightLine}>;
      var<workgroup> factors: array<f32, ${queries}>;
      // The last block for which sums were rescaled, counted from 1: 16 bytes, because matrices are loaded from such boundaries.
      var<workgroup> moved: vec4<u32>;

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "id", lane: "thread" })}
        let first_row = id.x * ${rows}u;
        let rows_here = min(${rows}u, params.rows - first_row);
        let kv_head = id.y / ${tiles}u;
        let first_head = kv_head * ${group}u + id.y % ${tiles}u * ${tileHeads}u;
        let last_head = (kv_head + 1u) * ${group}u - 1u;
        if (thread < rows_here) { spans[thread] = span_of(first_row + thread); }
        let subgroup = thread / ${tile.subgroupSize}u;
        let own_query = subgroup * ${UNIT}u;
        let query = thread / ${tile.lanes}u;
        let lane = thread % ${tile.lanes}u;
        let row = query / ${tileHeads}u;
        let head = min(first_head + query % ${tileHeads}u, last_head);
        ${loadQueries(tile)}
        var blocks = 0u;

        var next = 0u;
        loop {
          ${TAKE_RUN}
          let span = spans[min(row, rows_here - 1u)];
          let sees = ${isOfRun("row")};
          var peak = ${NO_SCORE};
          var all = 0.0;
          ${list(valueWidth / UNIT, (c) => `var sum${c} = ${RESULT}();`)}
          for (var first_key = ${first}; first_key < run.end; first_key += ${block}u) {
            let page = ${pageOf(rule, { base: "spans[run.first].base", key: "first_key" })};
            blocks++;
            ${scoreBlock(tile)}
            ${weighBlock(tile)}
            ${sumBlock(tile)}
          }
          ${writeRows(tile)}
        }
      }
    `,
  };
}

/** Queries as matrices `query0` …, each divided by its largest magnitude, which is \`size\`. */
function loadQueries(tile: Tile): string {
  const { rule, width, lanes, line } = tile;
  const row = layoutOf(rule, tile).query("(first_row + min(row, rows_here - 1u))", "head");
  const each = (text: string) =>
    wgsl`
    for (var quad = lane; quad < ${width / 4}u; quad += ${lanes}u) {
      ${text}
    }
  `;
  return wgsl`
    let query_row = ${row};
    var size = 0.0;
    ${
    each(wgsl`
      let values = abs(q_quad(query_row, quad));
      size = max(size, max(max(values.x, values.y), max(values.z, values.w)));
    `)
  }
    ${acrossLanes(lanes, (other) => `size = max(size, ${other("size")});`)}
    let inverse = select(0.0, 1.0 / size, size > ${float(2 ** -120)});
    ${each(`halves[query * ${line}u + quad] = vec4<f16>(q_quad(query_row, quad) * inverse);`)}
    workgroupBarrier();
    ${
    list(width / UNIT, (i) =>
      `let query${i} = subgroupMatrixLoad<${LEFT}, row_major>(&halves, ` +
      `own_query * ${line}u + ${i * UNIT / 4}u, ${line}u);`)
  }
    workgroupBarrier();
  `;
}

/** Statements for each step in which the lanes of a query put something together. */
function acrossLanes(
  lanes: number,
  text: (other: (name: string) => string) => string,
): string[] {
  return list(Math.log2(lanes), (i) => text((name) => `subgroupShuffleXor(${name}, ${2 ** i}u)`));
}

/** Keys and values into workgroup memory, and the scores of the block. */
function scoreBlock(tile: Tile): string {
  const { rule, threads, line, valueLine, scoreLine, width, valueWidth, block } = tile;
  const { key, value } = layoutOf(rule, tile), place = placeOf(rule, "key");
  const units = width / 8, valueUnits = valueWidth / 8;
  const keyAt = isEarly(rule) ? "max(first_key + place, run.start)" : "first_key + place";
  return wgsl`
    for (var i = thread; i < ${block * units}u; i += ${threads}u) {
      let place = i / ${units}u;
      let unit = i % ${units}u;
      let key = min(${keyAt}, run.end - 1u);
      let eight = k[(${key("page", place, "kv_head")}) * ${units}u + unit];
      let to = place * ${line}u + 2u * unit;
      halves[to] = bitcast<vec4<f16>>(eight.xy);
      halves[to + 1u] = bitcast<vec4<f16>>(eight.zw);
    }
    for (var i = thread; i < ${block / 4 * valueUnits}u; i += ${threads}u) {
      let quad = i % ${block / 4}u;
      let unit = i / ${block / 4}u;
      ${
    list(4, (n) =>
      wgsl`
        var eight${n}: vec4<u32>;
        {
          let place = 4u * quad + ${n}u;
          let key = min(${keyAt}, run.end - 1u);
          eight${n} = v[(${value("page", place, "kv_head")}) * ${valueUnits}u + unit];
        }
      `)
  }
      let to = ${block * line}u + 8u * unit * ${valueLine}u + quad;
      ${
    list(4, (c) =>
      wgsl`
        {
          ${list(4, (n) => `let pair${n} = bitcast<vec2<f16>>(eight${n}.${"xyzw"[c]});`)}
          halves[to + ${2 * c * valueLine}u] = vec4<f16>(pair0.x, pair1.x, pair2.x, pair3.x);
          halves[to + ${(2 * c + 1) * valueLine}u] = vec4<f16>(pair0.y, pair1.y, pair2.y, pair3.y);
        }
      `)
  }
    }
    workgroupBarrier();
    ${
    list(block / UNIT, (j) =>
      wgsl`
      {
        var score = ${RESULT}();
        ${
        list(width / UNIT, (i) =>
          `score = subgroupMatrixMultiplyAccumulate(query${i}, subgroupMatrixLoad<${RIGHT}, ` +
          `col_major>(&halves, ${UNIT * j * line + i * UNIT / 4}u, ${line}u), score);`)
      }
        subgroupMatrixStore<row_major>(&scores, own_query * ${scoreLine}u + ${
        j * UNIT
      }u, score, ${scoreLine}u);
      }
    `)
  }
    workgroupBarrier();
  `;
}

/** Scores become weights, and sums are rescaled where what those are measured from has moved. */
function weighBlock(tile: Tile): string {
  const { lanes, scoreLine, weightLine, valueWidth, block } = tile;
  const quads = block / 4 / lanes;
  const place = (i: number) => `lane * ${quads}u + ${i}u`;
  const scored = (i: number, c: number) => `score${i}.${"xyzw"[c]}`;
  return wgsl`
    let own = query * ${scoreLine}u + lane * ${4 * quads}u;
    ${list(quads, (i) => `var score${i} = ${scoresAt(`own + ${4 * i}u`)} * size;`)}
    var most = ${NO_SCORE};
    ${
    list(4 * quads, (n) => {
      const i = n >> 2, c = n & 3;
      return wgsl`
        {
          let key = first_key + 4u * (${place(i)}) + ${c}u;
          let is_seen = sees && key >= span.start && key < span.end;
          ${scored(i, c)} = select(${NO_SCORE}, adjust(${scored(i, c)}, head, key, span), is_seen);
          most = max(most, ${scored(i, c)});
        }
      `;
    })
  }
    ${acrossLanes(lanes, (other) => `most = max(most, ${other("most")});`)}
    let moves = most > peak + ${float(SLACK)};
    let fresh = select(peak, most, moves);
    let factor = exp(peak - fresh);
    peak = fresh;
    all *= factor;
    // All write the same.
    if (moves) { moved = vec4<u32>(blocks); }
    ${
    list(quads, (i) =>
      wgsl`
      let weight${i} = vec4<f16>(select(
        vec4<f32>(), exp(score${i} - peak), score${i} > vec4<f32>(${NO_SCORE})));
      all += dot(vec4<f32>(weight${i}), vec4<f32>(1.0));
      weights[query * ${weightLine}u + ${place(i)}] = weight${i};
    `)
  }
    if (workgroupUniformLoad(&moved).x == blocks) {
      ${
    list(valueWidth / GROUP, (c) =>
      wgsl`
      {
        ${storeSums(tile, c)}
        workgroupBarrier();
        ${list(4 * quads, (i) => `scores[own + ${i}u] *= factor;`)}
        workgroupBarrier();
        ${
        list(2, (half) =>
          `sum${2 * c + half} = subgroupMatrixLoad<${RESULT}, row_major>(&scores, ` +
          `own_query * ${scoreLine}u + ${half * UNIT}u, ${scoreLine}u);`)
      }
        workgroupBarrier();
      }
    `)
  }
    }
  `;
}

/** Four scores, or sums. */
function scoresAt(at: string): string {
  return `vec4<f32>(${list(4, (c) => `scores[${at} + ${c}u]`).join(", ")})`;
}

/** Sums of 32 channels into the memory of scores. */
function storeSums({ scoreLine }: Tile, c: number): string[] {
  return list(
    2,
    (half) =>
      `subgroupMatrixStore<row_major>(&scores, own_query * ${scoreLine}u + ${half * UNIT}u, ` +
      `sum${2 * c + half}, ${scoreLine}u);`,
  );
}

function sumBlock({ line, valueLine, weightLine, valueWidth, block }: Tile): string {
  return wgsl`
    ${
    list(block / UNIT, (j) =>
      wgsl`
      {
        let shares = subgroupMatrixLoad<${LEFT}, row_major>(&weights, own_query * ${weightLine}u + ${
        j * UNIT / 4
      }u, ${weightLine}u);
        ${
        list(valueWidth / UNIT, (c) =>
          `sum${c} = subgroupMatrixMultiplyAccumulate(shares, subgroupMatrixLoad<${RIGHT}, ` +
          `col_major>(&halves, ${
            block * line + UNIT * c * valueLine + UNIT / 4 * j
          }u, ${valueLine}u), sum${c});`)
      }
      }
    `)
  }
    workgroupBarrier();
  `;
}

function writeRows(tile: Tile): string {
  const { rule, lanes, sinks, queries, threads, tileHeads, valueWidth, scoreLine } = tile;
  const passes = queries * GROUP / 4 / threads;
  return wgsl`
    ${acrossLanes(lanes, (other) => `all += ${other("all")};`)}
    var scale = 1.0;
    ${sinks ? sinkSum("head") : ""}
    if (lane == 0u) {
      factors[query] = ${whereSeen(rule, { sum: "all", factor: "scale / all" })};
    }
    ${
    list(valueWidth / GROUP, (c) =>
      wgsl`
      {
        ${storeSums(tile, c)}
        workgroupBarrier();
        ${
        list(passes, (n) =>
          wgsl`
          {
            let item = thread + ${n * threads}u;
            let query_here = item / ${GROUP / 4}u;
            let quad = item % ${GROUP / 4}u;
            let row_here = query_here / ${tileHeads}u;
            let head_here = first_head + query_here % ${tileHeads}u;
            let start = query_here * ${scoreLine}u + 4u * quad;
            let value0 = ${scoresAt("start")} * factors[query_here];
            ${tile.quantizer.quantize}
            if (${isOfRun("row_here")} && head_here <= last_head) {
              put(
                first_row + row_here,
                head_here * ${valueWidth / 4}u + ${c * GROUP / 4}u + quad,
                scale0, codes0, half0, rest0,
              );
            }
          }
        `)
      }
        workgroupBarrier();
      }
    `)
  }
  `;
}
