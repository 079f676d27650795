// Dispatches of a graph that the GPU computes a part of (parts.ts), known without a weight being read: each of its parts
// is counted by itself, as it is made ready by itself. What the host computes is named.

import type { Capabilities } from "../../../../gpu/kernel.ts";
import type { DimEnv } from "../../../graph/dim/mod.ts";
import { getOp } from "../../../ops/mod.ts";
import { countDispatches, type NodeDispatches } from "../dispatches.ts";
import { withUnreadWeights } from "./graphs.ts";
import { partsOf } from "./order.ts";
import { homesOf } from "./parts.ts";
import { cut, planPart } from "../../part_graphs.ts";
import type { Plan } from "../../../plan/plan.ts";

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
  capabilities: Capabilities,
  bindings: DimEnv,
): PartDispatches {
  const { graph } = plan;
  const parts = partsOf(graph, homesOf(graph, capabilities));
  const graphs = cut(graph, parts.map(({ nodes }) => nodes));
  const host: string[] = [];
  const nodes = parts.flatMap(({ home, nodes }, i): NodeDispatches[] => {
    if (home === "gpu") {
      const own = withUnreadWeights(planPart(graphs[i]!, plan));
      const env = Object.keys(own.limits).map((name) => [name, bindings[name]!]);
      return countDispatches(own, capabilities, Object.fromEntries(env));
    }
    host.push(...nodes.filter(({ op }) => !getOp(op).view).map(({ op }) => op));
    return [];
  });
  return { nodes, host, parts: parts.filter(({ home }) => home === "gpu").length };
}
