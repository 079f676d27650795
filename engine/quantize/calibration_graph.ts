// The graph of a model with Gram matrices: behind every value that a matrix of the model is multiplied by, the
// product of it, transposed, with itself becomes an output. Nothing else of the graph is touched, and what comes
// after the last of those values is cut off.

import type { TensorInfo } from "../formats/source.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { getOp } from "../ops/mod.ts";

/** Equal for the same bytes of a file. */
export const tensorKey = ({ source, offset, byteLength }: TensorInfo): string =>
  `${source.name}:${offset}:${byteLength}`;

/** By tensor: the values that it is multiplied by. Tensors that anything else reads are not among them. */
export function inputsOfMatrices({ nodes }: Graph): Map<string, Value[]> {
  const found = new Map<string, Value[]>();
  const others = new Set<string>();
  for (const { op, inputs } of nodes) {
    inputs.forEach((value, i) => {
      if (!value?.tensor) return;
      const key = tensorKey(value.tensor);
      const x = inputs[0];
      const isProduct = op === "matmul" && i === 1 && x?.role === "activation" &&
        x.dtype === "f32" && x.shape.length === 2 && typeof x.shape[1] === "number";
      if (!isProduct) others.add(key);
      else found.set(key, [...new Set([...found.get(key) ?? [], x])]);
    });
  }
  for (const key of others) found.delete(key);
  return found;
}

/** Columns of such a value. */
export const columnsOf = ({ shape }: Value): number => shape[1] as number;

/** Name of the output with the Gram matrix of the value of that index. */
export const gramName = (index: number): string => `gram.${index}`;

/** The graph up to the last of the values, with their Gram matrices for outputs. */
export function withGrams(graph: Graph, values: readonly Value[]): Graph {
  const op = getOp("matmul_nd");
  const attributes = op.attributes({ transpose_a: true });
  const last = graph.nodes.findLastIndex(({ outputs }) =>
    outputs.some((value) => values.includes(value))
  );
  const made = graph.nodes.flatMap(({ outputs }) => outputs);
  const firstId = 1 + Math.max(
    ...[...graph.inputs, ...graph.states, ...made].map(({ id }) => id),
    ...graph.nodes.flatMap(({ inputs }) => inputs.map((value) => value?.id ?? 0)),
  );
  const nodes = values.map((value, i): Node => ({
    id: graph.nodes.length + i,
    op: op.name,
    name: gramName(i),
    inputs: [value, value],
    outputs: [{
      ...{ id: firstId + i, name: gramName(i), role: "activation", dtype: "f32" },
      shape: [columnsOf(value), columnsOf(value)],
    }],
    attributes,
  }));
  return Object.freeze({
    ...graph,
    nodes: [...graph.nodes.slice(0, last + 1), ...nodes],
    outputs: nodes.flatMap(({ outputs }) => outputs),
  });
}
