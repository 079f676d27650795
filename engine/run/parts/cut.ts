// The one cutting of a plan into parts: a partition says where each node is computed, and what is computed at one place
// without a wait becomes a plan of its own, for the backend of that place. Whatever is ready at one place is
// taken until nothing more is, then the next place has its turn; so there are as few parts as in any order that never
// waits. Values keep their ids: they are unique in the whole graph, so in each part too.

import { UnsupportedError } from "../../errors.ts";
import { type Dim, type DimEnv, symbolsOf } from "../../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { plan as planGraph } from "../../plan/planner.ts";

/** Where each node is computed: on a device, or in one of the memories of a device. */
export type Partition<Place> = ReadonlyMap<Node, Place>;

/** Nodes that are computed at one place, one behind the other. */
export interface Part<Place> {
  readonly place: Place;
  readonly nodes: readonly Node[];
}

/** A part as a plan. */
export interface PlannedPart<Place> {
  readonly place: Place;
  readonly plan: Plan;
}

/** How a graph is cut. */
export interface CutOrder<Place> {
  /** The places of the partition, in the order in which they have their turns. */
  readonly places: readonly Place[];
  readonly partition: Partition<Place>;
  /** Whether nodes that are ready are left for a later turn of their place, while others have something to do. */
  readonly mayWait?: (nodes: readonly Node[]) => boolean;
}

/**
 * The parts of a plan, in an order of execution: what one reads from elsewhere is an input of it, what is read
 * elsewhere an output.
 *
 * @throws {UnsupportedError} If a state would be used in two parts: it lies at one place, in one memory.
 */
export function cutPlan<Place>(
  plan: Plan,
  order: CutOrder<Place>,
): PlannedPart<Place>[] {
  const parts = partsOf(plan.graph, order);
  checkStates(plan, parts);
  const { limits, policy } = plan;
  return cutGraph(plan.graph, parts).map((graph, i) => ({
    place: parts[i]!.place,
    plan: planGraph(graph, { limits: limitsOf(graph, limits), policy }),
  }));
}

/** The nodes of each part. */
export function partsOf<Place>(
  { nodes }: Graph,
  { places, partition, mayWait = () => false }: CutOrder<Place>,
): Part<Place>[] {
  const waiting = new Set(nodes);
  const missing = new Set(nodes.flatMap(({ outputs }) => outputs.map(({ id }) => id)));
  const parts: Part<Place>[] = [];
  for (let turn = 0, idle = 0; waiting.size > 0; turn++) {
    if (idle > 2 * places.length) throw new TypeError("Cannot cut a graph: a node has no place");
    const place = places[turn % places.length]!;
    const own: Node[] = [];
    // Nodes stand in an order of execution: one walk takes all that is ready.
    for (const node of waiting) {
      if (partition.get(node) !== place) continue;
      if (node.inputs.some((value) => value && missing.has(value.id))) continue;
      own.push(node);
      for (const { id } of node.outputs) missing.delete(id);
    }
    if (idle < places.length && mayWait(own)) {
      for (const { id } of own.flatMap(({ outputs }) => outputs)) missing.add(id);
      own.length = 0;
    }
    for (const node of own) waiting.delete(node);
    idle = own.length > 0 ? 0 : idle + 1;
    if (own.length > 0) parts.push({ place, nodes: own });
  }
  return parts;
}

function checkStates<Place>(plan: Plan, parts: readonly Part<Place>[]): void {
  const homes = new Map<number, Part<Place>>();
  for (const part of parts) {
    for (const { name, inputs } of part.nodes) {
      for (const value of inputs) {
        const root = value && rootOf(plan, value);
        if (root?.role !== "state") continue;
        const home = homes.get(root.id) ?? part;
        homes.set(root.id, home);
        if (home === part) continue;
        throw new UnsupportedError(`${root.name} would be used in two parts of the graph`, {
          place: name,
          remedy: "Compute what uses a state at one place",
        });
      }
    }
  }
}

/** A graph for each part. */
function cutGraph<Place>(graph: Graph, parts: readonly Part<Place>[]): Graph[] {
  const partOf = new Map<number, number>();
  parts.forEach(({ nodes }, i) =>
    nodes.forEach(({ outputs }) => outputs.forEach(({ id }) => partOf.set(id, i)))
  );
  const results = new Set(graph.outputs.map(({ id }) => id));
  const wanted = new Set(results);
  parts.forEach(({ nodes }, i) => {
    for (const value of nodes.flatMap(({ inputs }) => inputs)) {
      if (value && partOf.has(value.id) && partOf.get(value.id) !== i) wanted.add(value.id);
    }
  });
  return parts.map(({ nodes }, i) => {
    const inputs = new Map<number, Value>();
    const outputs: Value[] = [];
    const inner = (value: Value): Value => {
      if (value.role === "input") {
        inputs.set(value.id, value);
        return value;
      }
      if (value.role !== "activation") return value;
      if (partOf.get(value.id) === i) {
        // Results of the whole keep their names: backends know logits by theirs.
        const isPort = wanted.has(value.id) && !results.has(value.id);
        return isPort ? { ...value, name: portName(value) } : value;
      }
      const port: Value = { ...value, role: "input", name: portName(value) };
      inputs.set(value.id, port);
      return port;
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

/** Names of values inside a graph need not differ from each other; ports are found by name. */
function portName({ name, id }: Value): string {
  return `${name} (value ${id})`;
}

/** The limits of the symbols that occur in a graph. */
export function limitsOf({ inputs, nodes }: Graph, limits: DimEnv): DimEnv {
  const shapes = [...inputs, ...nodes.flatMap(({ outputs }) => outputs)].map(({ shape }) => shape);
  const attributes = nodes.flatMap((node) => Object.values(node.attributes).flat())
    .filter((attribute) => typeof attribute === "object") as Dim[];
  const names = [...shapes.flat(), ...attributes].flatMap((dim) => [...symbolsOf(dim).keys()]);
  return Object.fromEntries([...new Set(names)].map((name) => [name, limits[name]!]));
}
