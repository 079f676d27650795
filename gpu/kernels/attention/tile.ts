// Attention for many rows, flash style: a workgroup keeps a tile of queries (some rows × the query heads that
// share a key head) and walks over the keys that any of them sees, a block at a time; scores exist only for
// one block. Sums are rescaled as the running maximum of a query moves.
//
// Rows of a tile may belong to different sessions: consecutive rows of one cache are a run, and runs are worked
// off one after the other, the queries of other runs being masked. A prompt's chunk is a single run.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { type HeadReaders, headReaders, type HeadShape, tilesOfGroup } from "./heads.ts";
import {
  HALVES,
  kept,
  keptType,
  ownKey,
  ownValue,
  placeOfKey,
  placeOfValue,
  read,
  shelfOf,
} from "./tile_memory.ts";
import { isOfRun, runsOf, sinkSum, TAKE_RUN } from "./runs.ts";
import { isEarly, layoutOf, NO_SCORE, pageOf, placeOf, type SpanRule, whereSeen } from "./spans.ts";
import { list } from "../matmul/rows.ts";
import { type GroupQuantizer, groupQuantizer } from "../quantize_group.ts";

/** Turns of the loops over channels and over keys that are written out: the first that divides them. */
const ATTENTION_UNROLL = [4, 2, 1];

/** What a shader is made for. */
export interface AttentionTileParams extends HeadShape {
  readonly rule: SpanRule;
  /** Query heads that a workgroup serves, all of one key head. */
  readonly tileHeads: number;
  /** Queries of a tile; a multiple of 4, at least `tileHeads`. */
  readonly queries: number;
  /** Keys of a block: 8, or a multiple of `across`. */
  readonly block: number;
  /** Invocations that serve four queries: 8 or 16. */
  readonly across: number;
  /** Keep keys and values as halves in workgroup memory: exactly what a cache of halves holds. */
  readonly halves?: boolean;
  readonly sinks: boolean;
  /** Write 8-bit rows (heads of a multiple of 32 channels), by shuffles or not; absent: floats. */
  readonly quantize?: "subgroup" | "workgroup";
}

/** Rows of a tile. */
export function attentionTileRows(
  { queries, tileHeads }: Pick<AttentionTileParams, "queries" | "tileHeads">,
): number {
  return Math.floor(queries / tileHeads);
}

/** Bytes of workgroup memory that a shader takes. */
export function attentionTileBytes(
  { queries, block, across, halves = false, width, valueWidth }: Pick<
    AttentionTileParams,
    "queries" | "block" | "across" | "halves" | "width" | "valueWidth"
  >,
): number {
  const keyQuads = Math.ceil(width / 4 + 1);
  const valueQuads = Math.ceil(valueWidth / 4 + 1);
  const shelf = shelfOf(Math.ceil(block / across), Math.ceil(valueWidth / 4 / across));
  const vectors = keyQuads * queries + block * (queries / 4 + 1) +
    (halves
      ? Math.max(keyQuads, block) * across * shelf / 2
      : Math.max(keyQuads * (block + 1), valueQuads * block));
  return 16 * vectors + 4 * 6 * queries + 16 * queries + 32 * queries + 64;
}

/** What the pieces of the text are made of. */
interface Tile extends AttentionTileParams {
  readonly readers: HeadReaders;
  readonly workgroup: number;
  /** Quads of a query or key, and of a value; four queries make a vector of weights. */
  readonly keyQuads: number;
  readonly valueQuads: number;
  readonly queryQuads: number;
  /** Vectors between the weights of two keys; one more than there are keeps neighbours in different banks. */
  readonly weightStride: number;
  /** Invocations that share the keys of a block, and keys of each. */
  readonly keyThreads: number;
  readonly threadKeys: number;
  /** Quads of values of an invocation. */
  readonly threadQuads: number;
  /** Vectors of keys, or values, that lie together because one invocation reads them. */
  readonly shelf: number;
  /** Invocations that share the keys of a query while scores become weights. */
  readonly lanes: number;
  readonly quantizer: GroupQuantizer | undefined;
}

