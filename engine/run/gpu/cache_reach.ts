// What a step looks like to attention: two symbols beside those of the plan, by which its lowerings choose between kernels
// as they choose by rows. How far back a step looks is the first power of two that is not below any position of its rows,
// so that sizes change a few times in a conversation and not with every token. Whether its rows are of as many sessions
// tells a token of each from a prompt's chunk.

import { compile, type Dim, type DimEnv, symbol } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { attentionInputs } from "../../ops/attention_inputs.ts";
import type { GpuValues } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";

const REACH = "reach";
/** So many rows, each of another slot; 0 for other steps. */
const APART = "apart";
/** More rows are not told from a chunk. */
const MOST_APART = 64;
/** Shorter contexts are not told apart. */
const LEAST = 64;

/** Positions and slots of the rows that attend, and the largest cache. */
function positionsOf(
  { graph, limits }: Plan,
): {
  readonly inputs: readonly Value[];
  readonly slots: Value | undefined;
  readonly capacity: number;
  /** Most rows that are told from a chunk. */
  readonly apart: number;
} {
  const found = graph.nodes.flatMap(({ op, inputs }) => {
    if (op !== "attention") return [];
    const { k, positions, slots, ends, bias } = attentionInputs(inputs);
    return k && slots && positions && !ends && !bias ? [{ k, positions, slots }] : [];
  });
  const inputs = [...new Set(found.map(({ positions }) => positions))];
  const known = inputs.length > 0 && inputs.every(({ role }) => role === "input");
  if (!known) return { inputs: [], slots: undefined, capacity: 0, apart: 0 };
  const capacity = Math.max(0, ...found.map(({ k }) => k.shape[0] as number));
  const [slots, ...others] = new Set(found.map((one) => one.slots));
  const isOne = slots?.role === "input" && others.length === 0;
  const apart = isOne ? Math.min(MOST_APART, maximumOf(slots.shape[0]!, limits)) : 0;
  return { inputs, slots: isOne ? slots : undefined, capacity, apart };
}

/** The symbol of rows that are each of another slot; absent where slots are not given to the graph. */
export function apartDim(plan: Plan): Dim | undefined {
  const { apart } = positionsOf(plan);
  return apart > 0 ? symbol(APART, { min: 0, max: apart }) : undefined;
}

/** The symbol; absent where positions are not given to the graph. */
export function reachDim(plan: Plan): Dim | undefined {
  const { capacity } = positionsOf(plan);
  return capacity > 0 ? symbol(REACH, { min: 1, max: capacity }) : undefined;
}

/** Limits of a plan, with those of the symbols; of a prompt's chunk, no row is apart. */
export function limitsWithReach(plan: Plan, { isChunk = false } = {}): DimEnv {
  const { capacity, apart } = positionsOf(plan);
  return capacity > 0
    ? { ...plan.limits, [REACH]: capacity, [APART]: isChunk ? 0 : apart }
    : plan.limits;
}

/** The same step, looking as far back as there is something to see. */
export function farBack(step: DimEnv, { [REACH]: capacity }: DimEnv): DimEnv {
  return capacity === undefined ? step : { ...step, [REACH]: capacity };
}

/** Adds the symbols' values to the bindings of a step. */
export interface Reach {
  /** By the positions in the inputs. */
  ofInputs(bindings: DimEnv): DimEnv;
  /** For rows up to a position. */
  of(bindings: DimEnv, position: number): DimEnv;
}

/**
 * Makes the function that adds them for rows up to a position, none of which is apart.
 *
 * @param padTo Steps in which it grows instead of doubling (TL-6).
 */
export function reachTo(plan: Plan, padTo?: number): Reach["of"] {
  const { capacity } = positionsOf(plan);
  return (bindings, position) => {
    if (capacity === 0) return bindings;
    const reach = padTo === undefined
      ? Math.max(LEAST, 2 ** Math.ceil(Math.log2(position + 1)))
      : Math.ceil((position + 1) / padTo) * padTo;
    return { ...bindings, [REACH]: Math.min(reach, capacity), [APART]: 0 };
  };
}

/** Makes those functions for a plan. */
export function createReach(
  plan: Plan,
  { values, padTo }: {
    readonly values: Pick<GpuValues, "input">;
    readonly padTo?: number | undefined;
  },
): Reach {
  const { inputs, slots, apart } = positionsOf(plan);
  const lists = inputs.map((input) => ({
    data: values.input(input) as Int32Array,
    rows: compile(input.shape[0]!),
  }));

  const slotsOfRows = slots && values.input(slots) as Int32Array;
  const rowsOf = slots && compile(slots.shape[0]!);
  const seen = new Set<number>();
  function rowsApart(bindings: DimEnv): number {
    const rows = rowsOf?.(bindings) ?? 0;
    if (rows > apart) return 0;
    seen.clear();
    for (let row = 0; row < rows; row++) seen.add(slotsOfRows![row]!);
    return seen.size === rows ? rows : 0;
  }

  const reach = reachTo(plan, padTo);
  const of: Reach["of"] = (bindings, position) => {
    const all = reach(bindings, position);
    return APART in all ? { ...all, [APART]: rowsApart(bindings) } : all;
  };
  return {
    of,
    ofInputs(bindings) {
      let position = 0;
      for (const { data, rows } of lists) {
        const count = rows(bindings);
        for (let i = 0; i < count; i++) position = Math.max(position, data[i]!);
      }
      return of(bindings, position);
    },
  };
}
