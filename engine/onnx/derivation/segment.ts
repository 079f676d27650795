// Derives as many nodes of an ONNX graph as can be derived before something must run: one engine graph,
// what it is fed and what is fetched from it, and what is left: nodes of the host (control flow,
// sequences, results whose size depends on data) and nodes that wait for contents or for those. A graph
// without such nodes is one segment. Bodies of an If whose condition is known are derived in place.

import { UnsupportedError } from "../../errors.ts";
import type { OnnxGraph } from "../file/model.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { errorAt } from "../../graph/node_error.ts";
import { getOp } from "../../ops/mod.ts";
import { buildNode } from "./build_node.ts";
import type { Derivation, SegmentRequest } from "./derivation.ts";
import { NeedsContents, NeedsHost, NotSupported } from "./op.ts";
import { findOp } from "./opset.ts";
import { broken, namesReadBy, prepareGraph, type ScopedNode } from "./prepare.ts";
import { tensorOfFile, tensorOfSparse } from "./constants.ts";
import { type Entry, isConstant, type Tensor } from "./tensor.ts";
import { createValues } from "./engine_values.ts";

/** A result of a segment's graph. */
export interface Fetch {
  /** Name of the output of the engine graph. */
  readonly output: string;
  readonly tensor: Tensor;
}

/** A derived segment. */
export interface Segment {
  /** Absent: nothing is computed. */
  readonly graph?: Graph;
  /** By name: what is fetched. */
  readonly fetches: ReadonlyMap<string, Fetch>;
  /** By name: another name for the same value, which is there already. */
  readonly copies: ReadonlyMap<string, string>;
  /** Nodes to evaluate on the host when the graph has run. */
  readonly hostNodes: readonly ScopedNode[];
  /** Names whose contents the next segment must know. */
  readonly contents: ReadonlySet<string>;
  /** Nodes for the next segment. */
  readonly rest: readonly ScopedNode[];
  /** Everything that is known so far, by name. */
  readonly entries: ReadonlyMap<string, Entry>;
}

interface Deferred {
  readonly hostNodes: ScopedNode[];
  readonly rest: ScopedNode[];
  readonly contents: Set<string>;
}

/**
 * Derives a segment.
 *
 * @throws {UnsupportedError} Listing every node that has no translation.
 * @throws {FormatError | RangeError | TypeError} At the first node whose shapes do not fit.
 */
export function deriveSegment(request: SegmentRequest): Segment {
  const builder = createGraphBuilder(request.name, getOp);
  const values = createValues(builder, request.entries);
  const derivation: Derivation = { request, builder, values, problems: [] };
  const entries = new Map(request.entries);
  const deferred = deriveNodes(derivation, request.nodes, entries);
  throwProblems(derivation);
  return finish(derivation, entries, deferred);
}

function throwProblems({ problems, request }: Derivation): void {
  if (problems.length === 0) return;
  throw new UnsupportedError(problems.join("; "), { file: request.context.file });
}

function deriveNodes(
  derivation: Derivation,
  nodes: readonly ScopedNode[],
  entries: Map<string, Entry>,
): Deferred {
  const deferred: Deferred = { hostNodes: [], rest: [], contents: new Set() };
  // Results of nodes that have no translation: what reads them is not judged.
  const lost = new Set<string>();
  for (const scoped of nodes) {
    const { node } = scoped;
    const names = namesReadBy(node);
    if ([...names].some((name) => lost.has(name))) {
      node.outputs.forEach((name) => lost.add(name));
    } else if (![...names].every((name) => entries.has(name))) deferred.rest.push(scoped);
    else deriveNode(derivation, { scoped, entries, deferred, lost });
  }
  return deferred;
}

