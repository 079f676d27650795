// Scores of a walker's turn, dealt out: where it has at least as many scores (heads times keys) as lanes, the lanes halve
// them by shuffles until each has the whole sums of a few of one head, which it alone makes into weights, and weights go to
// all lanes: fewer shuffles than to add all of them up in all lanes, and each exponential once.

import { wgsl } from "../../wgsl.ts";
import { list } from "../matmul/rows.ts";
import { NO_SCORE } from "./spans.ts";

/** What the pieces are made for. */
export interface DealParams {
  readonly tileHeads: number;
  /** Keys of a turn, and lanes of a walker. */
  readonly turn: number;
  readonly lanes: number;
  readonly subgroupSize: number;
}

/** Scores of a lane. */
function eachOf({ tileHeads, turn, lanes }: DealParams): number {
  return tileHeads * turn / lanes;
}

/** Whether scores can be dealt out so that those of a lane are of one head. */
export function canDeal(params: DealParams): boolean {
  const each = eachOf(params);
  return params.lanes > 1 && each >= 1 && Number.isInteger(Math.log2(each)) &&
    params.turn % each === 0;
}

/** Lane of a walker that has the score of a key with a head. */
function laneOf(params: DealParams, h: number, j = 0): number {
  return Math.floor((h * params.turn + j) / eachOf(params));
}

/** Statements before the turns: a lane's head, and its largest score and sum, which begin as `peak{h}` and `total{h}`. */
export function beginDealt(params: DealParams): string {
  const { tileHeads, turn, lanes, subgroupSize } = params, each = eachOf(params);
  return wgsl`
    let walker_lane = thread % ${subgroupSize}u / ${lanes}u * ${lanes}u;
    let dealt_place = lane * ${each}u / ${turn}u;
    let dealt_key = lane * ${each}u % ${turn}u;
    let dealt_head = min(first_head + dealt_place, last_head);
    var dealt_peak = ${NO_SCORE};
    var dealt_total = 0.0;
    ${
    list(tileHeads, (h) =>
      wgsl`
      if (dealt_place == ${h}u) {
        dealt_peak = peak${h};
        dealt_total = select(0.0, total${h}, dealt_key == 0u);
      }
    `)
  }
  `;
}

/**
 * Statements of a turn that define `factor{h}` and `weight{h}_{j}` from a lane's parts `part{h}_{j}` of the scores.
 *
 * @param isSeen Whether a key (an expression) lies in the span.
 * @param isMasked Whether a score may be none all the same.
 */
export function dealScores(
  params: DealParams,
  { isSeen, isMasked }: { isSeen: (key: string) => string; isMasked: boolean },
): string {
  const { tileHeads, turn, lanes } = params, each = eachOf(params);
  const { text, left } = halve(
    list(tileHeads * turn, (n) => `part${Math.floor(n / turn)}_${n % turn}`),
    { distances: powersOf2(1, lanes).reverse(), name: "part_" },
  );
  const perOwn = (text: (i: number) => string) => list(each, text);
  const headLanes = turn / each;
  return wgsl`
    ${text}
    ${
    perOwn((i) =>
      wgsl`
      let dealt_key${i} = first_key + dealt_key + ${i}u;
      let is_seen${i} = ${isSeen(`dealt_key${i}`)};
      let dealt${i} = select(
        ${NO_SCORE}, adjust(${left[i]}, dealt_head, dealt_key${i}, span), is_seen${i},
      );
    `
    )
  }
    var dealt_most = ${
    Array.from({ length: each }, (_, i) => `dealt${i}`)
      .reduce((most, score) => `max(${most}, ${score})`, "dealt_peak")
  };
    ${
    list(Math.log2(headLanes), (i) =>
      `dealt_most = max(dealt_most, subgroupShuffleXor(dealt_most, ${1 << i}u));`)
  }
    let dealt_factor = exp(dealt_peak - dealt_most);
    dealt_peak = dealt_most;
    ${
    perOwn((i) =>
      `let dealt_weight${i} = select(0.0, exp(dealt${i} - dealt_most), ${
        isMasked ? `dealt${i} > ${NO_SCORE}` : `is_seen${i}`
      });`
    )
  }
    dealt_total = dealt_total * dealt_factor + ${perOwn((i) => `dealt_weight${i}`).join(" + ")};
    ${
    list(tileHeads, (h) =>
      `let factor${h} = subgroupShuffle(dealt_factor, walker_lane + ${laneOf(params, h)}u);`)
  }
    ${
    list(tileHeads * turn, (n) => {
      const h = Math.floor(n / turn), j = n % turn;
      return `let weight${h}_${j} = subgroupShuffle(dealt_weight${n % each}, walker_lane + ${
        laneOf(params, h, j)
      }u);`;
    })
  }
  `;
}

/** Statements behind the turns: `share{h}` of a walker's sums, and in `stats` what those of a subgroup have seen. */
export function endDealt(params: DealParams): string {
  const { tileHeads, turn, lanes, subgroupSize } = params, headLanes = turn / eachOf(params);
  const walkers = powersOf2(lanes, subgroupSize);
  const other = (name: string, distance: number) => `subgroupShuffleXor(${name}, ${distance}u)`;
  return wgsl`
    var most = dealt_peak;
    ${walkers.map((distance) => `most = max(most, ${other("most", distance)});`)}
    let dealt_share = exp(dealt_peak - most);
    dealt_total *= dealt_share;
    ${
    [...powersOf2(1, headLanes), ...walkers].map((distance) =>
      `dealt_total += ${other("dealt_total", distance)};`
    )
  }
    if (thread % ${subgroupSize}u < ${lanes}u && dealt_key == 0u) {
      stats[subgroup * ${tileHeads}u + dealt_place] = vec2<f32>(most, dealt_total);
    }
    ${
    list(
      tileHeads,
      (h) => `let share${h} = subgroupShuffle(dealt_share, walker_lane + ${laneOf(params, h)}u);`,
    )
  }
  `;
}

/** Powers of 2 from `least` up to below `below`. */
export function powersOf2(least: number, below: number): number[] {
  return Array.from({ length: Math.log2(below / least) }, (_, i) => least << i);
}

/** Whether an invocation is the upper one of two so far apart: an expression. */
export function isUpper(distance: number): string {
  return `(thread & ${distance}u) != 0u`;
}

/**
 * Statements by which lanes add up values (expressions) with those of lanes at some distances, and `left`, the names of
 * what a lane has of them then: each time the upper one goes on with the second half. A single one goes on in both.
 */
export function halve(
  values: readonly string[],
  { distances, name }: { readonly distances: readonly number[]; readonly name: string },
): { readonly text: string[]; readonly left: readonly string[] } {
  const text: string[] = [];
  let left = values;
  for (const distance of distances) {
    const half = left.length >> 1, upper = isUpper(distance);
    const add = (kept: string, given: string) =>
      `${kept} + subgroupShuffleXor(${given}, ${distance}u)`;
    const sums = half === 0 ? left.map((value) => add(value, value)) : list(half, (i) => {
      const [lower, higher] = [left[i]!, left[half + i]!];
      return add(
        `select(${lower}, ${higher}, ${upper})`,
        `select(${higher}, ${lower}, ${upper})`,
      );
    });
    left = sums.map((_, i) => `${name}${distance}_${i}`);
    text.push(...sums.map((sum, i) => `let ${left[i]} = ${sum};`));
  }
  return { text, left };
}
