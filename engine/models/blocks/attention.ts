// Attention over a cache: project, norm heads where the family does, rotate, append keys and values, and
// attend. Grouped-query, windows, soft caps and both rotary styles are attributes of the ops, so every
// family passes through these lines. Shapes: M rows of the step, H query heads, G key/value heads, D
// channels of a head.

import type { Value } from "../../graph/graph.ts";
import { apply, type BlockContext, linear, norm } from "./context.ts";

/** Which layer this is and how it sees. */
export interface AttentionOptions {
  readonly layer: number;
  /** A key of the spec's `attention.kinds`. */
  readonly kind: string;
}

/** f32[M, hidden] → f32[M, hidden]. */
export function attention(
  context: BlockContext,
  x: Value,
  { layer, kind }: AttentionOptions,
): Value {
  const { builder, spec, params, inputs, capacity, cacheType } = context;
  const { heads, kvHeads, headDim, hidden } = params;
  const path = `layers.${layer}.attention`;
  const { positions, slots } = inputs;

  function project(role: "query" | "key" | "value", count: number): Value {
    const rows = count * headDim;
    const name = `${path}.${role}`;
    const flat = linear(context, x, {
      role,
      name,
      rows,
      columns: hidden,
      layer,
      bias: spec.attention.bias,
    });
    return apply(builder, "reshape", `${name}.heads`, [flat], {
      shape: ["M", `${count}`, `${headDim}`],
    });
  }

  function place(role: "query" | "key", count: number): Value {
    const projected = project(role, count); // f32[M, count, D]
    const normed = spec.attention.headNorm
      ? norm(context, projected, {
        role: `${role}_norm`,
        name: `${path}.${role}_norm`,
        size: headDim,
        layer,
      })
      : projected;
    return apply(builder, "rope", `${path}.${role}_rope`, [normed, context.ropeTable(kind)], {
      style: spec.attention.ropeStyle,
    });
  }

  function remember(role: "keys" | "values", rows: Value): Value {
    const cache = builder.state(`${path}.${role}`, [capacity, kvHeads, headDim], cacheType);
    return apply(builder, "kv_append", `${path}.append_${role}`, [cache, rows, positions, slots]);
  }

  const query = place("query", heads); // f32[M, H, D]
  const keys = remember("keys", place("key", kvHeads));
  const values = remember("values", project("value", kvHeads));
  const mixed = apply(builder, "attention", path, [query, keys, values, positions, slots], {
    scale: scoreScale(context),
    window: windowOf(context, kind),
    softcap: params.scoreCap ?? 0,
  }); // f32[M, H * D]
  return linear(context, mixed, {
    role: "attention_output",
    name: `${path}.output`,
    rows: hidden,
    columns: heads * headDim,
    layer,
    bias: spec.attention.outputBias,
  });
}

function scoreScale({ params }: BlockContext): number {
  return params.attentionScale ?? (params.queryScalar ?? params.headDim) ** -0.5;
}

function windowOf({ spec, params }: BlockContext, kind: string): number {
  const name = spec.attention.kinds[kind]!.window;
  const value = name === undefined ? 0 : (params as unknown as Record<string, unknown>)[name];
  return typeof value === "number" ? value : 0;
}
