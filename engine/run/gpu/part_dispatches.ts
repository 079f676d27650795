// Dispatches of a graph that the GPU computes a part of (run/parts/beside.ts), known without a weight being read: each of
// its parts is counted by itself, as it is made ready by itself. What the host computes is named.

import type { Capabilities } from "../../../gpu/kernel.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { Plan } from "../../plan/plan.ts";
import { partsBeside } from "../parts/beside.ts";
import { countDispatches, type NodeDispatches } from "./dispatches.ts";
import { takenBy } from "./lowering.ts";
import { withUnreadWeights } from "./plain_weights.ts";

/** Dispatches of a graph. */
export interface PartDispatches {
  /** Of the nodes on the GPU, in order of execution. */
  readonly nodes: readonly NodeDispatches[];
  /** Ops of the nodes on the host. */
  readonly host: readonly string[];
  /** Times that the GPU is handed values and waited for. */
  readonly parts: number;
}

/** Counts the dispatches of a run at the given sizes. */
export function countPartDispatches(
  plan: Plan,
  { capabilities, bindings }: { readonly capabilities: Capabilities; readonly bindings: DimEnv },
): PartDispatches {
  const parts = Map.groupBy(partsBeside(plan, takenBy(capabilities)), ({ place }) => place);
  const { device = [], host = [] } = Object.fromEntries(parts);
  return {
    nodes: device.flatMap(({ plan }) => {
      const env = Object.keys(plan.limits).map((name) => [name, bindings[name]!]);
      return countDispatches(withUnreadWeights(plan, { capabilities }), {
        capabilities,
        bindings: Object.fromEntries(env),
      });
    }),
    host: host.flatMap(({ plan }) => plan.steps.map(({ node }) => node.op)),
    parts: device.length,
  };
}
