// attention_q8: attention and quantize_q8 in one, so that what heads give is never stored as floats. Made by a pass
// (engine/plan/passes/fuse_quantized.ts), for heads whose values are whole groups of 32.

import { integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { attention } from "./attention.ts";
import { inferQ8, quantizeGroups } from "../q8_rows.ts";

/** As `attention`, with q8[M, H·Dv] as result. */
export const attentionQ8: OpRecord = defineOp({
  name: "attention_q8",
  summary: "quantize_q8(attention(q, k, v, …))",
  attributes: { scale: number(), window: integer(0, 0), softcap: number(0) },
  infer: (inputs, attributes) => [inferQ8(attention.infer(inputs, attributes)[0]!)],
  reference(call) {
    attention.reference(call);
    const [out] = call.outputs;
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    attention.cases!(random).filter(({ inputs: [, , v] }) => (v!.shape[2] as number) % 32 === 0),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
});
