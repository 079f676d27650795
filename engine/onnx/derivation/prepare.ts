// A graph of a file made ready for derivation: model-local functions expanded in place, nodes in an order
// in which every value exists before it is used, and the rules of the format checked (each name written
// once, everything read is there, no cycles). Bodies of control flow are prepared when they are derived,
// with the names around them.

import { FormatError } from "../../errors.ts";
import {
  functionKey,
  type OnnxAttribute,
  type OnnxFunction,
  type OnnxGraph,
  type OnnxModel,
  type OnnxNode,
} from "../file/model.ts";

/** A node and the operator sets that its op is looked up in. */
export interface ScopedNode {
  readonly node: OnnxNode;
  readonly opsets: ReadonlyMap<string, number>;
}

/** A graph whose nodes are in order. */
export interface PreparedGraph {
  readonly graph: OnnxGraph;
  readonly nodes: readonly ScopedNode[];
}

const MOST_FUNCTION_DEPTH = 32;
const MOST_NODES = 1_000_000;

/** What is the same for all graphs of a model. */
export type ModelContext = Pick<OnnxModel, "file" | "functions">;

/**
 * Prepares a graph.
 *
 * @param outer Names of values around a body.
 * @throws {FormatError} If the graph breaks a rule of the format; the message names the node.
 */
export function prepareGraph(
  context: ModelContext,
  { graph, opsets, outer = new Set() }: {
    readonly graph: OnnxGraph;
    readonly opsets: ReadonlyMap<string, number>;
    readonly outer?: ReadonlySet<string> | undefined;
  },
): PreparedGraph {
  const nodes: ScopedNode[] = [];
  for (const node of graph.nodes) {
    expand(context, { scoped: { node, opsets }, into: nodes, depth: 0 });
  }
  return { graph, nodes: inOrder(context, { graph, nodes, outer }) };
}

function expand(
  context: ModelContext,
  { scoped, into, depth }: {
    readonly scoped: ScopedNode;
    readonly into: ScopedNode[];
    readonly depth: number;
  },
): void {
  const { node } = scoped;
  const { domain, opType, overload } = node;
  const found = context.functions.get(functionKey(domain, { name: opType, overload }));
  if (!found) {
    if (into.length >= MOST_NODES) {
      throw broken(context, { node, message: `more than ${MOST_NODES} nodes` });
    }
    into.push(scoped);
    return;
  }
  if (depth >= MOST_FUNCTION_DEPTH) {
    throw broken(context, { node, message: `functions nested deeper than ${MOST_FUNCTION_DEPTH}` });
  }
  const names = new Map<string, string>([["", ""]]);
  const path = node.name;
  found.inputs.forEach((name, i) => names.set(name, node.inputs[i] ?? ""));
  found.outputs.forEach((name, i) => {
    const outside = node.outputs[i];
    if (outside && !names.has(name)) names.set(name, outside);
  });
  const rename = (name: string) => names.get(name) ?? `${path}/${name}`;
  const attributes = functionAttributes(found, node);
  for (const inner of found.nodes) {
    const renamed = renameNode(inner, rename, attributes);
    expand(
      context,
      {
        scoped: { node: { ...renamed, name: `${path}/${inner.name}` }, opsets: found.opsets },
        into,
        depth: depth + 1,
      },
    );
  }
}

function functionAttributes(
  { defaults }: OnnxFunction,
  { attributes }: OnnxNode,
): ReadonlyMap<string, OnnxAttribute> {
  return new Map([...defaults, ...attributes]);
}

function renameNode(
  node: OnnxNode,
  rename: (name: string) => string,
  given: ReadonlyMap<string, OnnxAttribute>,
): OnnxNode {
  const attributes = new Map<string, OnnxAttribute>();
  for (const [name, attribute] of node.attributes) {
    const value = attribute.kind === "reference" ? given.get(attribute.value) : attribute;
    // A reference to an attribute that the call leaves out leaves this one out.
    if (value) attributes.set(name, renameBodies(value, rename, given));
  }
  return {
    ...node,
    inputs: node.inputs.map(rename),
    outputs: node.outputs.map(rename),
    attributes,
  };
}

function renameBodies(
  attribute: OnnxAttribute,
  rename: (name: string) => string,
  given: ReadonlyMap<string, OnnxAttribute>,
): OnnxAttribute {
  if (attribute.kind === "graph") {
    return { kind: "graph", value: renameGraph(attribute.value, rename, given) };
  }
  if (attribute.kind === "graphs") {
    const value = attribute.value.map((graph) => renameGraph(graph, rename, given));
    return { kind: "graphs", value };
  }
  return attribute;
}

