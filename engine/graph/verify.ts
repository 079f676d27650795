// What a well-formed graph is, as a table of rules. Tests check the result of every pass against all of
// them; the builder checks those that building does not ensure anyway. A violation is a bug of whoever
// made the graph, so it throws a TypeError with the name of the rule, never a message for users.

import { equal, formatDim } from "./dim/mod.ts";
import type { OpLookup } from "./op_rules.ts";
import type { Graph, Node, TensorType, Value } from "./graph.ts";

interface Rule {
  readonly name: string;
  /** True if a graph from the builder cannot break it. */
  readonly built: boolean;
  /** Violations, each a short sentence. */
  check(graph: Graph, ops: OpLookup): Iterable<string>;
}

const rules: readonly Rule[] = [
  { built: true, name: "ids are unique", check: checkIds },
  { built: false, name: "inputs, states and outputs have unique names", check: checkNames },
  { built: true, name: "values are produced once and before use", check: checkOrder },
  { built: true, name: "roles fit their data", check: checkRoles },
  { built: true, name: "outputs have the types that the op infers", check: checkTypes },
  { built: false, name: "a state is changed by at most one node at a time", check: checkStates },
];

/**
 * Checks every rule.
 *
 * @throws {TypeError} On the first violation.
 */
export function verify(graph: Graph, ops: OpLookup): void {
  check(graph, { ops, some: rules });
}

/**
 * Checks the rules that building a graph value by value does not ensure.
 *
 * @throws {TypeError} On the first violation.
 */
export function verifyBuilt(graph: Graph, ops: OpLookup): void {
  check(graph, { ops, some: rules.filter(({ built }) => !built) });
}

function check(
  graph: Graph,
  { ops, some }: { readonly ops: OpLookup; readonly some: readonly Rule[] },
): void {
  for (const rule of some) {
    for (const violation of rule.check(graph, ops)) {
      throw new TypeError(`Cannot accept graph ${graph.name} (${rule.name}): ${violation}`);
    }
  }
}

function allValues(graph: Graph): Set<Value> {
  return new Set([
    ...graph.inputs,
    ...graph.states,
    ...graph.nodes.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]),
    ...graph.outputs,
  ].filter((value) => value !== undefined));
}

function* checkIds(graph: Graph): Iterable<string> {
  yield* duplicates([...allValues(graph)].map(({ id }) => `value ${id}`));
  yield* duplicates(graph.nodes.map(({ id }) => `node ${id}`));
}

function* checkNames({ inputs, states, outputs }: Graph): Iterable<string> {
  for (const list of [inputs, states, outputs]) yield* duplicates(list.map(({ name }) => name));
}

function* duplicates(names: readonly string[]): Iterable<string> {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) yield `${name} occurs twice`;
    seen.add(name);
  }
}

function* checkOrder(graph: Graph): Iterable<string> {
  const ready = new Set<Value>([...graph.inputs, ...graph.states]);
  for (const node of graph.nodes) {
    for (const value of node.inputs) {
      if (value && !isGiven(value) && !ready.has(value)) {
        yield `${node.name} uses ${value.name}, which is not produced before`;
      }
    }
    for (const value of node.outputs) {
      if (ready.has(value) || isGiven(value)) yield `${node.name} produces ${value.name} again`;
      ready.add(value);
    }
  }
  for (const value of graph.outputs) {
    if (!ready.has(value)) yield `output ${value.name} is not produced`;
  }
}

function isGiven(value: Value): boolean {
  return value.role === "weight" || value.role === "constant";
}

function* checkRoles(graph: Graph): Iterable<string> {
  for (const value of allValues(graph)) {
    if ((value.role === "weight") !== (value.tensor !== undefined)) {
      yield `${value.name} is a ${value.role} and must${value.tensor ? " not" : ""} have a tensor`;
    }
    if ((value.role === "constant") !== (value.data !== undefined)) {
      yield `${value.name} is a ${value.role} and must${value.data ? " not" : ""} have data`;
    }
  }
  for (const value of graph.inputs) if (value.role !== "input") yield `${value.name} is no input`;
  for (const value of graph.states) if (value.role !== "state") yield `${value.name} is no state`;
}

function* checkTypes(graph: Graph, ops: OpLookup): Iterable<string> {
  for (const node of graph.nodes) {
    const types = ops(node.op).infer(node.inputs, node.attributes);
    if (types.length !== node.outputs.length) {
      yield `${node.name} has ${node.outputs.length} outputs, ${node.op} gives ${types.length}`;
    }
    for (const [i, type] of types.entries()) {
      const value = node.outputs[i];
      const same = value?.dtype === type.dtype && value.shape.length === type.shape.length &&
        value.shape.every((dim, axis) => equal(dim, type.shape[axis]!));
      if (value && !same) {
        yield `${value.name} is ${formatType(value)}, ${node.op} gives ${formatType(type)}`;
      }
    }
  }
}

// Two changes of one version of a state have no defined order; a chain of them has.
function* checkStates(graph: Graph, ops: OpLookup): Iterable<string> {
  const changer = new Map<Value, Node>();
  for (const node of graph.nodes) {
    const op = ops(node.op);
    if (op.view) continue;
    for (const input of Object.values(op.inPlace?.(node.attributes) ?? {})) {
      const value = node.inputs[input];
      if (!value) continue;
      if (value.role !== "state") yield `${node.name} changes ${value.name}, which is no state`;
      const other = changer.get(value);
      if (other) yield `${node.name} and ${other.name} both change ${value.name}`;
      changer.set(value, node);
    }
  }
}

/** `f32[M, 576]`, for messages and dumps. */
export function formatType({ dtype, shape }: TensorType): string {
  return `${dtype}[${shape.map(formatDim).join(", ")}]`;
}
