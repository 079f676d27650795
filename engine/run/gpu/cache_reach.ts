// How far back a step looks: a symbol beside those of the plan, by which lowerings of attention choose between kernels
// for short and for long contexts, as they choose by rows. Its value is the first power of two that is not below any
// position of the step's rows, so that sizes change a few times in a conversation and not with every token.

import { compile, type Dim, type DimEnv, symbol } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { attentionInputs } from "../../ops/attention_inputs.ts";
import type { GpuValues } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";

/** Its name. */
const REACH = "reach";
/** Shorter contexts are not told apart. */
const LEAST = 64;

/** Positions of the rows that attend, and the largest cache. */
function positionsOf(
  { graph }: Plan,
): { readonly inputs: readonly Value[]; readonly capacity: number } {
  const found = graph.nodes.flatMap(({ op, inputs }) => {
    if (op !== "attention") return [];
    const { k, positions, slots, ends, bias } = attentionInputs(inputs);
    return k && slots && positions && !ends && !bias ? [{ k, positions }] : [];
  });
  const inputs = [...new Set(found.map(({ positions }) => positions))];
  const known = inputs.length > 0 && inputs.every(({ role }) => role === "input");
  const capacity = Math.max(0, ...found.map(({ k }) => k.shape[0] as number));
  return known ? { inputs, capacity } : { inputs: [], capacity: 0 };
}

/** The symbol; absent where positions are not given to the graph. */
export function reachDim(plan: Plan): Dim | undefined {
  const { capacity } = positionsOf(plan);
  return capacity > 0 ? symbol(REACH, { min: 1, max: capacity }) : undefined;
}

/** Limits of a plan, with that of the symbol. */
export function limitsWithReach(plan: Plan): DimEnv {
  const { capacity } = positionsOf(plan);
  return capacity > 0 ? { ...plan.limits, [REACH]: capacity } : plan.limits;
}

/** Adds the symbol's value to the bindings of a step. */
export interface Reach {
  /** By the positions in the inputs. */
  ofInputs(bindings: DimEnv): DimEnv;
  /** For rows up to a position. */
  of(bindings: DimEnv, position: number): DimEnv;
}

/**
 * Makes the function that adds it for rows up to a position.
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
    return { ...bindings, [REACH]: Math.min(reach, capacity) };
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
  const { inputs } = positionsOf(plan);
  const lists = inputs.map((input) => ({
    data: values.input(input) as Int32Array,
    rows: compile(input.shape[0]!),
  }));

  const of = reachTo(plan, padTo);
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
