// What passes that recognise patterns see of a graph, and what they ask about values and nodes.

import { type Dim, equal } from "../../graph/dim/mod.ts";
import type { Attribute, Graph, Node, Value } from "../../graph/graph.ts";
import { getElement } from "../../ops/host_tensor.ts";
import type { HostData } from "../../ops/op.ts";
import { getOp } from "../../ops/mod.ts";
import { producersOf, readersOf, rewrite, type Visit } from "./rewrite.ts";

/** Says that a pass knows all attributes of an op, because it carries them over whatever they are. */
export const WHOLE = "whole";

/**
 * The ops that a pass knows, and the attributes of each that it looks at or carries over. A node of another op, or with
 * another attribute that is not at its default, may mean anything: the pass does not see it.
 */
export type Reads = Readonly<Record<string, typeof WHOLE | readonly string[]>>;

/** A graph as far as a pass knows its nodes; of the others it knows only what they read. */
export interface MatchContext {
  /** The nodes that it knows, in order. */
  readonly nodes: readonly Node[];
  /** Who makes a value, where the pass knows it. */
  readonly made: ReadonlyMap<Value, Node>;
  /** All that read a value; `UNKNOWN` stands for each that the pass does not know. */
  readonly readers: ReadonlyMap<Value, readonly Node[]>;
  /** Times a value is read, being an output of the graph included. */
  readonly uses: ReadonlyMap<Value, number>;
  readonly outputs: ReadonlySet<Value>;
  /** Builds a new graph; nodes that the pass does not know are copied. See rewrite.ts. */
  rewrite(visit: (visit: Visit) => readonly Value[]): Graph;
}

/** A node that a pass knows nothing of. */
const UNKNOWN: Node = { id: -1, op: "?", name: "?", inputs: [], outputs: [], attributes: {} };

/** What a pass that reads this sees of a graph. */
export function matchContext(graph: Graph, reads: Reads): MatchContext {
  const nodes = graph.nodes.filter((node) => isKnown(node, reads)), known = new Set(nodes);
  const made = once(() => producersOf({ nodes }));
  const readers = once(() => {
    const all = readersOf(graph);
    for (const [value, reading] of all) {
      if (reading.every((node) => known.has(node))) continue;
      all.set(value, reading.map((node) => known.has(node) ? node : UNKNOWN));
    }
    return all;
  });
  const uses = once(() => {
    const counts = new Map<Value, number>();
    for (const [value, reading] of readers()) counts.set(value, reading.length);
    for (const value of graph.outputs) counts.set(value, (counts.get(value) ?? 0) + 1);
    return counts;
  });
  const outputs = once(() => new Set(graph.outputs));
  return {
    nodes,
    get made() {
      return made();
    },
    get readers() {
      return readers();
    },
    get uses() {
      return uses();
    },
    get outputs() {
      return outputs();
    },
    rewrite: (visit) =>
      rewrite(graph, (given) => known.has(given.node) ? visit(given) : given.copy()),
  };
}

/** Makes something when it is first asked for: most passes find none of their ops in a graph. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => made ??= make();
}

function isKnown({ op, attributes }: Node, reads: Reads): boolean {
  const known = Object.hasOwn(reads, op) ? reads[op] : undefined;
  if (!known || known === WHOLE) return known !== undefined;
  const { rules } = getOp(op);
  for (const name in attributes) {
    if (!known.includes(name) && !sameAttribute(attributes[name]!, rules[name]!.fallback)) {
      return false;
    }
  }
  return true;
}

/** Whether two attributes are the same; 0 is not -0. */
export function sameAttribute(value: Attribute, other: Attribute | undefined): boolean {
  if (!Array.isArray(value) || !Array.isArray(other)) return sameItem(value, other);
  return value.length === other.length && value.every((item, i) => sameItem(item, other[i]));
}

function sameItem(item: unknown, other: unknown): boolean {
  if (Object.is(item, other)) return true;
  return typeof item === "object" && typeof other === "object" && equal(item as Dim, other as Dim);
}

/** What passes call a node: the function of a `unary` or `binary` on float32, else its op. */
export function nameOf({ op, attributes, inputs: [x] }: Node): string {
  const isFunction = op === "unary" || op === "binary";
  return isFunction && x!.dtype === "f32" ? attributes.kind as string : op;
}

/** The node that makes a value, if it goes by that name. */
export function makerOf(value: Value, name: string, { made }: MatchContext): Node | undefined {
  const node = made.get(value);
  return node && nameOf(node) === name ? node : undefined;
}

/** The same, if nothing else reads the value. */
export function soleMaker(
  value: Value,
  { name, context }: { readonly name: string; readonly context: MatchContext },
): Node | undefined {
  return context.uses.get(value) === 1 ? makerOf(value, name, context) : undefined;
}

/** The number that a float32 constant of one element holds. */
export function singleNumber({ data, dtype, shape }: Value): number | undefined {
  const elements = data as HostData | undefined;
  if (elements?.length !== 1 || dtype !== "f32") return undefined;
  return getElement({ dtype, shape: shape as readonly number[], data: elements }, 0);
}

/** Whether a value is this very number in float32; 0 is not -0. */
export function isNumber(value: Value | undefined, number: number): boolean {
  return value !== undefined && Object.is(singleNumber(value), number);
}

/** Whether a value has these sizes, proven. */
export function hasShape({ shape }: Value, wanted: readonly Dim[]): boolean {
  return shape.length === wanted.length && shape.every((dim, i) => equal(dim, wanted[i]!));
}

/** Whether two values have the same sizes, proven. */
export function sameShape(a: Value, b: Value): boolean {
  return hasShape(a, b.shape);
}

/** Whether a list is these numbers. */
export function isList(value: Attribute | undefined, wanted: readonly number[]): boolean {
  return sameAttribute(value ?? "", wanted);
}
