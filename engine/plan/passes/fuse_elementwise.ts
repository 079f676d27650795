// fuse_elementwise: neighbouring functions of single elements become one `elementwise` node (spec MD-9).
// A node takes in the nodes before it whose results nobody else reads and whose shape is its own, so
// nothing is computed twice and every step runs over the same elements. Constants of one element become
// part of the node.

import type { Attributes, Node, Value } from "../../graph/graph.ts";
import { type MatchContext, sameShape, singleNumber } from "./match.ts";
import { definePass, type Pass, type PassContext } from "./pass.ts";

/** Joins functions of single elements. */
export const fuseElementwise: Pass = definePass({
  name: "fuse_elementwise",
  reads: { binary: ["kind"], unary: ["kind", "alpha", "beta"] },
  suits: ({ hasKernel }) => hasKernel("elementwise"),
  run(context, { takes }) {
    const chains = chainsOf(context, takes);
    if (chains.size === 0) return undefined;
    return context.rewrite(({ node, op, moved, copy }) => {
      const chain = chains.get(node);
      // Nodes inside a chain are left without readers; dead_code drops them.
      if (!chain) return copy();
      return op("elementwise", chain.inputs.map(moved), chain.attributes, node.name);
    });
  },
});

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
function stepOf({ inputs, outputs, attributes }: Node): Step | undefined {
  const values = inputs as readonly Value[];
  if ([...values, ...outputs].some((value) => value.dtype !== "f32")) return undefined;
  const { kind, alpha = 1, beta = 0 } = attributes;
  return { kind: kind as string, inputs: values, alpha: alpha as number, beta: beta as number };
}

function chainsOf(
  { nodes, made, readers, outputs }: MatchContext,
  takes: PassContext["takes"],
): Map<Node, Chain> {
  const taken = new Set<Node>();
  const chains = new Map<Node, Chain>();
  for (const root of nodes.toReversed()) {
    if (taken.has(root) || !stepOf(root)) continue;
    const members = new Set([root]);
    let chain: Chain | undefined;
    // Each round takes in one more producer that fits; the set of members is what "nobody else" means.
    for (;;) {
      const next = candidatesOf(members, made).find((node) => {
        const [result] = node.outputs as [Value];
        return !taken.has(node) && !outputs.has(result) && sameShape(result, root.outputs[0]!) &&
          readers.get(result)!.every((reader) => members.has(reader)) &&
          takes({ op: "elementwise", ...chainOf(new Set([...members, node]), root) });
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

function candidatesOf(members: ReadonlySet<Node>, made: ReadonlyMap<Value, Node>): Node[] {
  const found = new Set<Node>();
  for (const { inputs } of members) {
    for (const value of inputs) {
      const producer = value && made.get(value);
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
  // A number with dims has a say in the result's rank, unless something else has them too.
  const rank = root.outputs[0]!.shape.length;
  const isWide = given.some((value) =>
    numberOf(value) === undefined && value.shape.length === rank
  );
  const immediateOf = (value: Value) =>
    value.shape.length === 0 || isWide ? numberOf(value) : undefined;
  for (const value of new Set(given)) {
    const number = immediateOf(value);
    if (number === undefined) inputs.push(value);
    else if (indexOf(constants, number) < 0) constants.push(number);
  }
  const register = (value: Value): number => {
    const step = results.get(value);
    if (step !== undefined) return inputs.length + constants.length + step;
    const number = immediateOf(value);
    return number === undefined
      ? inputs.indexOf(value)
      : inputs.length + indexOf(constants, number);
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

/** Where a number stands; 0 is not -0. */
function indexOf(numbers: readonly number[], number: number): number {
  return numbers.findIndex((known) => Object.is(known, number));
}

/** The number of a constant of one element. */
function numberOf(value: Value): number | undefined {
  const number = singleNumber(value);
  // What attributes cannot hold stays an input.
  return Number.isFinite(number) ? number : undefined;
}
