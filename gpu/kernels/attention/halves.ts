// Attention of many rows that all see the same keys on subgroup matrices, queries, keys, values and weights rounded to float16, sums
// in float32, as attention in half precision has them elsewhere. Keys and values become halves once, in scratch memory, the channels
// of values one behind the other. Scores are made the other way round, keys by queries, so that an invocation finds those of its
// query below each other, in a bank of its own. What weights are measured from moves when a score is far above it: sums,
// which only memory can multiply, are seldom rescaled. Numbers are divided by a largest one before they are rounded.

import type { Shader } from "../../kernel.ts";
import { float, mainOf, wgsl } from "../../wgsl.ts";
import { HALVES_FACTOR, LARGEST_HALF } from "../matmul/halves.ts";
import { LEFT, RESULT, RIGHT, UNIT } from "../matmul/matrix_tile.ts";
import { list } from "../matmul/rows.ts";
import { shared } from "../matmul/tile.ts";
import { HALVES_KEYS, padded } from "./head_halves.ts";
import { headReaders, type HeadShape } from "./heads.ts";
import { layoutOf, NO_SCORE, type SpanRule } from "./spans.ts";

/** Halves, and floats, that lines are longer in workgroup memory than what they hold, so that neighbours lie in other banks. */
const HALVES_APART = 8, FLOATS_APART = 8;
/** By how many powers of 2 a weight may be above 1. */
const SLACK = 8;

/** What a shader is made for. */
export interface AttentionHalvesParams extends HeadShape {
  /** Says how heads lie; every row sees all keys of its item. */
  readonly rule: SpanRule;
  readonly scale: number;
  readonly subgroups: number;
  /** Matrices of queries of a subgroup. */
  readonly units: 1 | 2;
  /** Invocations of a subgroup: 16 × `units`, or twice as many. */
  readonly subgroupSize: number;
}

type Sizes = Pick<AttentionHalvesParams, "width" | "valueWidth" | "subgroups" | "units">;

/** Queries of a workgroup. */
export function halvesQueries({ subgroups, units }: Pick<Sizes, "subgroups" | "units">): number {
  return UNIT * units * subgroups;
}

/** What the pieces of the text are made of. */
interface Tile extends AttentionHalvesParams {
  readonly threads: number;
  /** Queries of a subgroup, invocations of each, and keys of an invocation. */
  readonly own: number;
  readonly lanes: number;
  readonly each: number;
  /** Matrices of channels. */
  readonly across: number;
  readonly valueAcross: number;
  /** Vectors of four halves from one line of keys, of values and of weights to the next, floats from one of scores. */
  readonly line: number;
  readonly valueLine: number;
  readonly weightLine: number;
  readonly scoreLine: number;
  /** Vectors of four halves of a block's keys, and of its values. */
  readonly keyQuads: number;
  readonly valueQuads: number;
}

function tileOf(params: AttentionHalvesParams): Tile {
  const { width, valueWidth, subgroups, subgroupSize, units } = params;
  const own = UNIT * units, lanes = subgroupSize / own;
  const line = (padded(width) + HALVES_APART) / 4, valueLine = (HALVES_KEYS + HALVES_APART) / 4;
  return {
    ...{ ...params, own, lanes, line, valueLine, threads: subgroups * subgroupSize },
    ...{ across: padded(width) / UNIT, valueAcross: padded(valueWidth) / UNIT },
    ...{ each: HALVES_KEYS / lanes, weightLine: valueLine, scoreLine: own + FLOATS_APART },
    ...{ keyQuads: HALVES_KEYS * line, valueQuads: padded(valueWidth) * valueLine },
  };
}

/** Vectors of four halves: the queries of a tile, later the keys of a block and the values of two. */
function halvesOf({ subgroups, own, line, keyQuads, valueQuads }: Omit<Tile, "rule">): number {
  return Math.max(subgroups * own * line, keyQuads + 2 * valueQuads);
}

/** Bytes of workgroup memory that a shader takes. */
export function attentionHalvesBytes(sizes: Sizes): number {
  const tile = tileOf({ ...sizes, subgroupSize: UNIT * sizes.units } as AttentionHalvesParams);
  const { subgroups, own, weightLine, scoreLine } = tile;
  return 8 * halvesOf(tile) + subgroups * (8 * own * weightLine + 4 * HALVES_KEYS * scoreLine) + 16;
}

/**
 * The shader; bindings q, k_halves, v_halves, k_tops, v_tops (`headHalves`), y, of whole quads; workgroups: rows of an item, heads,
 * items.
 */
