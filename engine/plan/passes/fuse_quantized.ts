// fuse_quantized: an op whose only reader quantises its result writes the quantised form itself, where
// the device has a kernel for that. A table: one row a fused op. What is left of the unfused op has no
// reader any more and goes with dead_code.

import { Q8_GROUP } from "../../../quant/q8_activation.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { WHOLE } from "./match.ts";
import { definePass, type Pass } from "./pass.ts";

/** Fused op by the op that is fused with the quantisation of its result. */
export const quantizedForms: ReadonlyMap<string, string> = new Map([
  ["rms_norm", "rms_norm_q8"], // quantize_q8(rms_norm(x, w)) → rms_norm_q8(x, w)
  ["glu", "glu_q8"], //           quantize_q8(glu(g, u))      → glu_q8(g, u)
  ["activation", "activation_q8"], // quantize_q8(activation(x)) → activation_q8(x)
  ["attention", "attention_q8"], // the same for attention, where no group is of two heads
]);

/** Fuses `quantize_q8` into the op before it. */
export const fuseQuantized: Pass = definePass({
  name: "fuse_quantized",
  reads: {
    ...Object.fromEntries([...quantizedForms.keys()].map((op) => [op, WHOLE] as const)),
    quantize_q8: [],
  },
  run({ made, readers, outputs, rewrite }, { hasKernel }) {
    const movedInputs = new Map<Node, readonly (Value | undefined)[]>();
    return rewrite(({ node, inputs, op, copy }) => {
      movedInputs.set(node, inputs);
      const value = node.op === "quantize_q8" ? node.inputs[0] : undefined;
      const producer = value && made.get(value);
      const fused = producer && quantizedForms.get(producer.op);
      const alone = value && readers.get(value)!.length === 1 && !outputs.has(value);
      if (!fused || !alone || !hasKernel(fused) || !hasWholeGroups(producer)) return copy();
      return op(fused, movedInputs.get(producer)!, producer.attributes, producer.name);
    });
  },
});

/** Whether no group is of two heads. */
function hasWholeGroups({ op, inputs: [, , values] }: Node): boolean {
  return op !== "attention" || (values!.shape[2] as number) % Q8_GROUP === 0;
}
