// A rough count of what a step computes, for the one question whether threads are worth waking for it. It
// counts elements that are read and written, and multiplications of products; what it does not know it
// takes for a product with the whole of its weights, so it errs towards threads.

import { product } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";

/** Operations of a step at the plan's limits. */
export function workOf({ steps, limits }: Plan): number {
  const elements = ({ shape }: Value) => maximumOf(product(shape), limits);
  return steps.reduce((sum, { node }) => sum + workOfNode(node, elements), 0);
}

function workOfNode({ op, inputs, outputs }: Node, elements: (value: Value) => number): number {
  const made = outputs.reduce((sum, value) => sum + elements(value), 0);
  return inputs.reduce((sum, value, i) => {
    if (!value) return sum;
    const size = elements(value), first = value.shape[0];
    const isWeight = value.tensor !== undefined || value.data !== undefined;
    if (!isWeight || value.shape.length < 2) {
      // The second operand of a product of two activations.
      return sum + (op.startsWith("matmul") && i === 1 ? made * size : size);
    }
    // Each step of a sequence reads all of them once.
    if (op === "recurrent") {
      return sum + elements(inputs[0]!) / (inputs[0]!.shape.at(-1) as number) * size;
    }
    return sum + made * size / (typeof first === "number" ? Math.max(1, first) : 1);
  }, made);
}
