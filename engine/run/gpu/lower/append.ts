// The WebGPU kernels of rows on their way into caches: kv_append, and the heads of a joined product, which attention
// stores where rows are many.

import type { GpuSlice } from "../../../../gpu/kernel.ts";
import type { ChannelType } from "../../../../gpu/kernels/channel_reader.ts";
import { itemOf, KV_APPEND_ITEMS, kvAppend } from "../../../../gpu/kernels/kv_append.ts";
import {
  ropeAppendHeads,
  ropeAppendPart,
  type RopeAppendRule,
  ropeAppendShader,
} from "../../../../gpu/kernels/rope_append.ts";
import {
  ROPE_QUADS_CHANNELS,
  ropeQuadsShader,
  takesRopeQuads,
} from "../../../../gpu/kernels/rope_quads.ts";
import type { GpuKernel, GpuLowering } from "../kernel.ts";
import { ceilDiv, type Dim, exactDiv, mul, product } from "../../../graph/dim/mod.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { attentionInputs } from "../../../ops/attention_inputs.ts";
import { isStatic } from "../../wasm/lower/lower.ts";

/** kv_append. */
export const gpuKvAppend: GpuKernel = {
  name: "gpu_kv_append",
  when: ({ node: { inputs: [cache] } }) =>
    cache!.shape.every(isStatic) && rowWidth(cache!) % 2 === 0,
  lower({ node: { inputs: [cache, x, positions, slots] }, slice, state, emit, pages }) {
    const dtype = cache!.dtype as ChannelType;
    const items = exactDiv(product(x!.shape), itemOf(dtype))!;
    emit({
      shader: kvAppend({ dtype, width: rowWidth(cache!), pages: pages! }),
      storage: {
        x: slice(x!),
        cache: state(cache!),
        positions: slice(positions!),
        slots: slice(slots!),
      },
      uniforms: { items },
      workgroups: [ceilDiv(items, KV_APPEND_ITEMS)],
    });
  },
};

function rowWidth({ shape: [, heads, width] }: Value): number {
  return (heads as number) * (width as number);
}

/**
 * Emits what norms, rotates and stores the heads of an attention of a `style`: a dispatch, or three where a device has too few
 * bindings for all of it.
 *
 * @param queries Where the rotated queries go.
 * @param rows Rows that take part: 0 or all of them.
 */
export function emitRopeAppend(
  lowering: GpuLowering,
  { queries, rows }: { readonly queries: GpuSlice; readonly rows: Dim },
): void {
  const { emit, node, slice, state, capabilities } = lowering;
  const given = attentionInputs(node.inputs);
  const { q, table, k, v, positions, slots, query_norm, key_norm, new_k, new_v } = given;
  const [, groups, width] = k!.shape as [number, number, number];
  const heads = queryHeads(node);
  const rule: RopeAppendRule = {
    width,
    interleaved: node.attributes.style === "interleaved",
    dtype: k!.dtype as ChannelType,
    pages: lowering.pages!,
    hasQueryNorm: query_norm !== undefined,
    hasKeyNorm: key_norm !== undefined,
    isApart: new_k !== undefined,
  };
  const pairs = (table!.shape[1] as number) / 2;
  const storage: Readonly<Record<string, GpuSlice>> = {
    qkv: slice(q!),
    table: slice(table!),
    keys: state(k!),
    values: state(v!),
    positions: slice(positions!),
    slots: slice(slots!),
    ...query_norm && { query_norm: slice(query_norm) },
    ...key_norm && { key_norm: slice(key_norm) },
    ...new_k && { k: slice(new_k) },
    ...new_v && { v: slice(new_v) },
    y: queries,
  };

  function emitHeads(rule: RopeAppendRule, count: number): void {
    const areQuads = takesRopeQuads(rule, pairs), items = mul(rows, count);
    const shader = areQuads ? ropeQuadsShader(rule) : ropeAppendShader(rule);
    const of = (name: string) => [name, storage[name]!] as const;
    emit({
      shader,
      storage: Object.fromEntries(Object.keys(shader.storage).map(of)),
      uniforms: {
        ...{ items, heads, groups },
        ...!areQuads && { pairs },
        ...(rule.hasQueryNorm || rule.hasKeyNorm) && {
          epsilon: node.attributes.epsilon as number,
          base: node.attributes.base as number,
        },
      },
      workgroups: [
        areQuads
          ? ceilDiv(mul(items, width), ROPE_QUADS_CHANNELS)
          : ceilDiv(items, ropeAppendHeads(rule)),
      ],
    });
  }

  if (Object.keys(storage).length <= capabilities.maxStorageBindings) {
    return emitHeads(rule, heads + 2 * groups);
  }
  for (const part of ["queries", "keys", "values"] as const) {
    emitHeads(ropeAppendPart(rule, part), part === "queries" ? heads : groups);
  }
}

/** Query heads of a row of such an attention. */
export function queryHeads({ inputs }: Node): number {
  const { q, k, new_k } = attentionInputs(inputs);
  const [, groups, width] = k!.shape as [number, number, number];
  return (q!.shape[1] as number) / width - (new_k ? 0 : 2 * groups);
}

/** Whether the kernel can run such an attention. */
export function canRopeAppend({ inputs }: Node): boolean {
  const { k, table } = attentionInputs(inputs);
  return k!.shape.every(isStatic) && (k!.shape[2] as number) % 2 === 0 &&
    isStatic(table!.shape[1]) && table!.shape[1] % 2 === 0;
}