function tileOf(params: AttentionTileParams): Tile {
  const { heads, valueWidth, queries, block, across, quantize } = params;
  const readers = headReaders(params), { k, v } = readers;
  const workgroup = across * queries / 4, keyThreads = Math.min(across, block);
  const valueQuads = v.units * v.unitQuads;
  const threadKeys = block / keyThreads, threadQuads = Math.ceil(valueQuads / across);
  return {
    ...{ ...params, readers, workgroup, keyThreads, valueQuads },
    ...{ keyQuads: k.units * k.unitQuads, queryQuads: queries / 4, weightStride: queries / 4 + 1 },
    ...{
      threadKeys,
      threadQuads,
      shelf: shelfOf(threadKeys, threadQuads),
      lanes: across / 4,
    },
    quantizer: quantize && groupQuantizer({
      columns: heads * valueWidth,
      ...{ workgroup, passes: 1, subgroups: quantize === "subgroup" },
    }),
  };
}

/** The shader; bindings q, k, v, y, sinks, those of the rule; workgroups: row tiles, head tiles. */
export function attentionTile(params: AttentionTileParams): Shader {
  const tile = tileOf(params);
  const { rule, queries, block, across, halves, sinks, quantize, valueWidth } = params;
  const { readers: { q, k, v, storage }, workgroup, keyQuads, queryQuads } = tile;
  const { quantizer, threadQuads } = tile;
  // Blocks lie within a page.
  const first = isEarly(rule) ? `run.start / ${block}u * ${block}u` : "run.start";
  return {
    name: quantize ? "attention_tile_q8" : "attention_tile",
    storage: {
      ...{ q: q.type, ...storage, y: quantize ? "array<u32>" : "array<f32>" },
      ...sinks ? { sinks: "array<f32>" } : {},
      ...rule.storage,
    },
    writes: ["y"],
    uniforms: { rows: "u32", ...rule.uniforms },
    enables: quantizer?.enables ?? [],
    code: wgsl`
      ${rule.code}

      ${quantizer?.declarations ?? ""}

      ${quantizer?.put ?? ""}

      ${q.code}

      ${k.code}

      ${v.code}

      ${runsOf(attentionTileRows(params))}

      // What an invocation reads in a turn lies together: one index, checked once.
      var<workgroup> q_tile: array<array<vec4<f32>, 4>, ${keyQuads * queryQuads}>;
      var<workgroup> kv_tile: ${keptType(tile)};
      var<workgroup> weights: array<vec4<f32>, ${block * tile.weightStride}>;
      var<workgroup> lane_peaks: array<f32, ${workgroup}>;
      var<workgroup> factors: array<vec4<f32>, ${queryQuads}>;

      @compute @workgroup_size(${workgroup})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        ${loadQueries(tile)}
        workgroupBarrier();

        // Scores: four queries and every ${tile.keyThreads}th key.
        let key_thread = thread % ${across}u;
        let query_quad = thread / ${across}u;
        // Softmax: one query and every ${tile.lanes}th key.
        let query = thread % ${queries}u;
        let lane = thread / ${queries}u;

        var next = 0u;
        loop {
          ${TAKE_RUN}
          var peak = ${NO_SCORE};
          var total = 0.0;
          // Sums: four queries and every ${across}th quad of channels.
          ${list(4 * threadQuads, (n) => `var sum${n} = vec4<f32>();`)}
          for (var first_key = ${first}; first_key < run.end; first_key += ${block}u) {
            let page = ${pageOf(rule, { base: "spans[run.first].base", key: "first_key" })};
            ${scoreBlock(tile)}
            ${peaksAndValues(tile)}
            ${weighBlock(tile)}
            ${sumBlock(tile)}
          }
          ${shareOut(tile)}
          ${writeRows(tile)}
        }
      }

      ${halves ? HALVES : ""}

      ${scoreFunction(tile)}

      ${quantizer ? "" : storeQuad(valueWidth)}
    `,
  };
}

function loadQueries(tile: Tile): string {
  const { heads, kvHeads, rule, tileHeads, queries, keyQuads, queryQuads, workgroup } = tile;
  const group = heads / kvHeads, tiles = tilesOfGroup(tile), rows = attentionTileRows(tile);
  return wgsl`
    let first_row = id.x * ${rows}u;
    let rows_here = min(${rows}u, params.rows - first_row);
    let kv_head = id.y / ${tiles}u;
    let first_head = kv_head * ${group}u + id.y % ${tiles}u * ${tileHeads}u;
    let last_head = (kv_head + 1u) * ${group}u - 1u;
    if (thread < rows_here) { spans[thread] = span_of(first_row + thread); }
    for (var i = thread; i < ${queries * keyQuads}u; i += ${workgroup}u) {
      let query = i / ${keyQuads}u;
      let quad = i % ${keyQuads}u;
      let row = first_row + min(query / ${tileHeads}u, rows_here - 1u);
      let head = min(first_head + query % ${tileHeads}u, last_head);
      q_tile[quad * ${queryQuads}u + (query >> 2u)][query & 3u] = q_quad(${
    layoutOf(rule, tile).query("row", "head")
  }, quad);
    }
  `;
}

