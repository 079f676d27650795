// A product at the end of a graph (the logits of every row of a step) computed for some of its rows: those whose
// indices come in as an input of their own. Not in the list of passes, because it changes what a graph takes
// and gives; the caller asks for it by the result's name.

import { type Dim, equal } from "../../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { copyGraph } from "./copy_graph.ts";
import { matchContext, type Reads } from "./match.ts";
import { isQ8 } from "../../ops/q8_rows.ts";

/** Products whose rows do not depend on each other, and what of them does not matter. */
const PRODUCTS: Reads = { matmul: [], matmul_nd: ["transpose_b", "alpha"] };

/** Which rows are wanted. */
export interface WantedRows {
  /** Name of the result. */
  readonly result: string;
  /** Name of the new input: i32[count], indices of rows. */
  readonly input: string;
  readonly count: Dim;
}

/** The graph that computes wanted rows alone; undefined where its result is no product of rows. */
export function wantedRowsOnly(graph: Graph, wanted: WantedRows): Graph | undefined {
  const result = graph.outputs.find(({ name }) => name === wanted.result);
  const product = result && matchContext(graph, PRODUCTS).made.get(result);
  if (!product) return undefined;
  const axis = rowAxis(product, result);
  if (axis === undefined || readsOf(graph, result) > 0) return undefined;
  const { builder, move, node: add } = copyGraph(graph);
  const rows = builder.input(wanted.input, [wanted.count], "i32");
  for (const node of graph.nodes) {
    if (node !== product) {
      add(node);
      continue;
    }
    const [x, ...rest] = node.inputs.map((value) => value && move(value));
    const [some] = builder.op("gather", [x, rows], { axis }, `${node.name}.rows`);
    add(node, [some, ...rest]);
  }
  for (const value of graph.outputs) builder.output(value.name, move(value));
  return builder.build();
}

// The one axis before the last whose size is not 1, if the matrix is a weight.
function rowAxis({ inputs: [x, matrix, ...rest] }: Node, result: Value): number | undefined {
  const isProduct = x?.role === "activation" && !isQ8(x.dtype) && matrix?.role === "weight" &&
    matrix.shape.length === 2 && rest.every((value) => !value || value.shape.length === 1);
  if (!isProduct) return undefined;
  const axes = [...x.shape.keys()].slice(0, -1).filter((axis) => !equal(x.shape[axis]!, 1));
  const [axis] = axes;
  const isSame = axis !== undefined && result.shape.length === x.shape.length &&
    equal(result.shape[axis]!, x.shape[axis]!);
  return axes.length === 1 && isSame ? axis : undefined;
}

function readsOf({ nodes }: Graph, value: Value): number {
  return nodes.filter(({ inputs }) => inputs.includes(value)).length;
}
