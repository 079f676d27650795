// Graphs that differ from a given one in one unusual thing: an attribute, a constant, the order of operands, a value
// that something else reads too. What an op refuses is left out.

import type { AttributeRule } from "../../engine/ops/attributes.ts";
import { createGraphBuilder } from "../../engine/graph/builder.ts";
import type {
  Attribute,
  Graph,
  HostData,
  Node,
  StateType,
  Value,
} from "../../engine/graph/graph.ts";
import { getOp } from "../../engine/ops/mod.ts";
import { isQ8 } from "../../engine/ops/q8_rows.ts";

/** A graph, and what is unusual. */
export interface Unusual {
  readonly what: string;
  readonly graph: Graph;
}

/** All of them. */
export function* unusualGraphs(graph: Graph): Generator<Unusual> {
  for (const { what, ...change } of changes(graph)) {
    const changed = changedGraph(graph, change);
    if (changed) yield { what, graph: changed };
  }
}

/** What to do otherwise when a graph is built again. */
interface Change {
  readonly what: string;
  /** The node as it is to be. */
  node?(node: Node): Pick<Node, "inputs" | "attributes">;
  /** The constant as it is to be. */
  constant?(value: Value): Pick<Value, "data" | "shape">;
  /** A value that is to be read, or given out, besides. */
  readonly value?: { readonly of: Value; readonly how: "given out" | "read" };
}

function* changes({ nodes, outputs }: Graph): Generator<Change> {
  for (const node of nodes) {
    for (const [name, rule] of Object.entries(getOp(node.op).rules)) {
      for (const value of unusualValues(rule, node.attributes[name]!)) {
        yield {
          what: `${node.name} with ${name} ${value}`,
          node: (other) =>
            other === node ? { ...node, attributes: { ...node.attributes, [name]: value } } : other,
        };
      }
    }
    const [a, b, ...rest] = node.inputs;
    if (a && b && a !== b) {
      yield {
        what: `${node.name} with operands exchanged`,
        node: (other) => other === node ? { ...node, inputs: [b, a, ...rest] } : other,
      };
    }
    for (const value of node.outputs) {
      if (isQ8(value.dtype) || value.role === "state" || outputs.includes(value)) continue;
      yield { what: `${value.name}, given out too`, value: { of: value, how: "given out" } };
      yield { what: `${value.name}, read again`, value: { of: value, how: "read" } };
    }
  }
  const given = new Set(nodes.flatMap(({ inputs }) => inputs.filter((value) => value?.data)));
  for (const value of given) if (value!.dtype === "f32") yield* unusualConstants(value!);
}

function* unusualConstants(value: Value): Generator<Change> {
  const numbers = value.data as Float32Array;
  for (const number of [0, -0, NaN, Infinity, -Infinity, -1.75]) {
    yield {
      what: `${value.name} with ${Object.is(number, -0) ? "-0" : number}`,
      constant: (other) => other === value ? { ...value, data: numbers.with(0, number) } : other,
    };
  }
  yield {
    what: `${value.name} with more dims`,
    constant: (other) =>
      other === value
        ? { ...value, shape: [...Array(5 - value.shape.length).fill(1), ...value.shape] }
        : other,
  };
}

function unusualValues(rule: AttributeRule, usual: Attribute): Attribute[] {
  return [...candidates(rule, usual)].filter((value) =>
    JSON.stringify(value) !== JSON.stringify(usual) && rule.accepts(value) &&
    !REMAINDERS.includes(value)
  );
}

/** Functions whose results are far off where an operand is by its last bit. */
const REMAINDERS: readonly Attribute[] = ["mod", "fmod"];

function candidates({ words }: AttributeRule, usual: Attribute): readonly Attribute[] {
  if (words) return words;
  if (typeof usual === "boolean") return [!usual];
  if (typeof usual === "number") return [0, 1, 2, -1, usual + 1, 1.7 * usual + 0.3];
  if (!Array.isArray(usual) || usual.some((item) => typeof item !== "number")) return [];
  const numbers = usual as readonly number[];
  return [
    numbers.toReversed(),
    [...numbers.slice(1), ...numbers.slice(0, 1)],
    numbers.map((number) => number + 1),
    [1, 1],
    [0, 1, 1, 0],
    [],
  ];
}

/** The graph built anew, or undefined if an op refuses. */
function changedGraph(graph: Graph, { node: changed, constant, value }: Omit<Change, "what">) {
  const builder = createGraphBuilder(graph.name, getOp);
  const moved = new Map<Value, Value>();
  for (const input of graph.inputs) {
    moved.set(input, builder.input(input.name, input.shape, input.dtype));
  }
  for (const { name, shape, dtype, ...rest } of graph.states) {
    const state = builder.state(name, shape as readonly number[], dtype as StateType);
    moved.set(graph.states.find(({ id }) => id === rest.id)!, state);
  }
  const move = (old: Value): Value => {
    const known = moved.get(old);
    if (known) return known;
    const { data, shape } = constant?.(old) ?? old;
    const fresh = old.tensor
      ? builder.weight(old.name, old.tensor, old.dtype)
      : builder.constant(old.name, data as HostData, shape as readonly number[], old.dtype);
    moved.set(old, fresh);
    return fresh;
  };
  try {
    for (const node of graph.nodes) {
      const { inputs, attributes } = changed?.(node) ?? node;
      const made = builder.op(
        node.op,
        inputs.map((old) => old && move(old)),
        attributes,
        node.name,
      );
      node.outputs.forEach((old, i) => moved.set(old, made[i]!));
    }
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
  for (const output of graph.outputs) builder.output(output.name, moved.get(output)!);
  if (value) builder.output("besides", besides(moved.get(value.of)!));
  return builder.build();

  function besides(own: Value): Value {
    if (value!.how === "given out") return own;
    const shape = [...own.shape, 1];
    return builder.op("reshape", [own], { shape }, "besides.view")[0]!;
  }
}
