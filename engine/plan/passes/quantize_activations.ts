// quantize_activations, for precision "fast": every matmul whose weight format has an integer kernel
// takes its input in 8 bit. The quantised input is a node of its own, so matmuls of one input share it
// after common_subexpressions.
//   matmul(x, W, b)           → matmul_q8(quantize_q8(x), W, b)
//   expert_matmul(x, W, e, b) → expert_matmul_q8(quantize_q8(x), W, e, b)
// A large matrix that the file holds as floats is rounded to 7 bit while it is loaded:
//   matmul(x, W, b)           → matmul_int7(quantize_q8(x), W, b)
// Not so: embeddings (and a head that is one, because a weight is in memory once), what chooses experts, and
// small matrices, which cost little and are often the sensitive ones.

import type { Node, Value } from "../../graph/graph.ts";
import { Q8_GROUP } from "../../../quant/q8_activation.ts";
import { type MatchContext, WHOLE } from "./match.ts";
import { definePass, type Pass, type PassContext } from "./pass.ts";

/** The form of an op on 8-bit activations; activations are input 0, weights input 1. */
const INTEGER_FORMS: ReadonlyMap<string, string> = new Map([
  ["matmul", "matmul_q8"],
  ["expert_matmul", "expert_matmul_q8"],
]);

/** Weights of a matrix that is worth rounding. */
const LARGE = 1 << 15;

/** Rewrites matmuls to 8-bit activations where the device can. */
export const quantizeActivations: Pass = definePass({
  name: "quantize_activations",
  // A product that `route` reads stays, whatever that does with it.
  reads: { matmul: [], expert_matmul: [], route: WHOLE },
  suits: ({ precision }) => precision === "fast",
  run(seen, context) {
    const isRounded = roundedMatmuls(seen, context);
    return seen.rewrite(({ node, inputs, op, copy }) => {
      const [x, ...rest] = inputs;
      const form = isRounded(node) ? "matmul_int7" : integerForm(node, context);
      if (!form || !x) return copy();
      const [quantized] = op("quantize_q8", [x], {}, `${x.name}.q8`);
      return op(form, [quantized, ...rest], {}, node.name);
    });
  },
});

function integerForm({ op, inputs: [, weight] }: Node, context: PassContext): string | undefined {
  const form = INTEGER_FORMS.get(op);
  if (!form || !weight?.tensor || !context.hasIntegerKernel(weight.tensor.format)) return undefined;
  // That a format has an integer kernel speaks of plain products.
  if (!fillsGroups(weight) || (op !== "matmul" && !context.hasKernel(form))) return undefined;
  return form;
}

function fillsGroups({ tensor }: Value): boolean {
  const columns = tensor!.shape.at(-1)!;
  return columns > 0 && columns % Q8_GROUP === 0;
}

/** Whether a node is a product with a weight that may be rounded. */
function roundedMatmuls(
  { readers }: MatchContext,
  context: PassContext,
): (node: Node) => boolean {
  const isProduct = ({ op, inputs, outputs }: Node, weight: Value) =>
    op === "matmul" && inputs[1] === weight && inputs[0] !== weight &&
    !readers.get(outputs[0]!)?.some((reader) => reader.op === "route");
  return ({ inputs: [, weight] }) => {
    if (!weight?.tensor || !context.roundsWeights?.(weight.tensor.format)) return false;
    const { shape } = weight.tensor;
    return shape.length === 2 && shape[0]! * shape[1]! >= LARGE && fillsGroups(weight) &&
      readers.get(weight)!.every((reader) => isProduct(reader, weight));
  };
}
