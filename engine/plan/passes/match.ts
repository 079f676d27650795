// What passes that recognise patterns ask about values and nodes.

import { type Dim, equal } from "../../graph/dim.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { getElement } from "../../graph/host_tensor.ts";
import type { HostData } from "../../graph/op.ts";
import { producersOf, readersOf } from "./rewrite.ts";

/** Who makes a value, and how often it is read. */
export interface MatchContext {
  readonly made: ReadonlyMap<Value, Node>;
  /** Times a value is read, being an output of the graph included. */
  readonly uses: ReadonlyMap<Value, number>;
}

/** The context of a graph. */
export function matchContext(graph: Graph): MatchContext {
  const uses = new Map<Value, number>();
  for (const [value, nodes] of readersOf(graph)) uses.set(value, nodes.length);
  for (const value of graph.outputs) uses.set(value, (uses.get(value) ?? 0) + 1);
  return { made: producersOf(graph), uses };
}

/** The node that makes a value, if it is of that op. */
export function makerOf(value: Value, op: string, { made }: MatchContext): Node | undefined {
  const node = made.get(value);
  return node?.op === op ? node : undefined;
}

/** The same, if nothing else reads the value. */
export function soleMaker(value: Value, op: string, context: MatchContext): Node | undefined {
  return context.uses.get(value) === 1 ? makerOf(value, op, context) : undefined;
}

/** The number that a float32 constant of one element holds. */
export function singleNumber({ data, dtype, shape }: Value): number | undefined {
  const elements = data as HostData | undefined;
  if (elements?.length !== 1 || dtype !== "f32") return undefined;
  return getElement({ dtype, shape: shape as readonly number[], data: elements }, 0);
}

/** Whether a value has these sizes, proven. */
export function hasShape({ shape }: Value, wanted: readonly Dim[]): boolean {
  return shape.length === wanted.length && shape.every((dim, i) => equal(dim, wanted[i]!));
}

/** Whether two values have the same sizes, proven. */
export function sameShape(a: Value, b: Value): boolean {
  return hasShape(a, b.shape);
}
