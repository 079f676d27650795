// The WebGPU kernel of rope_append, which rope_attention takes too where rows are many.

import type { GpuSlice } from "../../../../gpu/kernel.ts";
import { ropeAppendShader } from "../../../../gpu/kernels/rope_append.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { type Dim, mul } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { outputSlice } from "./lower.ts";
import { isStatic } from "../../wasm/lower/lower.ts";

/**
 * Emits the dispatch.
 *
 * @param node A rope_append, or a node with the same inputs.
 * @param queries Where the rotated queries go.
 * @param rows Rows that take part: 0 or all of them.
 */
export function emitRopeAppend(
  lowering: GpuLowering,
  node: Pick<Node, "inputs" | "attributes">,
  { queries, rows }: { readonly queries: GpuSlice; readonly rows: Dim },
): void {
  const { emit, slice, state } = lowering;
  const [qkv, table, keys, values, positions, slots, queryNorm, keyNorm, k, v] = node.inputs;
  const [capacity, groups, width] = keys!.shape as [number, number, number];
  const heads = queryHeads(node);
  const items = mul(rows, heads + 2 * groups);
  const hasNorms = queryNorm !== undefined || keyNorm !== undefined;
  emit({
    shader: ropeAppendShader({
      width,
      interleaved: node.attributes.style === "interleaved",
      f16: keys!.dtype === "f16",
      hasQueryNorm: queryNorm !== undefined,
      hasKeyNorm: keyNorm !== undefined,
      isApart: k !== undefined,
    }),
    storage: {
      qkv: slice(qkv!),
      table: slice(table!),
      keys: state(keys!),
      values: state(values!),
      positions: slice(positions!),
      slots: slice(slots!),
      ...queryNorm && { query_norm: slice(queryNorm) },
      ...keyNorm && { key_norm: slice(keyNorm) },
      ...k && { k: slice(k) },
      ...v && { v: slice(v) },
      y: queries,
    },
    uniforms: {
      ...{ items, heads, groups, pairs: (table!.shape[1] as number) / 2, capacity },
      ...hasNorms && {
        epsilon: node.attributes.epsilon as number,
        base: node.attributes.base as number,
      },
    },
    workgroups: [items],
  });
}

/** Query heads of a row. */
export function queryHeads({ inputs: [qkv, , keys, , , , , , k] }: Pick<Node, "inputs">): number {
  const [, groups, width] = keys!.shape as [number, number, number];
  return (qkv!.shape[1] as number) / width - (k ? 0 : 2 * groups);
}

/** Whether the kernel can run a node with these inputs. */
export function canRopeAppend({ inputs: [, table, keys] }: Pick<Node, "inputs">): boolean {
  return keys!.shape.every(isStatic) && (keys!.shape[2] as number) % 2 === 0 &&
    isStatic(table!.shape[1]) && table!.shape[1] % 2 === 0;
}

/** Kernels of `rope_append`. */
export const gpuRopeAppendKernels: readonly GpuKernel[] = [{
  name: "gpu_rope_append",
  when: ({ node }) => canRopeAppend(node),
  lower: (lowering) =>
    emitRopeAppend(lowering, lowering.node, {
      queries: outputSlice(lowering),
      rows: lowering.node.outputs[0]!.shape[0]!,
    }),
}];