export function attentionHalves(params: AttentionHalvesParams): Shader {
  const tile = tileOf(params), { rule, heads, kvHeads, subgroups, subgroupSize, own } = tile;
  const { threads, scoreLine, weightLine, units, valueAcross } = tile;
  const { q } = headReaders(params), sums = sumsOf(tile);
  return {
    name: "attention_halves",
    storage: {
      ...{ q: q.type, k_halves: "array<vec4<u32>>", v_halves: "array<vec4<u32>>" },
      ...{ k_tops: "array<f32>", v_tops: "array<f32>", y: "array<vec4<f32>>" },
    },
    writes: ["y"],
    uniforms: { ...rule.uniforms, blocks: "u32" },
    enables: ["f16", "subgroups", "subgroup_matrix"],
    code: wgsl`
      ${q.code}

      // Queries, then the keys of a block and behind them the values of two that take turns.
      var<workgroup> halves: array<vec4<f16>, ${halvesOf(tile)}>;
      var<workgroup> scores: array<f32, ${subgroups * HALVES_KEYS * scoreLine}>;
      var<workgroup> weights: array<vec4<f16>, ${subgroups * own * weightLine}>;
      // The last block for which sums were rescaled: 16 bytes, because matrices are loaded from such boundaries.
      var<workgroup> moved: vec4<u32>;

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "group", lane: "thread" })}
        let head = group.y;
        let stack = group.z * ${kvHeads}u + head / ${heads / kvHeads}u;
        let subgroup = thread / ${subgroupSize}u;
        let query = thread % ${subgroupSize}u / ${tile.lanes}u;
        let lane = thread % ${tile.lanes}u;
        let own_query = subgroup * ${own}u + query;
        let own_score = subgroup * ${HALVES_KEYS * scoreLine}u;
        let place = group.x * ${halvesQueries(params)}u + own_query;
        let row = group.z * params.item_rows + min(place, params.item_rows - 1u);
        ${loadQueries(tile)}
        var peak = ${NO_SCORE};
        var all = 0.0;
        ${list(valueAcross * units, (n) => `var ${sums(n)} = ${RESULT}();`)}
        ${bring(tile)}
        ${fill(tile, "0u")}
        workgroupBarrier();
        for (var block = 0u; block < params.blocks; block++) {
          let k_top = k_top_next;
          ${fetch(tile, "min(block + 1u, params.blocks - 1u)")}
          ${scoreBlock(tile)}
          workgroupBarrier();
          ${weighBlock(tile)}
          ${fill(tile, "(block + 1u) % 2u")}
          ${sumBlock(tile)}
          workgroupBarrier();
        }
        ${writeRows(tile)}
      }
    `,
  };
}

/** Name of the `n`th sum: of matrix n / units of channels, n % units of queries. */
function sumsOf({ units }: Pick<Tile, "units">): (n: number) => string {
  return (n) => `sum${Math.floor(n / units)}_${n % units}`;
}

/** Statements for each step in which the lanes of a query put something together. */
function acrossLanes({ lanes }: Tile, text: (other: (name: string) => string) => string): string[] {
  return list(Math.log2(lanes), (i) => text((name) => `subgroupShuffleXor(${name}, ${2 ** i}u)`));
}

/**
 * Queries as matrices, each divided by a part of its largest magnitude; \`size\`: what their products are multiplied by. What is read is
 * read at once: in a loop each would be waited for.
 */
function loadQueries(tile: Tile): string {
  const { rule, width, lanes, line, across, units, own, scale } = tile, quads = width / 4;
  const count = across * UNIT / 4 / lanes;
  const quad = (n: number) => `lane + ${n * lanes}u`;
  return wgsl`
    let query_row = ${layoutOf(rule, tile).query("row", "head")};
    ${list(count, (n) => `let quad${n} = q_quad(query_row, min(${quad(n)}, ${quads - 1}u));`)}
    var most_of = vec4<f32>();
    ${list(count, (n) => `most_of = max(most_of, abs(quad${n}));`)}
    var top = max(max(most_of.x, most_of.y), max(most_of.z, most_of.w));
    ${acrossLanes(tile, (other) => `top = max(top, ${other("top")});`)}
    let inverse = ${HALVES_FACTOR};
    let size = top * ${float(scale * Math.LOG2E / LARGEST_HALF)};
    ${
    list(count, (n) =>
      wgsl`
      halves[own_query * ${line}u + ${quad(n)}] = vec4<f16>(
        quad${n} * select(0.0, inverse, ${quad(n)} < ${quads}u),
      );
    `)
  }
    workgroupBarrier();
    ${
    list(across * units, (n) => {
      const c = Math.floor(n / units), i = n % units;
      return `let query${c}_${i} = subgroupMatrixLoad<${RIGHT}, col_major>(&halves, ` +
        `(subgroup * ${own}u + ${UNIT * i}u) * ${line}u + ${c * UNIT / 4}u, ${line}u);`;
    })
  }
    workgroupBarrier();
  `;
}

