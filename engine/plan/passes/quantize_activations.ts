// quantize_activations, for precision "fast": every matmul whose weight format has an integer kernel
// takes its input in 8 bit. The quantised input is a node of its own, so matmuls of one input share it
// after common_subexpressions.
//   matmul(x, W, b)           → matmul_q8(quantize_q8(x), W, b)
//   expert_matmul(x, W, e, b) → expert_matmul_q8(quantize_q8(x), W, e, b)

import type { Value } from "../../graph/graph.ts";
import { Q8_GROUP } from "../../../quant/q8_activation.ts";
import type { Pass, PassContext } from "./pass.ts";
import { rewrite } from "./rewrite.ts";

/** The form of an op on 8-bit activations; activations are input 0, weights input 1. */
const INTEGER_FORMS: ReadonlyMap<string, string> = new Map([
  ["matmul", "matmul_q8"],
  ["expert_matmul", "expert_matmul_q8"],
]);

/** Rewrites matmuls to 8-bit activations where the device can. */
export const quantizeActivations: Pass = {
  name: "quantize_activations",
  run(graph, context) {
    if (context.precision === "exact") return graph;
    return rewrite(graph, ({ node, inputs, op, copy }) => {
      const [x, ...rest] = inputs;
      const form = INTEGER_FORMS.get(node.op);
      if (!form || !x || !takesIntegers(rest[0], context)) return copy();
      // That a format has an integer kernel speaks of plain products.
      if (node.op !== "matmul" && !context.hasKernel(form)) return copy();
      const [quantized] = op("quantize_q8", [x], {}, `${x.name}.q8`);
      return op(form, [quantized, ...rest], {}, node.name);
    });
  },
};

function takesIntegers(weight: Value | undefined, context: PassContext): boolean {
  if (!weight?.tensor || !context.hasIntegerKernel(weight.tensor.format)) return false;
  const columns = weight.tensor.shape.at(-1)!;
  return columns > 0 && columns % Q8_GROUP === 0;
}
