// Attention of a decoder to its source. Keys and values of the encoder's output are made once, by
// `rememberSource`, and lie in a session's cache while the decoder writes.

import { formatDim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import { attentionList } from "../../ops/attention_inputs.ts";
import { checkHead, projectionBias } from "./attention.ts";
import { type BlockContext, linear } from "./context.ts";

/** Names of a layer's queries f32[M, H, D] and keys f32[E, G, D], for who observes them. */
export function crossOutputs(layer: number): { readonly query: string; readonly key: string } {
  const path = `layers.${layer}.cross`;
  return { query: `${path}.query`, key: `${path}.key` };
}

/** f32[M, hidden] → f32[M, hidden]. */
export function crossAttention(
  context: BlockContext,
  x: Value,
  { layer }: { layer: number },
): Value {
  const { builder, params, spec, source, inputs } = context;
  const { heads, headDim, valueDim, hidden } = params;
  const { bias, outputBias } = spec.attention;
  const { keys, values } = source!.caches[layer]!;
  const path = `layers.${layer}.cross`;
  const flat = linear(context, x, {
    ...{ role: "cross_query", name: `${path}.query`, rows: heads * headDim, columns: hidden },
    ...{ layer, bias },
  });
  const shape = [formatDim(inputs.tokens.shape[0]!), `${heads}`, `${headDim}`];
  const query = builder.op("reshape", [flat], { shape }, `${path}.query.heads`)[0]!;
  context.observe(`${path}.query`, query);
  const scale = params.attentionScale ?? headDim ** -0.5;
  const { ends, slots } = source!;
  const seen = attentionList({ q: query, k: keys, v: values, ends, slots });
  const mixed = builder.op("attention", seen, { scale }, path)[0]!;
  return linear(context, mixed, {
    ...{ role: "cross_output", name: `${path}.output`, rows: hidden, columns: heads * valueDim },
    ...{ layer, bias: outputBias },
  });
}

/**
 * Keeps keys and values of an encoder's output for a layer of the decoder.
 *
 * @param context The decoder's, but for `inputs`, which are the encoder's.
 * @param output f32[E, hidden].
 */
export function rememberSource(
  context: BlockContext,
  { output, layer }: { readonly output: Value; readonly layer: number },
): { readonly keys: Value; readonly values: Value } {
  const { builder, params, spec, inputs, capacity, cacheType } = context;
  const { kvHeads, headDim, valueDim, hidden } = params;
  const path = `layers.${layer}.cross`;

  function keep(role: "key" | "value", width: number): Value {
    const flat = linear(context, output, {
      ...{ role: `cross_${role}`, name: `${path}.${role}`, rows: kvHeads * width, columns: hidden },
      ...{ layer, bias: projectionBias(spec, role) },
    });
    const shape = [formatDim(inputs.tokens.shape[0]!), `${kvHeads}`, `${width}`];
    const rows = builder.op("reshape", [flat], { shape }, `${path}.${role}.heads`)[0]!;
    context.observe(`${path}.${role}`, rows);
    checkHead(context, width);
    const cache = builder.state(`${path}.${role}s`, [capacity, kvHeads, width], cacheType);
    const { positions, slots } = inputs;
    return builder.op(
      "kv_append",
      [cache, rows, positions, slots],
      {},
      `${path}.append_${role}s`,
    )[0]!;
  }

  return { keys: keep("key", headDim), values: keep("value", valueDim) };
}
