// The WebGPU kernel of attention over tensors with so many rows that a device is full with a query an invocation: those of
// large pictures. All see all keys; masks, causal rows and windows are the business of tiles (attention.ts).

import {
  attentionQueries,
  attentionQueriesBytes,
} from "../../../../gpu/kernels/attention/queries.ts";
import { ATTENTION_TUNING } from "../../../../gpu/kernels/attention/tuning.ts";
import { ceilDiv } from "../../../graph/dim/mod.ts";
import { attentionInputs } from "../../../ops/attention_inputs.ts";
import { layoutsOf } from "../../../ops/attention_rows.ts";
import type { Node } from "../../../graph/graph.ts";
import type { GpuKernel, GpuKernelContext } from "../kernel.ts";
import { isStatic } from "../../wasm/lower/lower.ts";
import { callOfTensors, shapeOfTensors, suitsTensors } from "./attention.ts";
import { outputSlice } from "./lower.ts";

/** Attention with a query an invocation. */
export const queryAttentionKernel: GpuKernel = {
  name: "gpu_attention_queries",
  when(context) {
    const { node: { attributes } } = context;
    if (attributes.q_heads === 0 || !suitsTensors(context.node) || !seesAllKeys(context.node)) {
      return false;
    }
    const { q: { batch, rows, heads } } = layoutsOf(context.node.inputs, attributes);
    return isStatic(batch) && isStatic(rows) &&
      batch * rows * heads >= ATTENTION_TUNING.manyQueries && fits(context);
  },
  lower(lowering) {
    const { node } = lowering, call = callOfTensors(lowering, "workgroup");
    const { q: { batch, rows } } = layoutsOf(node.inputs, node.attributes);
    const { rule, shape, storage, uniforms = {} } = call, { queryBlock, pairs } = ATTENTION_TUNING;
    const { width, valueWidth, heads } = shape, all = (batch as number) * (rows as number) * heads;
    const isPaired = width + valueWidth <= pairs.channels && all >= pairs.queries;
    const each = isPaired ? 2 : 1;
    const { scale } = node.attributes as Record<"scale", number>;
    lowering.emit({
      shader: attentionQueries({ ...shape, ...queryBlock, each, rule, scale }),
      storage: { ...storage, y: outputSlice(lowering) },
      uniforms,
      workgroups: [ceilDiv(rows, each * queryBlock.invocations), heads, batch],
    });
  },
};

/** Whether all rows of an attention see all keys, as they are. */
export function seesAllKeys({ inputs, attributes }: Node): boolean {
  const { mask, key_counts, sinks } = attentionInputs(inputs);
  return !mask && !key_counts && !sinks && !attributes.causal &&
    attributes.window === 0 && attributes.softcap === 0;
}

/** Whether an invocation has registers for a query and its sums, and a workgroup memory for keys and values. */
function fits({ node, capabilities: { maxWorkgroupBytes } }: GpuKernelContext): boolean {
  const { width, valueWidth } = shapeOfTensors(node);
  const { queryChannels, queryBlock: { block } } = ATTENTION_TUNING;
  return width % 4 === 0 && valueWidth % 4 === 0 && Math.max(width, valueWidth) <= queryChannels &&
    attentionQueriesBytes({ width, valueWidth, block }) <= maxWorkgroupBytes;
}
