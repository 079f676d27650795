// rope_attention_q8: rope_attention and quantize_q8 in one, for heads of whole groups of 32 channels. Made by a pass
// (engine/plan/passes/fuse_attention_input.ts).

import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { attentionQ8 } from "./attention_q8.ts";
import { inferQ8, quantizeGroups } from "../q8_rows.ts";
import {
  attendToRotated,
  inferRopeAttention,
  ROPE_ATTENTION_ATTRIBUTES,
  ropeAttention,
} from "./rope_attention.ts";

/** As `rope_attention`, with q8[M, H·D] as first result. */
export const ropeAttentionQ8: OpRecord = defineOp({
  name: "rope_attention_q8",
  summary: "quantize_q8(rope_attention(qkv, …))",
  attributes: ROPE_ATTENTION_ATTRIBUTES,
  infer(inputs, attributes) {
    const [out, ...caches] = inferRopeAttention(inputs, attributes);
    return [inferQ8(out!), ...caches];
  },
  reference(call) {
    attendToRotated(call);
    const [out] = call.outputs;
    quantizeGroups(out!, out!);
  },
  inPlace: { 1: 2, 2: 3 },
  cases: (random) =>
    ropeAttention.cases!(random).filter(({ inputs: [, , keys] }) =>
      (keys!.shape[2] as number) % 32 === 0
    ),
  tolerance: attentionQ8.tolerance!,
});
