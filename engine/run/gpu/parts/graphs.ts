// What the GPU wants changed in the parts of a graph (part_graphs.ts) before it computes one.

import type { HostData, Node, Value } from "../../../graph/graph.ts";
import { hostArray } from "../../../ops/host_tensor.ts";
import { getOp } from "../../../ops/mod.ts";
import type { PrepareOptions } from "../../backend.ts";
import { loadHostWeights } from "../../host_weights.ts";
import { planPart } from "../../part_graphs.ts";
import type { Plan } from "../../../plan/plan.ts";
import { isMatrix } from "../../wasm/estimate.ts";

/**
 * Weights that no kernel reads packed become constants: elements as they are, on the GPU with the other
 * constants. Vectors of float32 are that already.
 */
export async function withPlainWeights(plan: Plan, options: PrepareOptions): Promise<Plan> {
  const plain = plainWeights(plan);
  if (plain.length === 0) return plan;
  const data = await loadValues(plan, plain, options);
  return asConstants(plan, plain, ({ id }) => data.get(id)!);
}

/** The same without reading anything, for counting: the constants have no elements. */
export function withUnreadWeights(plan: Plan): Plan {
  const plain = plainWeights(plan);
  return plain.length === 0 ? plan : asConstants(plan, plain, ({ dtype }) => hostArray(dtype, 0));
}

function plainWeights({ graph }: Plan): Value[] {
  const isPlain = ({ role, dtype, shape }: Value): boolean =>
    role === "weight" && (dtype !== "f32" || shape.length > 1);
  return graph.nodes.flatMap(({ op, inputs }) =>
    inputs.filter((value, index) =>
      value && isPlain(value) && !(getOp(op).packedInput === index && isMatrix(value))
    )
  ) as Value[];
}

function asConstants(
  plan: Plan,
  plain: readonly Value[],
  dataOf: (value: Value) => HostData,
): Plan {
  const { graph } = plan;
  const constants = new Map<number, Value>();
  // Packed by one node and plain for another, a weight is two values.
  let nextId = Math.max(
    ...graph.nodes.flatMap(({ inputs, outputs }) =>
      [...inputs, ...outputs].map((value) => value?.id ?? 0)
    ),
  );
  for (const weight of new Set(plain)) {
    const { tensor: _, ...value } = weight;
    constants.set(value.id, {
      ...value,
      id: ++nextId,
      role: "constant",
      data: dataOf(weight),
    });
  }
  const nodes = graph.nodes.map((node) => ({
    ...node,
    inputs: node.inputs.map((value, index) =>
      value && constants.has(value.id) && !(getOp(node.op).packedInput === index && isMatrix(value))
        ? constants.get(value.id)
        : value
    ),
  }));
  return planPart({ ...graph, nodes }, plan);
}

/** Weights among `values`, as the host sees them, by id. */
export async function loadValues(
  plan: Plan,
  values: readonly Value[],
  { onProgress: _, ...options }: PrepareOptions,
): Promise<Map<number, HostData>> {
  const reader: Node = { op: "", name: "", id: 0, inputs: values, outputs: [], attributes: {} };
  return await loadHostWeights({ ...plan, graph: { ...plan.graph, nodes: [reader] } }, options);
}
