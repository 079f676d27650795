// Attention for many rows where lanes can exchange: a team of lanes has some queries, and each lane its share of their
// channels, of the queries and of the sums, in registers. What a lane reads of a key serves all queries of its team, so that
// workgroup memory, which bounds tiles (tile.ts), is asked once for as many multiplications. Products are added up by shuffles
// that leave a lane with those of one query, of which it alone finds the weights. A block of keys and values is fetched into
// registers while the one before it is used (bench/results/kernels.md). Rows, heads and runs are those of tile.ts.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { list } from "../matmul/rows.ts";
import { type GroupQuantizer, groupQuantizer } from "../quantize_group.ts";
import { type HeadReaders, headReaders, type HeadShape, headTiles, tilesOfGroup } from "./heads.ts";
import { isEarly, layoutOf, NO_SCORE, pageOf, placeOf, type SpanRule, whereSeen } from "./spans.ts";
import { isOfRun, runsOf, sinkSum, TAKE_RUN } from "./runs.ts";

/** What a shader is made for. */
export interface AttentionTeamsParams extends HeadShape {
  readonly rule: SpanRule;
  /** Query heads that a workgroup serves, all of one key head. */
  readonly tileHeads: number;
  /** Lanes of a team, a power of 2 that divides the quads of a head, and its queries, a power of 2 up to those. */
  readonly lanes: number;
  readonly each: number;
  readonly invocations: number;
  /** Keys in workgroup memory, and of a turn of the loop: the maximum moves once for all. */
  readonly block: number;
  readonly turn: number;
  readonly subgroupSize: number;
  readonly sinks: boolean;
  /** Write 8-bit rows: heads of a multiple of 32 channels, teams of 8 lanes. */
  readonly quantize: boolean;
}

/** Rows of a workgroup. */
export function attentionTeamsRows(
  { invocations, lanes, each, tileHeads }: Pick<
    AttentionTeamsParams,
    "invocations" | "lanes" | "each" | "tileHeads"
  >,
): number {
  return Math.floor(invocations / lanes * each / tileHeads);
}

/** Bytes of workgroup memory that a shader takes. */
export function attentionTeamsBytes(
  params: Pick<
    AttentionTeamsParams,
    "width" | "valueWidth" | "block" | "invocations" | "lanes" | "each" | "tileHeads"
  >,
): number {
  const { width, valueWidth, block } = params;
  return 4 * block * (width + valueWidth) + 16 * attentionTeamsRows(params) + 16;
}

/** What the pieces of the text are made of. */
interface Teams extends AttentionTeamsParams {
  readonly readers: HeadReaders;
  readonly rows: number;
  /** Quads of a lane. */
  readonly keyQuads: number;
  readonly valueQuads: number;
  readonly quantizer: GroupQuantizer | undefined;
}