/** Vectors of eight halves of a block that the invocations share out. */
function itemsOf({ across, valueAcross, threads }: Tile) {
  return {
    keys: { items: HALVES_KEYS * across * UNIT / 8, threads },
    values: { items: valueAcross * UNIT * HALVES_KEYS / 8, threads },
  };
}

/** Declares what an invocation reads of a block, and reads the first. */
function bring(tile: Tile): string {
  const { keys, values } = itemsOf(tile);
  const own = ({ items, threads }: typeof keys) => Math.ceil(items / threads);
  return wgsl`
    var k_top_next: f32;
    ${list(own(keys), (n) => `var k_next${n}: vec4<u32>;`)}
    ${list(own(values), (n) => `var v_next${n}: vec4<u32>;`)}
    ${fetch(tile, "0u")}
  `;
}

function fetch(tile: Tile, block: string): string {
  const { keys, values } = itemsOf(tile), parts = HALVES_KEYS / 8;
  return wgsl`
    {
      let next = ${block};
      k_top_next = k_tops[stack * params.blocks + next];
      let k_block = (stack * params.blocks + next) * ${keys.items}u;
      ${shared(keys, (item, n) => `k_next${n} = k_halves[k_block + ${item}];`)}
      let v_line = stack * ${tile.valueAcross * UNIT}u;
      ${
    shared(values, (item, n) =>
      `v_next${n} = v_halves[((v_line + ${item} / ${parts}u) * params.blocks + next) * ${parts}u + ` +
      `${item} % ${parts}u];`)
  }
    }
  `;
}

/** Writes it into workgroup memory, values into one of two places. */
function fill(tile: Tile, turn: string): string {
  const { keys, values } = itemsOf(tile), { line, valueLine, across, keyQuads } = tile;
  const eights = across * UNIT / 8, parts = HALVES_KEYS / 8;
  const put = (at: string, value: string) =>
    wgsl`
      let at = ${at};
      halves[at] = bitcast<vec4<f16>>(${value}.xy);
      halves[at + 1u] = bitcast<vec4<f16>>(${value}.zw);
    `;
  return wgsl`
    {
      let v_block = ${keyQuads}u + ${turn} * ${tile.valueQuads}u;
      ${
    shared(keys, (item, n) =>
      put(`${item} / ${eights}u * ${line}u + ${item} % ${eights}u * 2u`, `k_next${n}`))
  }
      ${
    shared(values, (item, n) =>
      put(
        `v_block + ${item} / ${parts}u * ${valueLine}u + ${item} % ${parts}u * 2u`,
        `v_next${n}`,
      ))
  }
    }
  `;
}

/** Scores of a block into workgroup memory, keys by queries. */
function scoreBlock({ across, units, line, scoreLine }: Tile): string {
  return wgsl`
    ${
    list(HALVES_KEYS / UNIT, (j) =>
      wgsl`
      {
        ${list(units, (i) => `var score${i} = ${RESULT}();`)}
        ${
        list(across, (c) =>
          wgsl`
          {
            let keys = subgroupMatrixLoad<${LEFT}, row_major>(&halves, ${
            UNIT * j * line + c * UNIT / 4
          }u, ${line}u);
            ${
            list(units, (i) =>
              `score${i} = subgroupMatrixMultiplyAccumulate(keys, query${c}_${i}, score${i});`)
          }
          }
        `)
      }
        ${
        list(units, (i) =>
          `subgroupMatrixStore<row_major>(&scores, own_score + ${
            UNIT * (j * scoreLine + i)
          }u, score${i}, ${scoreLine}u);`)
      }
      }
    `)
  }
  `;
}