/** Keys into workgroup memory, and the scores of the block. */
function scoreBlock(tile: Tile): string {
  const { rule, block, workgroup, readers: { k }, threadKeys, keyThreads } = tile;
  const { weightStride, queryQuads } = tile;
  const keyRow = layoutOf(rule, tile).key("page", placeOf(rule, "key"), "kv_head");
  return wgsl`
    for (var i = thread; i < ${block * k.units}u; i += ${workgroup}u) {
      let place = i / ${k.units}u;
      let unit = i % ${k.units}u;
      let key = min(${keyAt(rule)}, run.end - 1u);
      let key_row = ${keyRow};
      ${k.load("key", "key_row", "unit")}
      ${
    list(k.unitQuads, (c) =>
      `${placeOfKey(tile, `(unit * ${k.unitQuads}u + ${c}u)`)} = ${kept(tile, `key${c}`)};`)
  }
    }
    workgroupBarrier();
    if (key_thread < ${keyThreads}u) {
      ${list(4 * threadKeys, (n) => `var dot${n} = 0.0;`)}
      ${
    unrolled("quad", tile.keyQuads, (quad) =>
      wgsl`
        ${list(4, (i) => `let q${i} = q_tile[${quad} * ${queryQuads}u + query_quad][${i}];`)}
        ${
        list(threadKeys, (j) =>
          wgsl`
          let key${j} = ${read(tile, ownKey(tile, { quad, j }))};
          ${list(4, (i) => `dot${4 * j + i} += dot(q${i}, key${j});`)}
        `)
      }
      `)
  }
      ${
    list(threadKeys, (j) =>
      wgsl`
        let place${j} = key_thread + ${keyThreads * j}u;
        weights[place${j} * ${weightStride}u + query_quad] = vec4<f32>(
          ${
        list(4, (i) =>
          `score(run, first_head, last_head, 4u * query_quad + ${i}u, first_key + place${j}, dot${
            4 * j + i
          }),`)
      }
        );
      `)
  }
    }
    workgroupBarrier();
  `;
}

/** A key of the block, or the first that is seen. */
function keyAt(rule: SpanRule): string {
  return isEarly(rule) ? "max(first_key + place, run.start)" : "first_key + place";
}

/** Largest scores of an invocation's keys; values into workgroup memory meanwhile. */
function peaksAndValues(tile: Tile): string {
  const { rule, block, workgroup, readers: { v }, weightStride, lanes } = tile;
  const valueRow = layoutOf(rule, tile).value("page", placeOf(rule, "key"), "kv_head");
  return wgsl`
    var most = ${NO_SCORE};
    ${
    list(block / lanes, (i) =>
      wgsl`
      let score${i} = weights[(lane + ${
        lanes * i
      }u) * ${weightStride}u + (query >> 2u)][query & 3u];
      most = max(most, score${i});
    `)
  }
    lane_peaks[thread] = most;
    for (var i = thread; i < ${block * v.units}u; i += ${workgroup}u) {
      let place = i / ${v.units}u;
      let unit = i % ${v.units}u;
      let key = min(${keyAt(rule)}, run.end - 1u);
      let value_row = ${valueRow};
      ${v.load("value", "value_row", "unit")}
      ${
    list(v.unitQuads, (c) =>
      wgsl`
      let quad${c} = unit * ${v.unitQuads}u + ${c}u;
      ${placeOfValue(tile, `quad${c}`)} = ${kept(tile, `value${c}`)};
    `)
  }
    }
    workgroupBarrier();
  `;
}

/** Scores become weights relative to the largest so far. */
function weighBlock({ queries, block, weightStride, lanes }: Tile): string {
  const peaks = lanesOf(queries, lanes).reduce((most, own) => `max(${most}, ${own})`, "peak");
  return wgsl`
    let fresh = ${peaks};
    let factor = exp(peak - fresh);
    peak = fresh;
    total *= factor;
    if (lane == 0u) { factors[query >> 2u][query & 3u] = factor; }
    ${
    list(block / lanes, (i) =>
      wgsl`
      let weight${i} = select(0.0, exp(score${i} - fresh), score${i} > ${NO_SCORE});
      total += weight${i};
      weights[(lane + ${lanes * i}u) * ${weightStride}u + (query >> 2u)][query & 3u] = weight${i};
    `)
  }
    workgroupBarrier();
  `;
}

