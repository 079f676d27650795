// Weights that no kernel of the GPU reads packed become constants: elements as they are, with the other constants. Vectors
// of float32 are that already. Graphs of files have such weights, of whatever type; those of models have none.

import { OFFSET_ALIGNMENT } from "../../../gpu/constants.ts";
import type { HostData, Node, Value } from "../../graph/graph.ts";
import { hostArray } from "../../ops/host_tensor.ts";
import type { Plan } from "../../plan/plan.ts";
import { plan as planGraph } from "../../plan/planner.ts";
import type { PrepareOptions } from "../backend.ts";
import { loadHostWeights } from "../host_weights.ts";
import { readsPacked } from "../plan_weights.ts";

/** The same plan with such weights read. */
export async function withPlainWeights(
  plan: Plan,
  { signal }: Pick<PrepareOptions, "signal">,
): Promise<Plan> {
  const plain = plainWeights(plan);
  const data = await loadHostWeights(plain, { ...signal && { signal } });
  return asConstants(plan, plain, ({ id }) => data.get(id)!);
}

/** The same without reading anything, for counting: the constants have no elements. */
export function withUnreadWeights(plan: Plan): Plan {
  return asConstants(plan, plainWeights(plan), ({ dtype }) => hostArray(dtype, { count: 0 }));
}

function isPlain(node: Node, index: number): boolean {
  const value = node.inputs[index];
  return value?.role === "weight" && (value.dtype !== "f32" || value.shape.length > 1) &&
    !readsPacked(node, index);
}

function plainWeights({ graph }: Plan): Value[] {
  const plain = graph.nodes.flatMap((node) => node.inputs.filter((_, i) => isPlain(node, i)));
  return [...new Set(plain)] as Value[];
}

function asConstants(
  plan: Plan,
  plain: readonly Value[],
  dataOf: (value: Value) => HostData,
): Plan {
  if (plain.length === 0) return plan;
  const { graph, limits, policy } = plan;
  // Packed by one node and plain for another, a weight is two values.
  const ids = graph.nodes.flatMap(({ inputs, outputs }) =>
    [...inputs, ...outputs].map((value) => value?.id ?? 0)
  );
  const free = ids.reduce((most, id) => Math.max(most, id), 0) + 1;
  const constants = new Map(plain.map((weight, i): [number, Value] => {
    const { tensor: _, ...value } = weight;
    return [value.id, { ...value, id: free + i, role: "constant", data: dataOf(weight) }];
  }));
  const nodes = graph.nodes.map((node) => ({
    ...node,
    inputs: node.inputs.map((value, i) => isPlain(node, i) ? constants.get(value!.id) : value),
  }));
  return planGraph({ ...graph, nodes }, { limits, policy, alignment: OFFSET_ALIGNMENT });
}