/** Scores become weights, and sums are rescaled where what those are measured from has moved. */
function weighBlock(tile: Tile): string {
  const { each, scoreLine, weightLine, valueAcross } = tile;
  return wgsl`
    let first = own_score + lane * ${each * scoreLine}u + query;
    let factor_here = size * k_top;
    ${list(each, (n) => `var score${n} = scores[first + ${n * scoreLine}u] * factor_here;`)}
    if ((block + 1u) * ${HALVES_KEYS}u > params.keys) {
      let behind = block * ${HALVES_KEYS}u + lane * ${each}u;
      ${list(each, (n) => `if (behind + ${n}u >= params.keys) { score${n} = ${NO_SCORE}; }`)}
    }
    var most = score0;
    ${list(each - 1, (n) => `most = max(most, score${n + 1});`)}
    ${acrossLanes(tile, (other) => `most = max(most, ${other("most")});`)}
    let moves = most > peak + ${float(SLACK)};
    let fresh = select(peak, most, moves);
    let factor = exp2(peak - fresh);
    peak = fresh;
    all *= factor;
    // All write the same; before the first block there are no sums.
    if (moves && block > 0u) { moved = vec4<u32>(block); }
    ${
    list(each / 4, (quad) =>
      wgsl`
      {
        let weight = exp2(vec4<f32>(${list(4, (c) => `score${4 * quad + c}`).join(", ")}) - peak);
        all += (weight.x + weight.y) + (weight.z + weight.w);
        weights[own_query * ${weightLine}u + lane * ${each / 4}u + ${quad}u] = vec4<f16>(weight);
      }
    `)
  }
    if (workgroupUniformLoad(&moved).x == block && block > 0u) {
      ${
    list(Math.ceil(valueAcross / 2), (pair) =>
      wgsl`
      {
        ${storeSums(tile, pair)}
        workgroupBarrier();
        ${list(each, (n) => `scores[first + ${n * scoreLine}u] *= factor;`)}
        workgroupBarrier();
        ${
        ofPair(tile, pair, (sum, at) =>
          `${sum} = subgroupMatrixLoad<${RESULT}, row_major>(&scores, own_score + ${at}u, ${scoreLine}u);`)
      }
        workgroupBarrier();
      }
    `)
  }
    }
  `;
}

/** Statements for the sums of 32 channels, and where each lies in the memory of scores. */
function ofPair(
  tile: Tile,
  pair: number,
  text: (sum: string, at: number) => string,
): string[] {
  const { units, valueAcross, scoreLine } = tile, sums = sumsOf(tile);
  const count = Math.min(2, valueAcross - 2 * pair);
  return list(count * units, (n) =>
    text(
      sums(2 * pair * units + n),
      UNIT * (Math.floor(n / units) * scoreLine + n % units),
    ));
}

function storeSums(tile: Tile, pair: number): string[] {
  return ofPair(
    tile,
    pair,
    (sum, at) =>
      `subgroupMatrixStore<row_major>(&scores, own_score + ${at}u, ${sum}, ${tile.scoreLine}u);`,
  );
}

function sumBlock(
  { keyQuads, valueQuads, valueLine, weightLine, own, units, valueAcross }: Tile,
): string {
  return wgsl`
    let v_block = ${keyQuads}u + block % 2u * ${valueQuads}u;
    ${
    list(HALVES_KEYS / UNIT, (j) =>
      wgsl`
      {
        ${
        list(units, (i) =>
          `let weight${i} = subgroupMatrixLoad<${RIGHT}, col_major>(&weights, ` +
          `(subgroup * ${own}u + ${UNIT * i}u) * ${weightLine}u + ${
            j * UNIT / 4
          }u, ${weightLine}u);`)
      }
        ${
        list(valueAcross, (c) =>
          wgsl`
          {
            let values = subgroupMatrixLoad<${LEFT}, row_major>(&halves, v_block + ${
            UNIT * c * valueLine + j * UNIT / 4
          }u, ${valueLine}u);
            ${
            list(
              units,
              (i) =>
                `sum${c}_${i} = subgroupMatrixMultiplyAccumulate(values, weight${i}, sum${c}_${i});`,
            )
          }
          }
        `)
      }
      }
    `)
  }
  `;
}

function writeRows(tile: Tile): string {
  const { rule, valueWidth, valueAcross, each, scoreLine } = tile, quads = valueWidth / 4;
  return wgsl`
    ${acrossLanes(tile, (other) => `all += ${other("all")};`)}
    let to = (${layoutOf(rule, tile).result("row", "head")}) * ${quads}u;
    let own = own_score + lane * ${each * scoreLine}u + query;
    ${
    list(Math.ceil(valueAcross / 2), (pair) =>
      wgsl`
      {
        ${
        list(each / 4, (n) =>
          wgsl`
          let quad${n} = ${8 * pair}u + lane * ${each / 4}u + ${n}u;
          let top${n} = v_tops[stack * ${2 * valueAcross}u + min(quad${n} / 2u, ${
            2 * valueAcross - 1
          }u)];
        `)
      }
        ${storeSums(tile, pair)}
        workgroupBarrier();
        ${
        list(each / 4, (n) =>
          wgsl`
          if (place < params.item_rows && quad${n} < ${quads}u) {
            y[to + quad${n}] = vec4<f32>(${
            list(4, (c) => `scores[own + ${(4 * n + c) * scoreLine}u]`).join(", ")
          }) * (top${n} / all);
          }
        `)
      }
        workgroupBarrier();
      }
    `)
  }
  `;
}