/** What the lanes of a query have left. */
function lanesOf(queries: number, lanes: number): string[] {
  return list(lanes, (i) => `lane_peaks[query + ${i * queries}u]`);
}

function sumBlock(tile: Tile): string {
  const { block, weightStride, threadQuads } = tile;
  return wgsl`
    let rescale = factors[query_quad];
    ${list(4 * threadQuads, (n) => `sum${n} *= rescale.${"xyzw"[Math.floor(n / threadQuads)]};`)}
    ${
    unrolled("place", block, (place) =>
      wgsl`
      let weight = weights[${place} * ${weightStride}u + query_quad];
      ${
        list(threadQuads, (c) =>
          wgsl`
        let value${c} = ${read(tile, ownValue(tile, { place, c }))};
        ${list(4, (i) => `sum${i * threadQuads + c} += weight.${"xyzw"[i]} * value${c};`)}
      `)
      }
    `)
  }
    workgroupBarrier();
  `;
}

/** A loop of so many turns, some of which are written out. */
function unrolled(name: string, turns: number, body: (index: string) => string): string {
  const each = ATTENTION_UNROLL.find((count) => turns % count === 0)!;
  return wgsl`
    for (var ${name} = 0u; ${name} < ${turns}u; ${name} += ${each}u) {
      ${
    list(each, (i) =>
      wgsl`
        {
          ${body(i === 0 ? name : `(${name} + ${i}u)`)}
        }
      `)
  }
    }
  `;
}

/** What each query's sums are multiplied by in the end. */
function shareOut({ rule, queries, tileHeads, sinks, lanes }: Tile): string {
  return wgsl`
    lane_peaks[thread] = total;
    workgroupBarrier();
    if (lane == 0u) {
      var all = ${lanesOf(queries, lanes).join(" + ")};
      var scale = 1.0;
      ${sinks ? sinkSum(`min(first_head + query % ${tileHeads}u, last_head)`) : ""}
      factors[query >> 2u][query & 3u] = ${whereSeen(rule, { sum: "all", factor: "scale / all" })};
    }
    workgroupBarrier();
    let shares = factors[query_quad];
  `;
}

function writeRows(tile: Tile): string[] {
  const { rule, across, tileHeads, valueWidth, valueQuads, threadQuads, quantizer, quantize } =
    tile;
  const resultRow = layoutOf(rule, tile).result("(first_row + row)", "head");
  const written = quantizer
    ? `put(first_row + row, head * ${valueQuads}u + quad, scale0, codes0, half0, rest0);`
    : `store((${resultRow}) * ${valueWidth}u, 4u * quad, value0);`;
  return list(4, (i) =>
    wgsl`
    {
      let query_here = 4u * query_quad + ${i}u;
      let row = query_here / ${tileHeads}u;
      let head = first_head + query_here % ${tileHeads}u;
      let inside = ${isOfRun("row")} && head <= last_head;
      ${
      list(threadQuads, (c) =>
        wgsl`
        {
          let quad = key_thread + ${across * c}u;
          let value0 = sum${i * threadQuads + c} * shares.${"xyzw"[i]};
          ${quantizer ? quantizer.quantize : ""}
          if (inside && quad < ${valueQuads}u) {
            ${written}
          }
          ${quantize === "workgroup" ? "workgroupBarrier();" : ""}
        }
      `)
    }
    }
  `);
}

function scoreFunction({ tileHeads }: Tile): string {
  return wgsl`
    fn score(
      run: Run,
      first_head: u32,
      last_head: u32,
      query: u32,
      key: u32,
      product: f32,
    ) -> f32 {
      let row = query / ${tileHeads}u;
      if (row < run.first || row >= run.last) { return ${NO_SCORE}; }
      let span = spans[row];
      if (key < span.start || key >= span.end) { return ${NO_SCORE}; }
      return adjust(product, min(first_head + query % ${tileHeads}u, last_head), key, span);
    }
  `;
}

function storeQuad(valueWidth: number): string {
  return wgsl`
    fn store(at: u32, channel: u32, value: vec4<f32>) {
      ${
    list(4, (c) =>
      `if (channel + ${c}u < ${valueWidth}u) { y[at + channel + ${c}u] = value.${"xyzw"[c]}; }`)
  }
    }
  `;
}
