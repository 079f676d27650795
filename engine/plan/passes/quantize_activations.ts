// quantize_activations, for precision "fast": every matmul whose weight format has an integer kernel
// takes its input in 8 bit. The quantised input is a node of its own, so matmuls of one input share it
// after common_subexpressions.
//   matmul(x, W, b) → matmul_q8(quantize_q8(x), W, b)

import type { Value } from "../../graph/graph.ts";
import { Q8_GROUP } from "../../../quant/q8_activation.ts";
import type { Pass, PassContext } from "./pass.ts";
import { rewrite } from "./rewrite.ts";

/** Rewrites matmuls to 8-bit activations where the device can. */
export const quantizeActivations: Pass = {
  name: "quantize_activations",
  run(graph, context) {
    if (context.precision === "exact") return graph;
    return rewrite(graph, ({ node, inputs, op, copy }) => {
      const [x, ...rest] = inputs;
      if (node.op !== "matmul" || !x || !takesIntegers(rest[0], context)) return copy();
      const [quantized] = op("quantize_q8", [x], {}, `${x.name}.q8`);
      return op("matmul_q8", [quantized, ...rest], {}, node.name);
    });
  },
};

function takesIntegers(weight: Value | undefined, context: PassContext): boolean {
  if (!weight?.tensor || !context.hasIntegerKernel(weight.tensor.format)) return false;
  const columns = weight.tensor.shape.at(-1)!;
  return columns > 0 && columns % Q8_GROUP === 0;
}
