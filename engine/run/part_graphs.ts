// The parts of a graph as graphs of their own: on the GPU with what the host computes between (gpu/parts/parts.ts), in
// WASM over several memories (wasm/parts.ts). Values keep their ids: they are unique in the whole graph, so in
// each part too.

import { type Dim, type DimEnv, symbolsOf } from "../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import type { Plan } from "../plan/plan.ts";
import { plan as planGraph } from "../plan/planner.ts";

/** A graph for each list of nodes: what they read from elsewhere is an input, what is read elsewhere an output. A state is of one part. */
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
    const used = new Set(own.flatMap((node) => node.inputs.map((value) => value?.id)));
    const states = graph.states.filter(({ id }) => used.has(id));
    return { name: graph.name, nodes: own, inputs: [...inputs.values()], states, outputs };
  });
}

function portName({ name, id }: Value): string {
  return `${name} (value ${id})`;
}

/** Plans a part at the limits of the whole graph. */
export function planPart(graph: Graph, { limits, policy }: Plan): Plan {
  return planGraph(graph, { limits: limitsOf(graph, limits), policy });
}

/** The limits of the symbols that occur in a graph. */
function limitsOf({ inputs, nodes }: Graph, limits: DimEnv): DimEnv {
  const shapes = [...inputs, ...nodes.flatMap(({ outputs }) => outputs)].map(({ shape }) => shape);
  const attributes = nodes.flatMap((node) => Object.values(node.attributes).flat())
    .filter((attribute) => typeof attribute === "object") as Dim[];
  const names = [...shapes.flat(), ...attributes].flatMap((dim) => [...symbolsOf(dim).keys()]);
  return Object.fromEntries([...new Set(names)].map((name) => [name, limits[name]!]));
}
