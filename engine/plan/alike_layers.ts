// Layers that are alike go through the passes once. Of a run of them the first two and the last stay; afterwards the
// second, whose neighbours are such as those of the layers that were left out, is written down in the place of each of these.
// What is alike is compared node by node, before the passes and behind them; a graph of which anything is otherwise goes
// through them whole.

import { equal } from "../graph/dim/mod.ts";
import type { TensorInfo } from "../formats/source.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { copyGraph } from "./passes/copy_graph.ts";
import { isJoined, joinRows } from "./passes/joined_weights.ts";
import { sameAttribute } from "./passes/match.ts";

/** Nodes of one layer, which follow each other. */
interface Layer {
  /** What their names begin with. */
  readonly prefix: string;
  readonly nodes: readonly Node[];
}

/** Where a value is made: in which layer, by which of its nodes, as which of that one's outputs. */
interface Origin {
  readonly layer: number;
  readonly node: number;
  readonly output: number;
}

interface Layers {
  readonly layers: readonly Layer[];
  readonly origins: ReadonlyMap<Value, Origin>;
}

/** By a weight or state of a layer, what another one has in its place. */
type Twins = ReadonlyMap<Value, Value>;

/** A run of layers of which each is like the one before. */
interface Run {
  /** The one that is repeated, the second. */
  readonly kept: number;
  readonly last: number;
  /** Of the layers behind the one that is repeated, in order: from the layer before. */
  readonly twins: readonly Twins[];
}

/** So many layers are left out at least: for fewer, comparing takes longer than it saves. */
const LEAST_LEFT_OUT = 4;

/**
 * Runs passes over a graph, over alike layers of it once.
 *
 * @param passes What they make of a layer must hang on its nodes and those of the layers beside it alone.
 */
export function optimizeAlike(graph: Graph, passes: (graph: Graph) => Graph): Graph {
  const found = layersOf(graph), run = longestRun(found);
  if (run.last - run.kept - 1 < LEAST_LEFT_OUT) return passes(graph);
  const short = withoutLayers(graph, found, run);
  return (short && withLayers(passes(short), found, run)) ?? passes(graph);
}

function layersOf({ nodes }: Graph): Layers {
  const layers: { prefix: string; nodes: Node[] }[] = [], origins = new Map<Value, Origin>();
  for (const node of nodes) {
    const prefix = prefixOf(node.name);
    if (prefix === undefined) continue;
    if (layers.at(-1)?.prefix !== prefix) layers.push({ prefix, nodes: [] });
    const layer = layers.length - 1, count = layers[layer]!.nodes.push(node);
    node.outputs.forEach((value, output) => origins.set(value, { layer, node: count - 1, output }));
  }
  return { layers, origins };
}

function prefixOf(name: string): string | undefined {
  return name.startsWith("layers.") ? name.slice(0, name.indexOf(".", 7) + 1) : undefined;
}

function longestRun(found: Layers): Run {
  let best: Run = { kept: 0, last: 0, twins: [] }, first = 0, twins: Twins[] = [];
  for (let last = 1; last < found.layers.length; last++) {
    const pairs = twinsOf(found, last - 1, last);
    if (!pairs) [first, twins] = [last, []];
    else if (last > first + 1) twins.push(pairs);
    if (last - first > best.last - best.kept + 1) best = { kept: first + 1, last, twins };
  }
  return best;
}

/** What one layer has in the place of what another one has; undefined if they are not alike. */
function twinsOf({ layers, origins }: Layers, from: number, to: number): Twins | undefined {
  const own = layers[from]!, other = layers[to]!, twins = new Map<Value, Value>();
  // What is made once for all layers stands at the beginning of the first.
  const beforeEnd = (made: Origin | undefined) =>
    made && layers[made.layer]!.nodes.length - made.node;
  const isTwin = (a: Value | undefined, b: Value | undefined): boolean => {
    if (a === b) return !a || (origins.get(a)?.layer ?? -1) < from;
    if (!a || !b || !sameType(a, b)) return false;
    const made = origins.get(a), twin = origins.get(b);
    if (made || twin) {
      return made?.output === twin?.output && beforeEnd(made) === beforeEnd(twin) &&
        made!.layer - from === twin!.layer - to && made!.layer >= from - 1;
    }
    if (a.role !== b.role || a.role !== "weight" && a.role !== "state") return false;
    if (a.tensor?.format !== b.tensor?.format || (twins.get(a) ?? b) !== b) return false;
    twins.set(a, b);
    return true;
  };
  const isAlike = own.nodes.length === other.nodes.length && own.nodes.every((node, i) => {
    const twin = other.nodes[i]!;
    return node.op === twin.op && node.inputs.length === twin.inputs.length &&
      node.name.slice(own.prefix.length) === twin.name.slice(other.prefix.length) &&
      sameAttributes(node, twin) && node.inputs.every((value, j) => isTwin(value, twin.inputs[j]));
  });
  return isAlike ? twins : undefined;
}

// Those of one op have the same names, and what they infer hangs on them and the inputs.
function sameAttributes({ attributes }: Node, other: Node): boolean {
  for (const name in attributes) {
    if (!sameAttribute(attributes[name]!, other.attributes[name])) return false;
  }
  return true;
}

