// WebGPU kernels of ops that only some models have: choice of experts, attention to spans.

import { MOST_EXPERTS, ROUTE_BLOCK, routeShader } from "../../../../gpu/kernels/route.ts";
import {
  MOST_CHANNELS,
  spanAttentionShader,
} from "../../../../gpu/kernels/attention/span_attention.ts";
import type { GpuKernel } from "../kernel.ts";
import { type Dim, mul } from "../../../graph/dim/mod.ts";
import { groupsFor, inputSlice, optionalSlice, outputSlice } from "./lower.ts";
import { isStatic } from "../../wasm/lower/lower.ts";

/** Kernels of `route`. */
export const gpuRouteKernels: readonly GpuKernel[] = [{
  name: "gpu_route_f32",
  when: ({ node: { inputs: [logits] } }) =>
    isStatic(logits!.shape[1]) && logits!.shape[1] <= MOST_EXPERTS,
  lower(lowering) {
    const { inputs: [logits, correction], outputs: [chosen, weights], attributes } = lowering.node;
    const rows = logits!.shape[0]!;
    lowering.emit({
      shader: routeShader({
        experts: logits!.shape[1] as number,
        groups: attributes.groups as number,
        softmax: attributes.score === "softmax",
        bestTwo: attributes.groupScore === "best_two",
        normalize: attributes.normalize as boolean,
        hasCorrection: correction !== undefined,
      }),
      storage: {
        logits: inputSlice(lowering, 0),
        ...optionalSlice(lowering, "correction", 1),
        chosen: lowering.slice(chosen!),
        weights: lowering.slice(weights!),
      },
      uniforms: {
        rows,
        count: attributes.count as number,
        group_count: attributes.groupCount as number,
        scale: attributes.scale as number,
      },
      workgroups: groupsFor(rows, ROUTE_BLOCK),
    });
  },
}];

/** Kernels of `span_attention`. */
export const gpuSpanAttentionKernels: readonly GpuKernel[] = [{
  name: "gpu_span_attention",
  when: ({ node: { inputs: [q, k, v] } }) =>
    [...q!.shape.slice(1), ...k!.shape.slice(1), ...v!.shape.slice(1)].every(isStatic) &&
    k !== v && k!.dtype === v!.dtype && k!.dtype !== "q8_0" &&
    Math.max(k!.shape[2] as number, v!.shape[2] as number) <= MOST_CHANNELS,
  lower(lowering) {
    const { inputs: [q, k, v, starts, ends, positions, slots, bias], attributes } = lowering.node;
    const [rows, heads, width] = q!.shape as [Dim, number, number];
    const [slotRows, kvHeads] = k!.shape as [Dim, number];
    const memory = slots ? lowering.state : lowering.slice;
    lowering.emit({
      shader: spanAttentionShader({
        width,
        valueWidth: v!.shape[2] as number,
        f16: k!.dtype === "f16",
        hasStarts: starts !== undefined,
        hasEnds: ends !== undefined,
        hasPositions: positions !== undefined,
        hasSlots: slots !== undefined,
        hasBias: bias !== undefined,
      }),
      storage: {
        q: inputSlice(lowering, 0),
        k: memory(k!),
        v: memory(v!),
        ...optionalSlice(lowering, "starts", 3),
        ...optionalSlice(lowering, "ends", 4),
        ...optionalSlice(lowering, "positions", 5),
        ...optionalSlice(lowering, "slots", 6),
        ...optionalSlice(lowering, "bias", 7),
        y: outputSlice(lowering),
      },
      uniforms: {
        rows,
        heads,
        kv_heads: kvHeads,
        slot_rows: slotRows,
        reach: bias ? ((bias.shape[1] as number) - 1) / 2 : 0,
        scale: attributes.scale as number,
      },
      workgroups: [mul(rows, heads)],
    });
  },
}];
