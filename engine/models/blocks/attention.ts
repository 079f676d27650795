// Attention over a cache: project, norm heads where the family does, rotate, append keys and values, and
// attend. Grouped-query, windows, soft caps, sinks, linear biases and both rotary styles are inputs or attributes
// of the ops, so every family passes through these lines. Shapes: M rows of the step, H query heads, G
// key/value heads, D channels of a query or key head, E of a value head.

import { q8_0 } from "../../../quant/formats/q8_0.ts";
import { formatDim } from "../../graph/dim/mod.ts";
import { UnsupportedError } from "../../errors.ts";
import type { Value } from "../../graph/graph.ts";
import { attentionList } from "../../ops/attention_inputs.ts";
import { alibiSlopes } from "./alibi.ts";
import type { FieldName } from "../hparam_fields.ts";
import {
  type BiasRule,
  type BlockContext,
  linear,
  needed,
  norm,
  type SpanInputs,
  weight,
} from "./context.ts";
import type { ModelSpec } from "../spec.ts";
import { normHeads } from "./head_norm.ts";
import { ropeStyle } from "./rope_style.ts";

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
  const { builder, spec, params } = context;
  const { heads, kvHeads, headDim, valueDim, hidden } = params;
  const path = `layers.${layer}.attention`;

  function project(role: "query" | "key" | "value", count: number, width: number): Value {
    const rows = count * width;
    const name = `${path}.${role}`;
    const { headNorm } = spec.attention;
    const bias = projectionBias(spec, role);
    const flat = linear(context, x, { role, name, rows, columns: hidden, layer, bias });
    const full = headNorm === "full" && role !== "value"
      ? norm(context, flat, { role: `${role}_norm`, name: `${name}_norm`, size: rows, layer })
      : flat;
    return builder.op("reshape", [full], {
      shape: [formatDim(x.shape[0]!), `${count}`, `${width}`],
    }, `${name}.heads`)[0]!;
  }

  function place(role: "query" | "key", count: number): Value {
    const projected = project(role, count, headDim); // f32[M, count, D]
    const name = `${path}.${role}_norm`;
    const normed = normHeads(context, projected, { role: `${role}_norm`, name, layer });
    const table = context.ropeTable(kind);
    if (!table) return normed;
    return builder.op("rope", [normed, table], ropeStyle(context), `${path}.${role}_rope`)[0]!;
  }

  const query = place("query", heads); // f32[M, H, D]
  const keys = remember(context, place("key", kvHeads), { path, name: "keys" });
  const values = remember(context, project("value", kvHeads, valueDim), { path, name: "values" });
  const mixed = attend(context, { query, keys, values, scale: scoreScale(context), layer, kind });
  return linear(context, mixed, {
    role: "attention_output",
    name: `${path}.output`,
    rows: hidden,
    columns: heads * valueDim,
    layer,
    bias: spec.attention.outputBias,
  });
}

/** The rule for the bias of a projection. */
export function projectionBias(
  { attention: { bias, keyBias } }: ModelSpec,
  role: "query" | "key" | "value",
): BiasRule {
  return role === "key" ? keyBias ?? bias : bias;
}

/** Appends f32[M, G, W] to a cache of its own and gives the cache; the rows themselves in an encoder. */
export function remember(
  context: BlockContext,
  rows: Value,
  { path, name }: { path: string; name: string },
): Value {
  const { builder, inputs, capacity, cacheType, spans } = context;
  if (spans && !spans.isCached) return rows;
  const widths = rows.shape.slice(1) as number[];
  checkHead(context, widths.at(-1)!);
  const cache = builder.state(`${path}.${name}`, [capacity, ...widths], cacheType);
  const { positions, slots } = inputs;
  return builder.op("kv_append", [cache, rows, positions, slots], {}, `${path}.append_${name}`)[0]!;
}

/**
 * Heads of a cache in blocks are whole blocks.
 *
 * @throws {UnsupportedError} If they are not.
 */
export function checkHead({ cacheType, file }: BlockContext, channels: number): void {
  if (cacheType !== "q8_0" || channels % q8_0.blockSize === 0) return;
  throw new UnsupportedError(
    `keys or values have heads of ${channels} channels, and Q8_0 is for multiples of ${q8_0.blockSize}`,
    { file, remedy: "Use kvFormat F16" },
  );
}

/** Query, caches and place of an attention. */
export interface AttendOptions extends AttentionOptions {
  /** f32[M, H, D]. */
  readonly query: Value;
  readonly keys: Value;
  readonly values: Value;
  /** Factor on the scores. */
  readonly scale: number;
}

/** → f32[M, H·E]. */
export function attend(context: BlockContext, options: AttendOptions): Value {
  const { builder, spec, params, spans, inputs: { positions, slots } } = context;
  const { query, keys, values, scale, layer, kind } = options;
  if (spans) return attendSpan(context, spans, options);
  const { alibi } = spec.attention.kinds[kind]!;
  const sinks = spec.attention.sinks
    ? weight(context, { role: "sinks", shape: [params.heads], layer })
    : undefined;
  const slopes = alibi === undefined ? undefined : builder.constant(
    `layers.${layer}.attention.slopes`,
    alibiSlopes(params.heads).map((slope) => alibi === "raw" ? slope * scale : slope),
  );
  const seen = { q: query, k: keys, v: values, positions, slots, sinks, slopes };
  return builder.op("attention", attentionList(seen), {
    scale,
    window: windowOf(context, kind),
    softcap: params.scoreCap ?? 0,
  }, `layers.${layer}.attention`)[0]!;
}

function attendSpan(
  context: BlockContext,
  { isCached, bias, ofKind, ...all }: SpanInputs,
  { query, keys, values, scale, layer, kind }: AttendOptions,
): Value {
  const { builder, inputs, spec, params, file } = context;
  const { starts, ends } = ofKind?.(kind) ?? all;
  const more = {
    sinks: spec.attention.sinks,
    alibi: spec.attention.kinds[kind]!.alibi,
    window: ofKind ? 0 : windowOf(context, kind),
    scoreCap: params.scoreCap,
  };
  const unbuilt = Object.entries(more).find(([, value]) => value);
  if (unbuilt) {
    throw new UnsupportedError(`attention with ${unbuilt[0]} is not built for this network`, {
      file,
    });
  }
  const positions = bias || !ends ? inputs.positions : undefined;
  const slots = isCached ? inputs.slots : undefined;
  const seen = { q: query, k: keys, v: values, starts, ends, positions, slots, bias };
  return builder.op("attention", attentionList(seen), { scale }, `layers.${layer}.attention`)[0]!;
}

function scoreScale({ params }: BlockContext): number {
  return params.attentionScale ?? (params.queryScalar ?? params.headDim) ** -0.5;
}

/** Positions that a kind of attention sees; 0: all. */
export function windowOf(
  context: Pick<BlockContext, "spec" | "params" | "file">,
  kind: string,
): number {
  const name = context.spec.attention.kinds[kind]!.window as FieldName | undefined;
  return name === undefined ? 0 : needed(context, [name])[name] as number;
}
