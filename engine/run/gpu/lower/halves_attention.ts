// The WebGPU kernel of attention over tensors on subgroup matrices, where numbers may be rounded to float16 and all rows see all
// keys: keys and values become halves in scratch memory first.

import {
  attentionHalves,
  attentionHalvesBytes,
  type AttentionHalvesParams,
  halvesQueries,
} from "../../../../gpu/kernels/attention/halves.ts";
import { headHalves, headHalvesSizes } from "../../../../gpu/kernels/attention/head_halves.ts";
import { ATTENTION_TUNING } from "../../../../gpu/kernels/attention/tuning.ts";
import { layoutsOf } from "../../../ops/attention_rows.ts";
import type { GpuKernel, GpuKernelContext } from "../kernel.ts";
import { isStatic } from "../../wasm/lower/lower.ts";
import { callOfTensors, shapeOfTensors, suitsTensors } from "./attention.ts";
import { hasScratch, outputSlice } from "./lower.ts";
import { seesAllKeys } from "./query_attention.ts";

interface HalvesAttention {
  readonly batch: number;
  readonly rows: number;
  readonly keys: number;
  readonly sizes: Pick<AttentionHalvesParams, "subgroups" | "units" | "subgroupSize">;
}

function halvesAttention({ node, capabilities }: GpuKernelContext): HalvesAttention | undefined {
  const { inputs, attributes } = node, { halves } = ATTENTION_TUNING;
  const { subgroupMatrix, roundsToHalves, subgroupSize, maxWorkgroupBytes } = capabilities;
  if (!subgroupMatrix || !roundsToHalves || attributes.q_heads === 0) return undefined;
  if (!suitsTensors(node) || !seesAllKeys(node)) return undefined;
  const { q: { batch, rows }, k: { rows: keys } } = layoutsOf(inputs, attributes);
  if (!isStatic(batch) || !isStatic(rows) || !isStatic(keys) || keys === 0) return undefined;
  const shape = shapeOfTensors(node), { width, valueWidth, heads, kvHeads } = shape;
  const isWide = width + valueWidth > halves.pairChannels;
  const units = isWide ? 1 : 2, queries = batch * rows * heads;
  if (width % 4 !== 0 || valueWidth % 4 !== 0 || queries < halves.queries) return undefined;
  if (Math.max(width, valueWidth) > halves.channels || ![16, 32].includes(subgroupSize / units)) {
    return undefined;
  }
  const fitting = halves.subgroups.filter((subgroups) =>
    attentionHalvesBytes({ width, valueWidth, subgroups, units }) <= maxWorkgroupBytes &&
    subgroups * subgroupSize <= capabilities.maxWorkgroupSize
  );
  const fills = (subgroups: number) =>
    queries >= halves.enough * halvesQueries({ subgroups, units });
  const subgroups = fitting.find(fills) ?? fitting.at(-1);
  const { k, v } = headHalvesSizes(shape, keys);
  const isRoom = hasScratch(capabilities, [2 * batch * kvHeads * k, 2 * batch * kvHeads * v]);
  if (subgroups === undefined || !isRoom) return undefined;
  return { batch, rows, keys, sizes: { subgroups, units, subgroupSize } };
}

/** Attention by halves. */
export const halvesAttentionKernel: GpuKernel = {
  name: "gpu_attention_halves",
  when: (context) => halvesAttention(context) !== undefined,
  lower(lowering) {
    const { batch, rows, keys, sizes } = halvesAttention(lowering)!, { emit, scratch } = lowering;
    const { rule, shape, storage, uniforms = {} } = callOfTensors(lowering, "subgroup");
    const { heads, kvHeads } = shape, stacks = batch * kvHeads;
    const { blocks, k, v, vTops } = headHalvesSizes(shape, keys);
    const halves = {
      ...{ k_halves: scratch(2 * stacks * k), v_halves: scratch(2 * stacks * v) },
      ...{ k_tops: scratch(4 * stacks * blocks), v_tops: scratch(4 * stacks * vTops) },
    };
    const { q, ...others } = storage, { memory } = shape;
    emit({
      shader: headHalves({ ...shape, rule }),
      storage: { ...(memory?.k === "q" || memory?.v === "q") && { q: q! }, ...others, ...halves },
      uniforms: { ...uniforms, blocks },
      workgroups: [blocks + vTops, kvHeads, batch],
    });
    const { scale } = lowering.node.attributes as Record<"scale", number>;
    emit({
      shader: attentionHalves({ ...shape, ...sizes, rule, scale }),
      storage: { q: q!, ...halves, y: outputSlice(lowering) },
      uniforms: { ...uniforms, blocks },
      workgroups: [Math.ceil(rows / halvesQueries(sizes)), heads, batch],
    });
  },
};
