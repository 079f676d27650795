// Tensors that were quantised without their outliers: behind every product with such a tensor, what they add
// to it. The products themselves stay as they are, and so do their kernels. A tensor that the model reads in
// any other way (looked up, in parts, turned, stacked) is refused: it would lack its largest weights.

import { UnsupportedError } from "../errors.ts";
import { readOutliers } from "../formats/outliers.ts";
import type { TensorInfo, WeightFile } from "../formats/source.ts";
import type { Graph, Node } from "../graph/graph.ts";
import { rewrite } from "../plan/passes/rewrite.ts";

/**
 * The graph with the outliers of the file's tensors; the same graph where there are none.
 *
 * @throws {UnsupportedError} If a tensor with outliers is no matrix of a product.
 * @throws {FormatError} If outliers are broken.
 */
export async function withOutliers(graph: Graph, file: WeightFile): Promise<Graph> {
  const wanting = new Map(
    [...file.tensors.values()].filter(({ outliers }) => outliers).map((tensor) => [
      keyOf(tensor),
      tensor,
    ]),
  );
  if (wanting.size === 0) return graph;
  const sparse = new Map<string, NonNullable<Awaited<ReturnType<typeof readOutliers>>>>();
  for (const node of graph.nodes) {
    for (const [i, value] of node.inputs.entries()) {
      const key = value?.tensor && keyOf(value.tensor);
      const tensor = key === undefined ? undefined : wanting.get(key);
      if (!tensor) continue;
      if (node.op !== "matmul" || i !== 1) throw refuse(file, tensor, `it is read by ${node.op}`);
      sparse.set(key!, (await readOutliers(tensor))!);
    }
  }
  const missed = [...wanting].find(([key]) => !sparse.has(key));
  if (missed) throw refuse(file, missed[1], "it is not read whole by any product");

  const entriesOf = ({ op, inputs }: Node) => {
    const tensor = op === "matmul" ? inputs[1]?.tensor : undefined;
    return tensor && sparse.get(keyOf(tensor));
  };
  return rewrite(graph, ({ node, inputs, op, constant, copy }) => {
    const entries = entriesOf(node);
    if (!entries) return copy();
    const [x, matrix, bias] = inputs;
    const label = `${node.name}.outliers`;
    const product = op("matmul", bias ? [x, matrix, bias] : [x, matrix], {}, `${node.name}.dense`);
    const lists = (["starts", "columns", "values"] as const)
      .map((part) => constant(`${label}.${part}`, entries[part]));
    return op("sparse_add", [product[0], x, ...lists], {}, node.name);
  });
}

// Views of a tensor (parts, turned ones) differ from it in place, length or shape.
function keyOf({ source, offset, byteLength, shape }: TensorInfo): string {
  return [source.name, offset, byteLength, shape.join("×")].join("\n");
}

function refuse(file: WeightFile, { name }: TensorInfo, reason: string): UnsupportedError {
  return new UnsupportedError(`its outliers cannot be added: ${reason}`, {
    file: file.name,
    place: `tensor ${JSON.stringify(name)}`,
    remedy: "Quantise the model again with a policy that takes no outliers from this tensor",
  });
}
