// Which inputs decide the branches of an If: few integers or flags, such as a sample rate or
// `use_cache_branch`, that stay the same from run to run. A graph is derived for their values, so that the
// branch is derived in place and nothing stands between segments. What an If reads of large inputs or
// floats is data, and stays on the host.

import type { OnnxGraph, OnnxNode } from "../file/model.ts";
import { bodiesOf, namesReadBy, type PreparedGraph } from "../derivation/prepare.ts";

/** Most elements of such an input. */
const MOST_ELEMENTS = 16;
/** Nodes between an input and a condition that are looked at. */
const MOST_NODES = 256;
const TYPES: ReadonlySet<string> = new Set(["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64"]);
/** What these give depends on no element. */
const SHAPE_OPS: ReadonlySet<string> = new Set(["Shape", "Size"]);

/** Names of the inputs, in the order of the graph. */
export function decidingInputs({ graph, nodes }: PreparedGraph): string[] {
  const makers = new Map<string, OnnxNode>();
  const conditions: string[] = [];
  const visit = (node: OnnxNode) => {
    for (const name of node.outputs) if (name !== "") makers.set(name, node);
    if (node.opType === "If" && node.inputs[0]) conditions.push(node.inputs[0]);
    for (const body of bodiesOf(node)) body.nodes.forEach(visit);
  };
  for (const { node } of nodes) visit(node);
  const names = new Set(conditions.flatMap((name) => [...rootsOf(name, graph, makers) ?? []]));
  return graph.inputs.map(({ name }) => name).filter((name) => names.has(name));
}

/** Inputs behind a condition; undefined if one of them is data. */
function rootsOf(
  condition: string,
  graph: OnnxGraph,
  makers: ReadonlyMap<string, OnnxNode>,
): Set<string> | undefined {
  const inputs = new Map(graph.inputs.map((info) => [info.name, info]));
  const roots = new Set<string>();
  const seen = new Set([condition]);
  for (const name of seen) {
    const input = inputs.get(name), maker = makers.get(name);
    if (seen.size > MOST_NODES) return undefined;
    if (input && !graph.initializers.has(name)) {
      const { type } = input;
      const dims = type?.kind === "tensor" && TYPES.has(type.dtype) ? type.shape : undefined;
      const count = dims?.reduce<number>((n, dim) => n * (typeof dim === "number" ? dim : NaN), 1);
      if (!(count! <= MOST_ELEMENTS)) return undefined;
      roots.add(name);
    } else if (maker && !SHAPE_OPS.has(maker.opType)) {
      for (const read of namesReadBy(maker)) seen.add(read);
    }
  }
  return roots;
}
