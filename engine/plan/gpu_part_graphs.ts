// The parts of a graph as graphs of their own, and what the GPU wants changed in them. Values keep their ids:
// they are unique in the whole graph, so in each part too.

import { type Dim, type DimEnv, symbolsOf } from "../graph/dim.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import type { HostData } from "../graph/host_tensor.ts";
import { readsPacked } from "../graph/packed_inputs.ts";
import type { PrepareOptions } from "./backend.ts";
import { loadHostWeights } from "./host_weights.ts";
import type { Plan } from "./plan.ts";
import { plan as planGraph } from "./planner.ts";
import { isMatrix } from "./wasm_estimate.ts";

/** A graph for each list of nodes: what they read from elsewhere is an input, what is read elsewhere an output. */
export function cut(graph: Graph, parts: readonly (readonly Node[])[]): Graph[] {
  const partOf = new Map<number, number>();
  parts.forEach((nodes, i) =>
    nodes.forEach(({ outputs }) => outputs.forEach(({ id }) => partOf.set(id, i)))
  );
  const wanted = new Set(graph.outputs.map(({ id }) => id));
  parts.forEach((nodes, i) => {
    for (const value of nodes.flatMap(({ inputs }) => inputs)) {
      if (value && partOf.has(value.id) && partOf.get(value.id) !== i) wanted.add(value.id);
    }
  });
  return parts.map((nodes, i) => {
    const inputs = new Map<number, Value>();
    const outputs: Value[] = [];
    // Names of values inside a graph need not differ from each other; ports are found by name.
    const inner = (value: Value): Value => {
      if (value.role === "input") {
        if (!inputs.has(value.id)) inputs.set(value.id, value);
        return value;
      }
      if (value.role !== "activation") return value;
      if (partOf.get(value.id) === i) {
        return wanted.has(value.id) ? { ...value, name: portName(value) } : value;
      }
      const known = inputs.get(value.id) ??
        { ...value, role: "input" as const, name: portName(value) };
      inputs.set(value.id, known);
      return known;
    };
    const made = new Map<number, Value>();
    const once = (value: Value): Value => {
      const known = made.get(value.id) ?? inner(value);
      made.set(value.id, known);
      return known;
    };
    const own = nodes.map((node) => ({
      ...node,
      inputs: node.inputs.map((value) => value && once(value)),
      outputs: node.outputs.map((value) => {
        const output = once(value);
        if (wanted.has(value.id)) outputs.push(output);
        return output;
      }),
    }));
    return { name: graph.name, nodes: own, inputs: [...inputs.values()], states: [], outputs };
  });
}

function portName({ name, id }: Value): string {
  return `${name} (value ${id})`;
}

/** Plans a part at the limits of the whole graph. */
export function planPart(graph: Graph, { limits, policy }: Plan): Plan {
  return planGraph(graph, { limits: limitsOf(graph, limits), policy });
}

/**
 * Weights that no kernel reads packed become constants: elements as they are, on the GPU with the other
 * constants. Vectors of float32 are that already.
 */
export async function withPlainWeights(plan: Plan, options: PrepareOptions): Promise<Plan> {
  const { graph } = plan;
  const isPlain = ({ role, dtype, shape }: Value): boolean =>
    role === "weight" && (dtype !== "f32" || shape.length > 1);
  const plain = graph.nodes.flatMap(({ op, inputs }) =>
    inputs.filter((value, index) =>
      value && isPlain(value) && !(readsPacked(op, index) && isMatrix(value))
    )
  ) as Value[];
  if (plain.length === 0) return plan;
  const data = await loadValues(plan, plain, options);
  const constants = new Map<number, Value>();
  // Packed by one node and plain for another, a weight is two values.
  let nextId = Math.max(
    ...graph.nodes.flatMap(({ inputs, outputs }) =>
      [...inputs, ...outputs].map((value) => value?.id ?? 0)
    ),
  );
  for (const { tensor: _, ...value } of new Set(plain)) {
    constants.set(value.id, {
      ...value,
      id: ++nextId,
      role: "constant",
      data: data.get(value.id)!,
    });
  }
  const nodes = graph.nodes.map((node) => ({
    ...node,
    inputs: node.inputs.map((value, index) =>
      value && constants.has(value.id) && !(readsPacked(node.op, index) && isMatrix(value))
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

/** The limits of the symbols that occur in a graph. */
function limitsOf({ inputs, nodes }: Graph, limits: DimEnv): DimEnv {
  const shapes = [...inputs, ...nodes.flatMap(({ outputs }) => outputs)].map(({ shape }) => shape);
  const attributes = nodes.flatMap((node) => Object.values(node.attributes).flat())
    .filter((attribute) => typeof attribute === "object") as Dim[];
  const names = [...shapes.flat(), ...attributes].flatMap((dim) => [...symbolsOf(dim).keys()]);
  return Object.fromEntries([...new Set(names)].map((name) => [name, limits[name]!]));
}