function sameType({ dtype, shape }: Value, other: Value): boolean {
  return dtype === other.dtype && shape.length === other.shape.length &&
    shape.every((dim, i) => equal(dim, other.shape[i]!));
}

/** The graph with the layers behind the kept one left out; undefined if others than the next layer read one of them. */
function withoutLayers(
  graph: Graph,
  { layers, origins }: Layers,
  { kept, last }: Run,
): Graph | undefined {
  const { builder, move, stand } = copyGraph(graph);
  const layerOf = (value: Value | undefined) => (value && origins.get(value)?.layer) ?? -1;
  const isRepeated = (layer: number) => layer >= kept && layer < last;
  for (const node of graph.nodes) {
    const layer = layerOf(node.outputs[0]);
    if (layer > kept && layer < last) continue;
    const inputs: (Value | undefined)[] = [];
    for (const value of node.inputs) {
      const from = layerOf(value);
      if (!isRepeated(from) || from === layer) inputs.push(value && move(value));
      else if (layer !== last || from !== last - 1) return undefined;
      else {
        const { node, output } = origins.get(value!)!;
        inputs.push(move(layers[kept]!.nodes[node]!.outputs[output]!));
      }
    }
    stand(node, builder.op(node.op, inputs, node.attributes, node.name, node.outputs));
  }
  if (graph.outputs.some((value) => isRepeated(layerOf(value)))) return undefined;
  for (const value of graph.outputs) builder.output(value.name, move(value));
  return builder.build();
}

/** The graph behind the passes with all its layers; undefined if these have made something else of alike ones. */
function withLayers(short: Graph, { layers }: Layers, { kept, last, twins }: Run) {
  const found = layersOf(short), { prefix } = layers[kept]!;
  const at = found.layers.findIndex((layer) => layer.prefix === prefix);
  const own = at > 0 ? twinsOf(found, at - 1, at) : undefined;
  if (!own) return undefined;
  const { nodes } = found.layers[at]!, isOwn = new Set(own.values());
  const { builder, move, stand } = copyGraph(short);
  const states = new Map(short.states.map((state) => [state.name, state]));
  const roots = rootsOf(twins[0]!);
  const end = short.nodes.indexOf(nodes.at(-1)!);

  /** Writes one layer down. @returns Its outputs by node; undefined if a pass has made a weight of its own. */
  function write(layer: number, before: readonly (readonly Value[])[]): Value[][] | undefined {
    const made: Value[][] = [];
    for (const { op, name, inputs, attributes, outputs } of nodes) {
      const given: (Value | undefined)[] = [];
      for (const value of inputs) {
        const origin = value && found.origins.get(value);
        if (origin && origin.layer >= at - 1) {
          given.push((origin.layer === at ? made : before)[origin.node]![origin.output]!);
        } else if (!value || !isOwn.has(value)) given.push(value && move(value));
        else {
          const twin = twinOf(value, roots);
          if (!twin) return undefined;
          given.push(
            twin.tensor
              ? builder.weight(twin.name, twin.tensor, value.dtype)
              : move(states.get(twin.name)!),
          );
        }
      }
      const own = layers[layer]!.prefix + name.slice(prefix.length);
      made.push(builder.op(op, given, attributes, own, outputs));
    }
    return made;
  }

  for (const [index, node] of short.nodes.entries()) {
    const isBehind = index > end && node.name.startsWith(prefix);
    const name = isBehind ? layers[last - 1]!.prefix + node.name.slice(prefix.length) : node.name;
    const inputs = node.inputs.map((value) => value && move(value));
    stand(node, builder.op(node.op, inputs, node.attributes, name, node.outputs));
    if (index !== end) continue;
    let made: Value[][] | undefined = nodes.map(({ outputs }) => outputs.map(move));
    for (let layer = kept + 1; layer < last; layer++) {
      if (layer > kept + 1) follow(roots, twins[layer - kept - 1]!);
      made = write(layer, made);
      if (!made) return undefined;
    }
    nodes.forEach((node, i) => stand(node, made![i]!));
  }
  for (const value of short.outputs) builder.output(value.name, move(value));
  return builder.build();
}

/** By what the passes leave of a weight or state, its twin: the tensor, or the name. */
function rootsOf(twins: Twins): Map<TensorInfo | string, Value> {
  return new Map(
    [...twins].map(([value, twin]) => [value.tensor ?? value.name, twin] as const),
  );
}

/** What a layer has in the place of a weight or state; undefined if a pass has made it. */
function twinOf(
  { tensor, name }: Value,
  roots: ReadonlyMap<TensorInfo | string, Value>,
): Pick<Value, "name" | "tensor"> | undefined {
  if (!tensor || !isJoined(tensor)) return roots.get(tensor ?? name);
  const twins = tensor.joined.flatMap((part) => roots.get(part)?.tensor ?? []);
  if (twins.length < tensor.joined.length) return undefined;
  const joined = joinRows(twins);
  return { name: joined.name, tensor: joined };
}

/** Goes on from the twins of one layer to those of the next. */
function follow(roots: Map<TensorInfo | string, Value>, twins: Twins): void {
  for (const [root, value] of roots) roots.set(root, twins.get(value)!);
}