/** The shader; bindings q, k, v, y, sinks, those of the rule; workgroups: row tiles, head tiles. */
export function attentionTeams(params: AttentionTeamsParams): Shader {
  const { rule, heads, valueWidth, lanes, invocations, block, turn, sinks, quantize } = params;
  const readers = headReaders(params), { q, k, v } = readers;
  const teams: Teams = {
    ...{ ...params, readers, rows: attentionTeamsRows(params) },
    ...{ keyQuads: params.width / 4 / lanes, valueQuads: valueWidth / 4 / lanes },
    quantizer: quantize
      ? groupQuantizer({
        ...{ columns: heads * valueWidth, workgroup: invocations, passes: 1, subgroups: true },
      })
      : undefined,
  };
  const { quantizer, keyQuads, valueQuads } = teams;
  const first = isEarly(rule) ? `run.start / ${block}u * ${block}u` : "run.start";
  /** By turns: the turn and the lane are the indices that are not known. */
  const memory = (quads: number) =>
    `array<array<array<vec4<f32>, ${lanes}>, ${turn * quads}>, ${block / turn}>`;
  return {
    name: quantize ? "attention_teams_q8" : "attention_teams",
    storage: {
      ...{ q: q.type, ...readers.storage, y: quantize ? "array<u32>" : "array<vec4<f32>>" },
      ...sinks ? { sinks: "array<f32>" } : {},
      ...rule.storage,
    },
    writes: ["y"],
    uniforms: { rows: "u32", ...rule.uniforms },
    enables: ["subgroups"],
    code: wgsl`
      ${rule.code}

      ${quantizer?.put ?? ""}

      ${q.code}

      ${k.code}

      ${v.code}

      ${runsOf(teams.rows)}

      var<workgroup> k_block: ${memory(keyQuads)};
      var<workgroup> v_block: ${memory(valueQuads)};

      fn added(a: vec4<f32>, b: vec4<f32>, sum: f32) -> f32 {
        return fma(a.x, b.x, fma(a.y, b.y, fma(a.z, b.z, fma(a.w, b.w, sum))));
      }

      @compute @workgroup_size(${invocations})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        ${begin(teams)}
        var next = 0u;
        loop {
          ${TAKE_RUN}
          let is_mine = ${isOfRun("own_row")};
          var peak = ${NO_SCORE};
          var total = 0.0;
          ${
      list(params.each * valueQuads, (at) =>
        `var sum${at % params.each}_${Math.floor(at / params.each)} = vec4<f32>();`)
    }
          ${declareNext(teams)}
          var next_key = ${first};
          ${fetchNext(teams)}
          for (var first_key = next_key; first_key < run.end; first_key = next_key) {
            ${place(teams, "k")}
            ${place(teams, "v")}
            workgroupBarrier();
            // The next block is on its way while this one is used.
            next_key += ${block}u;
            ${fetchNext(teams)}
            let turns = (min(run.end - first_key, ${block}u) + ${turn - 1}u) / ${turn}u;
            for (var turn = 0u; turn < turns; turn++) {
              ${takeTurn(teams)}
            }
            workgroupBarrier();
          }
          ${writeRows(teams)}
        }
      }
    `,
  };
}

function begin(teams: Teams): string {
  const { heads, kvHeads, rule, tileHeads, lanes, each, rows, invocations, subgroupSize } = teams;
  const { keyQuads } = teams;
  const group = heads / kvHeads, tiles = tilesOfGroup(teams);
  const head = (query: string) => `min(first_head + ${query} % ${tileHeads}u, last_head)`;
  return wgsl`
    // Later rows see more keys: half of the heads begin with the last ones, so that every processor gets some of both.
    let last_tile = (params.rows - 1u) / ${rows}u;
    let first_row = select(id.x, last_tile - id.x, id.y < ${
    Math.ceil(headTiles(teams) / 2)
  }u) * ${rows}u;
    let rows_here = min(${rows}u, params.rows - first_row);
    let kv_head = id.y / ${tiles}u;
    let first_head = kv_head * ${group}u + id.y % ${tiles}u * ${tileHeads}u;
    let last_head = (kv_head + 1u) * ${group}u - 1u;
    for (var row = thread; row < rows_here; row += ${invocations}u) {
      spans[row] = span_of(first_row + row);
    }
    let lane = thread % ${lanes}u;
    let first_query = thread / ${lanes}u * ${each}u;
    let first_lane = thread % ${subgroupSize}u - lane;
    ${
    list(each, (n) =>
      wgsl`
      let query${n} = first_query + ${n}u;
      let query_row${n} = ${
        layoutOf(rule, teams).query(
          `(first_row + min(query${n} / ${tileHeads}u, rows_here - 1u))`,
          head(`query${n}`),
        )
      };
      ${list(keyQuads, (c) => `let q${n}_${c} = q_quad(query_row${n}, ${lanes * c}u + lane);`)}
    `)
  }
    workgroupBarrier();
    // The query whose scores this lane has.
    let own_query = first_query + lane / ${lanes / each}u;
    let own_row = own_query / ${tileHeads}u;
    let own_head = ${head("own_query")};
    let span = spans[min(own_row, rows_here - 1u)];
  `;
}