function deriveNode(
  derivation: Derivation,
  { scoped, entries, deferred: { hostNodes, rest, contents }, lost }: {
    readonly scoped: ScopedNode;
    readonly entries: Map<string, Entry>;
    readonly deferred: Deferred;
    readonly lost: Set<string>;
  },
): void {
  const { node } = scoped;
  const { context } = derivation.request;
  const { op, version } = findOp(context, scoped);
  const inputs = node.inputs.map((name) => name === "" ? undefined : entries.get(name)!);
  const isObject = inputs.some((input) => input?.kind === "object");
  if (!op.build || isObject) {
    if (!op.evaluate) {
      derivation.problems.push(`${node.opType} at ${node.name}: not on such values`);
    } else hostNodes.push(scoped);
    return;
  }
  const inline = (body: OnnxGraph, given: readonly Tensor[]) =>
    deriveInline(derivation, { node: scoped, body, outer: entries, given });
  try {
    const results = buildNode({ ...derivation, op, version, node, inline }, inputs as Tensor[]);
    node.outputs.forEach((name, i) => {
      const result = results[i];
      if (name === "") return;
      if (!result) throw broken(context, { node, message: `output ${i} ("${name}") is not made` });
      entries.set(name, result);
    });
  } catch (error) {
    if (error instanceof NeedsContents) {
      contents.add(node.inputs[error.index]!);
      rest.push(scoped);
    } else if (error instanceof NeedsHost && op.evaluate) hostNodes.push(scoped);
    else if (error instanceof NotSupported || error instanceof TypeError) {
      derivation.problems.push(`${node.opType} at ${node.name}: ${error.message}`);
      node.outputs.forEach((name) => lost.add(name));
    } else throw errorAt(error, `${context.file}, node ${node.name} (${node.opType})`);
  }
}

// A body that cannot be derived whole is left to the host.
function deriveInline(
  derivation: Derivation,
  { node: { opsets }, body, outer, given }: {
    readonly node: ScopedNode;
    readonly body: OnnxGraph;
    readonly outer: ReadonlyMap<string, Entry>;
    readonly given: readonly Tensor[];
  },
): Tensor[] {
  const { context } = derivation.request;
  const prepared = prepareGraph(context, { graph: body, opsets, outer: new Set(outer.keys()) });
  const entries = new Map<string, Entry>([...outer, ...constantEntries(body)]);
  body.inputs.forEach(({ name }, i) => given[i] && entries.set(name, given[i]));
  const { hostNodes, rest } = deriveNodes(derivation, prepared.nodes, entries);
  if (hostNodes.length > 0 || rest.length > 0) throw new NeedsHost();
  return body.outputs.map(({ name }) => {
    const entry = entries.get(name);
    if (entry?.kind !== "tensor") throw new NeedsHost();
    return entry;
  });
}

/** Initializers of a graph as constants. */
export function constantEntries(graph: OnnxGraph): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const [name, tensor] of graph.initializers) entries.set(name, tensorOfFile(tensor));
  for (const [name, tensor] of graph.sparse) entries.set(name, tensorOfSparse(tensor));
  return entries;
}

function finish(
  derivation: Derivation,
  entries: ReadonlyMap<string, Entry>,
  { hostNodes, rest, contents }: Deferred,
): Segment {
  const { builder, values, request } = derivation;
  const needed = new Set([
    ...[...hostNodes, ...rest].flatMap(({ node }) => [...namesReadBy(node)]),
    ...contents,
    ...request.outputs,
  ]);
  const fetches = new Map<string, Fetch>();
  const copies = new Map<string, string>();
  const taken = new Map<Value, string>();
  for (const name of needed) {
    const tensor = entries.get(name);
    if (tensor?.kind !== "tensor" || isConstant(tensor)) continue;
    const source = values.sourceOf(tensor);
    if (source !== undefined) {
      if (source !== name) copies.set(name, source);
      continue;
    }
    const value = values.valueOf(tensor);
    const output = taken.get(value) ?? name;
    if (!taken.has(value)) {
      builder.output(output, value);
      taken.set(value, output);
    }
    fetches.set(name, { output, tensor });
  }
  const graph = taken.size > 0 ? builder.build() : undefined;
  return { ...graph && { graph }, fetches, copies, hostNodes, contents, rest, entries };
}
