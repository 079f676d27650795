// fuse_elementwise: neighbouring functions of single elements become one `elementwise` node (spec MD-9).
// A node takes in the nodes before it whose results nobody else reads and whose shape is its own, so
// nothing is computed twice and every step runs over the same elements. Constants of one element become
// part of the node.

import { equal } from "../../graph/dim.ts";
import type { Attributes, Graph, Node, Value } from "../../graph/graph.ts";
import { canRunChain, hasChainFunction } from "../../graph/lower_chain.ts";
import type { Pass } from "./pass.ts";
import { producersOf, readersOf, rewrite } from "./rewrite.ts";

/** Joins functions of single elements. */
export const fuseElementwise: Pass = {
  name: "fuse_elementwise",
  run(graph, context) {
    if (!context.hasKernel("elementwise")) return graph;
    const chains = chainsOf(graph);
    if (chains.size === 0) return graph;
    return rewrite(graph, ({ node, op, moved, copy }) => {
      const chain = chains.get(node);
      // Nodes inside a chain are left without readers; dead_code drops them.
      if (!chain) return copy();
      return op("elementwise", chain.inputs.map(moved), chain.attributes, node.name);
    });
  },
};

interface Chain {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly attributes: Attributes;
}

/** A step in terms of values. */
interface Step {
  readonly kind: string;
  readonly inputs: readonly Value[];
  readonly alpha: number;
  readonly beta: number;
}

/** The function that a node applies, if it is one of single float32 elements. */
function stepOf({ op, inputs, outputs, attributes }: Node): Step | undefined {
  const values = inputs as readonly Value[];
  if (outputs.length !== 1 || [...values, outputs[0]!].some((value) => value?.dtype !== "f32")) {
    return undefined;
  }
  const { alpha = 1, beta = 0 } = attributes as { readonly alpha?: number; readonly beta?: number };
  const kinds: Readonly<Record<string, string>> = {
    activation: String(attributes.kind),
    add: "add",
    binary: String(attributes.kind),
    mul: "mul",
    pow: "pow",
    unary: String(attributes.kind),
  };
  const kind = Object.hasOwn(kinds, op) ? kinds[op]! : "";
  return hasChainFunction(kind) ? { kind, inputs: values, alpha, beta } : undefined;
}

function sameShape(a: Value, b: Value): boolean {
  return a.shape.length === b.shape.length && a.shape.every((dim, i) => equal(dim, b.shape[i]!));
}

function chainsOf(graph: Graph): Map<Node, Chain> {
  const readers = readersOf(graph), producers = producersOf(graph);
  const kept = new Set(graph.outputs);
  const taken = new Set<Node>();
  const chains = new Map<Node, Chain>();
  for (const root of graph.nodes.toReversed()) {
    if (taken.has(root) || !stepOf(root)) continue;
    const members = new Set([root]);
    let chain: Chain | undefined;
    // Each round takes in one more producer that fits; the set of members is what "nobody else" means.
    for (;;) {
      const next = candidatesOf(members, producers).find((node) => {
        const [result] = node.outputs as [Value];
        return !taken.has(node) && !kept.has(result) && sameShape(result, root.outputs[0]!) &&
          readers.get(result)!.every((reader) => members.has(reader)) &&
          canRunChain(chainOf(new Set([...members, node]), root));
      });
      if (!next) break;
      members.add(next);
      chain = chainOf(members, root);
    }
    if (!chain) continue;
    members.forEach((node) => taken.add(node));
    chains.set(root, chain);
  }
  return chains;
}

function candidatesOf(members: ReadonlySet<Node>, producers: ReadonlyMap<Value, Node>): Node[] {
  const found = new Set<Node>();
  for (const { inputs } of members) {
    for (const value of inputs) {
      const producer = value && producers.get(value);
      if (producer && !members.has(producer) && stepOf(producer)) found.add(producer);
    }
  }
  return [...found];
}

/** The members, in the order of the graph, as one node. */
function chainOf(members: ReadonlySet<Node>, root: Node): Chain {
  const ordered = [...members].sort((a, b) => a.id - b.id);
  const results = new Map(ordered.map((node, step) => [node.outputs[0]!, step]));
  const inputs: Value[] = [], constants: number[] = [];
  const given = ordered.flatMap((node) => stepOf(node)!.inputs)
    .filter((value) => !results.has(value));
  for (const value of new Set(given)) {
    const number = immediateOf(value, root.outputs[0]!);
    if (number === undefined) inputs.push(value);
    else if (!constants.includes(number)) constants.push(number);
  }
  const register = (value: Value): number => {
    const step = results.get(value);
    if (step !== undefined) return inputs.length + constants.length + step;
    const number = immediateOf(value, root.outputs[0]!);
    return number === undefined ? inputs.indexOf(value) : inputs.length + constants.indexOf(number);
  };
  const steps = ordered.map((node) => stepOf(node)!);
  return {
    inputs,
    outputs: root.outputs,
    attributes: {
      kinds: steps.map(({ kind }) => kind),
      operands: steps.flatMap((step) => {
        const [a, b] = step.inputs;
        return [register(a!), b ? register(b) : -1];
      }),
      parameters: steps.flatMap(({ alpha, beta }) => [alpha, beta]),
      constants,
    },
  };
}

/** The number of a constant of one element, where its dims do not make the result's. */
function immediateOf({ data, shape }: Value, result: Value): number | undefined {
  const numbers = data as Float32Array | undefined;
  if (numbers?.length !== 1 || shape.length > result.shape.length) return undefined;
  // A number that JSON and attributes cannot hold stays an input.
  return Number.isFinite(numbers[0]) ? numbers[0] : undefined;
}