// Names made inside the body are its own; all others are those of the function around it.
function renameGraph(
  graph: OnnxGraph,
  rename: (name: string) => string,
  given: ReadonlyMap<string, OnnxAttribute>,
): OnnxGraph {
  const own = namesMadeIn(graph);
  const inner = (name: string) => own.has(name) ? name : rename(name);
  const nodes = graph.nodes.map((node) => renameNode(node, inner, given));
  const outputs = graph.outputs.map((value) => ({ ...value, name: inner(value.name) }));
  return { ...graph, nodes, outputs };
}

function namesMadeIn(graph: OnnxGraph): Set<string> {
  return new Set([
    ...graph.inputs.map(({ name }) => name),
    ...graph.initializers.keys(),
    ...graph.sparse.keys(),
    ...graph.nodes.flatMap(({ outputs }) => outputs),
    "",
  ]);
}

/** Every name that a node reads, also inside its bodies, and that is made outside of it. */
export function namesReadBy(node: OnnxNode): Set<string> {
  const read = new Set(node.inputs.filter((name) => name !== ""));
  for (const body of bodiesOf(node)) {
    const own = namesMadeIn(body);
    for (const inner of body.nodes) {
      for (const name of namesReadBy(inner)) if (!own.has(name)) read.add(name);
    }
    for (const { name } of body.outputs) if (!own.has(name)) read.add(name);
  }
  return read;
}

/** Graphs in the attributes of a node. */
export function bodiesOf({ attributes }: OnnxNode): OnnxGraph[] {
  return [...attributes.values()].flatMap((attribute) =>
    attribute.kind === "graph"
      ? [attribute.value]
      : attribute.kind === "graphs"
      ? attribute.value
      : []
  );
}

function inOrder(
  context: ModelContext,
  { graph, nodes, outer }: {
    readonly graph: OnnxGraph;
    readonly nodes: readonly ScopedNode[];
    readonly outer: ReadonlySet<string>;
  },
): ScopedNode[] {
  const given = new Set([
    ...graph.inputs.map(({ name }) => name),
    ...graph.initializers.keys(),
    ...graph.sparse.keys(),
  ]);
  const maker = new Map<string, ScopedNode>();
  for (const scoped of nodes) {
    for (const name of scoped.node.outputs) {
      if (name === "") continue;
      if (maker.has(name) || given.has(name)) {
        const kind = maker.has(name) ? "is written twice" : "is an input or initializer already";
        throw broken(context, { node: scoped.node, message: `output "${name}" ${kind}` });
      }
      maker.set(name, scoped);
    }
  }
  const reads = new Map(nodes.map((scoped) => [scoped, namesReadBy(scoped.node)]));
  const waiting = new Map<ScopedNode, number>();
  const readers = new Map<ScopedNode, ScopedNode[]>();
  for (const [scoped, names] of reads) {
    const before = new Set<ScopedNode>();
    for (const name of names) {
      const made = maker.get(name);
      if (made) before.add(made);
      else if (!given.has(name) && !outer.has(name)) {
        throw broken(context, {
          node: scoped.node,
          message: `input "${name}" is produced by nothing`,
        });
      }
    }
    waiting.set(scoped, before.size);
    for (const made of before) {
      const list = readers.get(made);
      if (list) list.push(scoped);
      else readers.set(made, [scoped]);
    }
  }
  for (const { name } of graph.outputs) {
    if (!maker.has(name) && !given.has(name) && !outer.has(name)) {
      throw new FormatError(`output "${name}" is produced by nothing`, { file: context.file });
    }
  }
  return topological(context, { nodes, waiting, readers });
}

// Files are nearly always in order already, and then the order stays as it is.
function topological(
  context: ModelContext,
  { nodes, waiting, readers }: {
    readonly nodes: readonly ScopedNode[];
    readonly waiting: Map<ScopedNode, number>;
    readonly readers: ReadonlyMap<ScopedNode, readonly ScopedNode[]>;
  },
): ScopedNode[] {
  const done = new Set<ScopedNode>();
  const ordered: ScopedNode[] = [];
  const finish = (scoped: ScopedNode) => {
    done.add(scoped);
    ordered.push(scoped);
    for (const reader of readers.get(scoped) ?? []) waiting.set(reader, waiting.get(reader)! - 1);
  };
  let left = [...nodes];
  while (left.length > 0) {
    for (const scoped of left) if (waiting.get(scoped) === 0) finish(scoped);
    const rest = left.filter((scoped) => !done.has(scoped));
    if (rest.length === left.length) {
      throw broken(context, {
        node: rest[0]!.node,
        message: "it waits for its own result: the graph has a cycle",
      });
    }
    left = rest;
  }
  return ordered;
}

/** An error at a node. */
export function broken(
  { file }: ModelContext,
  { node, message }: { readonly node: OnnxNode; readonly message: string },
): FormatError {
  return new FormatError(message, { file, place: `node ${node.name} (${node.opType})` });
}
