// strict_products, for precision "strict": every matmul with LF8 weights takes its input in LF8 too, and adds up as
// LlamaF's algorithm 1 does (quant/lf8_products.ts); all else stays exact.
//   matmul(x, W, b) → matmul(quantize(x) as lf8, bytes of W, b)
// The weight is read as the bytes of the file. A table that is the head too is then in memory twice. A device without such
// products is refused, but where no weight is in LF8 and it has been told to compute row by row.

import type { TensorInfo } from "../../formats/source.ts";
import { LF8_GROUP, lf8RowBytes } from "../../../quant/lf8_products.ts";
import type { Node } from "../../graph/graph.ts";
import { definePass, draftOf, draftValue, type Pass } from "./pass.ts";

/** The bytes of a row or a weight of one group. */
const LF8_ROW = draftValue({ dtype: "u8", shape: [1, lf8RowBytes(LF8_GROUP)] });

/**
 * Rewrites products with LF8 weights.
 *
 * Its `run` throws a RangeError if there are none, or if the device has no kernel for them: the caller asked for
 * what it cannot have.
 */
export const strictProducts: Pass = definePass({
  name: "strict_products",
  reads: { matmul: [] },
  suits: ({ precision }) => precision === "strict",
  run({ nodes, rewrite }, { takes, goesRowByRow }) {
    if (!takes(draftOf("matmul", { inputs: [LF8_ROW, LF8_ROW] }))) {
      if (goesRowByRow && !nodes.some(isLf8Product)) return undefined;
      throw new RangeError(
        'Cannot use precision "strict" on this device: take device wasm or reference',
      );
    }
    if (!nodes.some(isLf8Product)) {
      throw new RangeError(
        'Cannot use precision "strict": the model has no matrix in LF8; quantize it with --format lf8, or take ' +
          'precision "exact"',
      );
    }
    const bytes = new Map<TensorInfo, TensorInfo>();
    return rewrite(({ node, inputs: [x, weight, ...rest], op, weight: addWeight, copy }) => {
      if (!isLf8Product(node)) return copy();
      const tensor = weight!.tensor!;
      const plain = bytes.get(tensor) ?? asBytes(tensor);
      bytes.set(tensor, plain);
      const [quantized] = op("quantize", [x], { format: "lf8" }, `${x!.name}.lf8`);
      const stored = addWeight(`${weight!.name}.bytes`, plain, "u8");
      return op("matmul", [quantized, stored, ...rest], {}, node.name);
    });
  },
});

function isLf8Product({ op, inputs: [, weight] }: Node): boolean {
  return op === "matmul" && weight?.tensor?.format === "LF8" && weight.dtype === "f32";
}

function asBytes(tensor: TensorInfo): TensorInfo {
  const [rows, columns] = tensor.shape as [number, number];
  return { ...tensor, shape: [rows, lf8RowBytes(columns)] };
}
