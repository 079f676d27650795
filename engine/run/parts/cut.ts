// The one cutting of a plan into parts: a partition says where each node is computed, and what is computed at one place
// without a wait becomes a plan of its own, for the backend of that place. Whatever is ready at one place is taken until
// nothing more is, but for what uses a state, which waits for all that does; then the next place has its turn. So there are
// as few parts as in any order that never waits. Values keep their ids: they are unique in the whole graph, so in each part
// too.

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
  /** Ids of the states that a node uses; nodes of one state wait for each other, where they can. Default: the plan's. */
  readonly statesOf?: (node: Node) => readonly number[];
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
  const statesOf = (node: Node) => statesUsed(plan, node);
  const parts = partsOf(plan.graph, { statesOf, ...order });
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
  { places, partition, mayWait = () => false, statesOf = () => [] }: CutOrder<Place>,
): Part<Place>[] {
  const waiting = new Set(nodes);
  const missing = new Set(nodes.flatMap(({ outputs }) => outputs.map(({ id }) => id)));
  const users = new Map<number, Node[]>();
  for (const node of nodes) {
    for (const id of statesOf(node)) users.set(id, [...users.get(id) ?? [], node]);
  }
  // Nodes stand in an order of execution: one walk takes all that is ready.
  const ready = (place: Place, held: ReadonlySet<Node>): Node[] => {
    const made = new Set<number>();
    return [...waiting].filter((node) => {
      if (partition.get(node) !== place || held.has(node)) return false;
      if (node.inputs.some((value) => value && missing.has(value.id) && !made.has(value.id))) {
        return false;
      }
      for (const { id } of node.outputs) made.add(id);
      return true;
    });
  };
  const together = (place: Place): Node[] => {
    const held = new Set<Node>();
    for (;;) {
      const own = new Set(ready(place, held)), before = held.size;
      for (const node of own) {
        const all = statesOf(node).flatMap((id) => users.get(id)!);
        if (all.some((user) => !own.has(user))) held.add(node);
      }
      if (held.size === before) return [...own];
    }
  };
  const parts: Part<Place>[] = [];
  for (let turn = 0, idle = 0; waiting.size > 0; turn++) {
    if (idle > 3 * places.length) throw new TypeError("Cannot cut a graph: a node has no place");
    const place = places[turn % places.length]!;
    // Where nobody can go on, what waits for each other cannot.
    let own = idle < 2 * places.length ? together(place) : ready(place, new Set());
    if (idle < places.length && mayWait(own)) own = [];
    for (const node of own) {
      waiting.delete(node);
      for (const { id } of node.outputs) missing.delete(id);
    }
    idle = own.length > 0 ? 0 : idle + 1;
    if (own.length > 0) parts.push({ place, nodes: own });
  }
  return parts;
}

function checkStates<Place>(plan: Plan, parts: readonly Part<Place>[]): void {
  const homes = new Map<number, Part<Place>>();
  for (const part of parts) {
    for (const node of part.nodes) {
      for (const id of statesUsed(plan, node)) {
        const home = homes.get(id) ?? part;
        homes.set(id, home);
        if (home === part) continue;
        const { name } = plan.graph.states.find((state) => state.id === id)!;
        throw new UnsupportedError(`${name} would be used in two parts of the graph`, {
          place: node.name,
          remedy: "Compute what uses a state at one place",
        });
      }
    }
  }
}

/** Ids of the states that a node reads or changes. */
function statesUsed(plan: Plan, { inputs }: Node): number[] {
  return inputs.flatMap((value) => {
    const root = value && rootOf(plan, value);
    return root?.role === "state" ? [root.id] : [];
  });
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