/** Quads of a block of keys or values that an invocation has, and whether all invocations have as many. */
function partOf({ block, invocations, readers }: Teams, name: "k" | "v") {
  const { units, unitQuads } = readers[name];
  return { units: Math.ceil(block * units / invocations), unitQuads, all: block * units };
}

function declareNext(teams: Teams): string[] {
  return (["k", "v"] as const).flatMap((name) => {
    const { units, unitQuads } = partOf(teams, name);
    return list(units * unitQuads, (at) => `var next_${name}${at} = vec4<f32>();`);
  });
}

/** Statements for each unit that an invocation has of a block, its index `i` being known. */
function ofUnits(teams: Teams, name: "k" | "v", text: (unit: number) => string): string[] {
  const { units, all } = partOf(teams, name), { invocations } = teams;
  return list(units, (n) =>
    wgsl`
    {
      let i = thread + ${n * invocations}u;
      ${(n + 1) * invocations > all ? `if (i < ${all}u) {` : "{"}
        ${text(n)}
      }
    }
  `);
}

/** Keys and values of the block at `next_key`, if there is one, into registers. */
function fetchNext(teams: Teams): string {
  const { rule, heads, kvHeads } = teams, layout = layoutOf(rule, { heads, kvHeads });
  return wgsl`
    if (next_key < run.end) {
      let page = ${pageOf(rule, { base: "spans[run.first].base", key: "next_key" })};
      ${
    (["k", "v"] as const).flatMap((name) => {
      const { units, unitQuads, load } = teams.readers[name];
      const own = `next_key + i / ${units}u`;
      return ofUnits(teams, name, (n) =>
        wgsl`
        let key = min(${isEarly(rule) ? `max(${own}, run.start)` : own}, run.end - 1u);
        let line = ${
          layout[name === "k" ? "key" : "value"]("page", placeOf(rule, "key"), "kv_head")
        };
        ${load("own", "line", `i % ${units}u`)}
        ${list(unitQuads, (c) => `next_${name}${n * unitQuads + c} = own${c};`)}
      `);
    })
  }
    }
  `;
}

/** The block that was fetched into workgroup memory. */
function place(teams: Teams, name: "k" | "v"): string[] {
  const { lanes, turn } = teams, { units, unitQuads } = teams.readers[name];
  const quads = name === "k" ? teams.keyQuads : teams.valueQuads;
  return ofUnits(teams, name, (n) =>
    wgsl`
    let place = i / ${units}u;
    ${
      list(unitQuads, (c) =>
        wgsl`
        let quad${c} = i % ${units}u * ${unitQuads}u + ${c}u;
        ${name}_block[place / ${turn}u][place % ${turn}u * ${quads}u + quad${c} / ${lanes}u][quad${c} % ${lanes}u] = next_${name}${
          n * unitQuads + c
        };
      `)
    }
  `);
}

/** Scores of a turn's keys, their weights, and what these take of the values. */
function takeTurn(teams: Teams): string {
  const { each, turn, keyQuads, valueQuads } = teams;
  const perQuery = (text: (n: number) => string) => list(each, text);
  return wgsl`
    ${list(each * turn, (at) => `var dot${at % each}_${Math.floor(at / each)} = 0.0;`)}
    ${
    list(turn * keyQuads, (at) => {
      const i = Math.floor(at / keyQuads), c = at % keyQuads;
      return wgsl`
        {
          let key = k_block[turn][${at}][lane];
          ${perQuery((n) => `dot${n}_${i} = added(q${n}_${c}, key, dot${n}_${i});`)}
        }
      `;
    })
  }
    ${list(turn, (i) => ownOf(teams, i).join("\n"))}
    let behind = first_key + turn * ${turn}u;
    ${
    list(turn, (i) =>
      wgsl`
      let key${i} = behind + ${i}u;
      var score${i} = adjust(dot0_${i}, own_head, key${i}, span);
    `)
  }
    if (!is_mine || behind < span.start || behind + ${turn}u > span.end) {
      ${
    list(turn, (i) =>
      wgsl`
        let sees${i} = is_mine && key${i} >= span.start && key${i} < span.end;
        score${i} = select(${NO_SCORE}, score${i}, sees${i});
      `)
  }
    }
    let fresh = ${
    list(turn, (i) => `score${i}`).reduce((most, own) => `max(${most}, ${own})`, "peak")
  };
    let fade = exp(peak - fresh);
    peak = fresh;
    // So far above what is not seen that this weighs nothing.
    let base = max(fresh, -1e38);
    ${list(turn, (i) => `let weight${i} = exp(score${i} - base);`)}
    total = total * fade + ${list(turn, (i) => `weight${i}`).join(" + ")};
    ${perQuery((n) => `let fade${n} = ${fromOwner("fade", teams, n)};`)}
    if (${perQuery((n) => `fade${n}`).join(" * ")} != 1.0) {
      ${
    list(each * valueQuads, (at) => `sum${at % each}_${Math.floor(at / each)} *= fade${at % each};`)
  }
    }
    ${
    list(turn, (i) =>
      wgsl`
      {
        ${perQuery((n) => `let own${n} = ${fromOwner(`weight${i}`, teams, n)};`)}
        ${
        list(valueQuads, (c) =>
          wgsl`
          let value${c} = v_block[turn][${i * valueQuads + c}][lane];
          ${perQuery((n) => `sum${n}_${c} = fma(vec4<f32>(own${n}), value${c}, sum${n}_${c});`)}
        `)
      }
      }
    `)
  }
  `;
}

/** Adds up the products of key `i` over a team: halves of the queries go to halves of the lanes, until a lane has one's. */
function ownOf({ lanes, each }: Teams, i: number): string[] {
  const text: string[] = [];
  let queries = each;
  for (let apart = lanes / 2; apart >= 1; apart /= 2) {
    if (queries > 1) {
      queries /= 2;
      for (let n = 0; n < queries; n++) {
        const [low, high] = [`dot${n}_${i}`, `dot${n + queries}_${i}`];
        const isHigh = `(lane & ${apart}u) != 0u`;
        text.push(
          `${low} = select(${low}, ${high}, ${isHigh}) + ` +
            `subgroupShuffleXor(select(${high}, ${low}, ${isHigh}), ${apart}u);`,
        );
      }
    } else text.push(`dot0_${i} += subgroupShuffleXor(dot0_${i}, ${apart}u);`);
  }
  return text;
}

/** What the lane of query `n` of the team has. */
function fromOwner(name: string, { lanes, each }: Teams, n: number): string {
  return `subgroupShuffle(${name}, first_lane + ${n * lanes / each}u)`;
}

function writeRows(teams: Teams): string {
  const { rule, tileHeads, lanes, each, valueQuads, quantizer, sinks } = teams;
  const headQuads = lanes * valueQuads;
  const row = (n: number) => `(first_row + query${n} / ${tileHeads}u)`;
  const head = (n: number) => `(first_head + query${n} % ${tileHeads}u)`;
  return wgsl`
    var all = total;
    var scale = 1.0;
    ${sinks ? sinkSum("own_head") : ""}
    let share = ${whereSeen(rule, { sum: "all", factor: "scale / all" })};
    ${
    list(each, (n) =>
      wgsl`
      {
        let own_share = ${fromOwner("share", teams, n)};
        let inside = ${isOfRun(`(query${n} / ${tileHeads}u)`)} && ${head(n)} <= last_head;
        ${
        list(valueQuads, (c) => {
          const quad = `${lanes * c}u + lane`;
          return wgsl`
            {
              let value0 = own_share * sum${n}_${c};
              ${quantizer?.quantize ?? ""}
              if (inside) {
                ${
            quantizer
              ? `put(${row(n)}, ${
                head(n)
              } * ${headQuads}u + ${quad}, scale0, codes0, half0, rest0);`
              : `y[(${
                layoutOf(rule, teams).result(row(n), head(n))
              }) * ${headQuads}u + ${quad}] = value0;`
          }
              }
            }
          `;
        })
      }
      }
    `)
  }
  `;
}
