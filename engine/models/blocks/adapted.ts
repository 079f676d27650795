// What adapters add to a projection: y + Σ s_k · B_k (A_k x). The base keeps its numbers and its kernels; the
// two narrow products are float whatever the precision. Where a row's s_k is an input of the step, every
// session, also of one batch, has its own; elsewhere it is a constant. Of an embedding A x is a row of a table, and
// of experts both products are with the matrices of the chosen ones.

import type { TensorInfo } from "../../formats/source.ts";
import type { GraphBuilder } from "../../graph/builder.ts";
import { equal, formatDim } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import type { Attributes } from "../../ops/op.ts";

/** The change that one adapter makes to a projection. */
export interface AdapterTerm {
  /** Index of the adapter. */
  readonly adapter: number;
  /** A: [r, columns], of experts [E, r, columns], of an embedding [vocabulary, r]. */
  readonly down: TensorInfo;
  /** B: [rows, r], of experts [E, rows, r]. */
  readonly up: TensorInfo;
  /** alpha / r. */
  readonly factor: number;
}

/** Adapters as blocks see them. */
export interface AdapterInputs {
  /** Changes of a role, in the order of the adapters. */
  terms(role: string, shape: readonly number[], layer?: number): AdapterTerm[];
  /** By adapter: a factor for each row of the step, f32[M, 1], or one for all. */
  readonly scales: readonly (Value | number)[];
}

/** What is needed of a block's context. */
export interface AdaptedContext {
  readonly builder: GraphBuilder;
  readonly adapters?: AdapterInputs | undefined;
  /** The rows that have logits. */
  readonly inputs: { readonly logitRows: Value };
}

/** The projection that is changed. */
export interface AdaptedOptions {
  readonly role: string;
  readonly name: string;
  /** Shape of its matrix. */
  readonly shape: readonly number[];
  readonly layer?: number | undefined;
}

/** y f32[…, rows] of x f32[…, columns] with what adapters add. */
export function adapted(
  context: AdaptedContext,
  { x, y }: { readonly x: Value; readonly y: Value },
  options: AdaptedOptions,
): Value {
  return summed(context, {
    y,
    options,
    multiply: (matrix, label, from = x) =>
      context.builder.op("matmul", [from, matrix], {}, label)[0]!,
  });
}

/** Rows y f32[M, D] of an embedding table [vocabulary, D], `scale` times, with what adapters add. */
export function adaptedEmbedding(
  context: AdaptedContext & { readonly inputs: { readonly tokens: Value } },
  y: Value,
  { scale, ...options }: AdaptedOptions & { readonly scale: number },
): Value {
  return summed(context, {
    y,
    options,
    multiply: (matrix, label, from) =>
      from
        ? context.builder.op("matmul", [from, matrix], {}, label)[0]!
        : context.builder.op("embed", [context.inputs.tokens, matrix], { scale }, label)[0]!,
  });
}

/** y f32[M, k, rows] of the chosen experts i32[M, k] with what adapters add. */
export function adaptedExperts(
  context: AdaptedContext,
  { x, y, chosen }: { readonly x: Value; readonly y: Value; readonly chosen: Value },
  options: AdaptedOptions,
): Value {
  return summed(context, {
    y,
    options,
    multiply: (matrix, label, from = x) =>
      context.builder.op("expert_matmul", [from, matrix, chosen], {}, label)[0]!,
  });
}

/** Multiplies by a matrix of a term: by the first without `from`, by the second with what that gave. */
type Multiply = (matrix: Value, label: string, from?: Value) => Value;

function summed(
  context: AdaptedContext,
  { y, options: { role, name, shape, layer }, multiply }: {
    readonly y: Value;
    readonly options: AdaptedOptions;
    readonly multiply: Multiply;
  },
): Value {
  const { builder, adapters } = context;
  if (!adapters) return y;
  const apply = (op: string, label: string, values: Value[], attributes: Attributes = {}) =>
    builder.op(op, values, attributes, label)[0]!;
  let sum = y;
  for (const { adapter, down, up, factor } of adapters.terms(role, shape, layer)) {
    const path = `${name}.adapters.${adapter}`;
    const given = adapters.scales[adapter]!;
    const constant = typeof given === "number" ? given * factor : factor;
    let narrow = multiply(builder.weight(down.name, down), `${path}.down`);
    if (constant !== 1) {
      narrow = apply("unary", `${path}.factor`, [narrow], { kind: "scale", alpha: constant });
    }
    if (typeof given !== "number") {
      narrow = apply("binary", `${path}.scaled`, [narrow, rowsOf(context, given, narrow)], {
        kind: "mul",
      });
    }
    const change = multiply(builder.weight(up.name, up), `${path}.up`, narrow);
    sum = apply("binary", `${path}.sum`, [sum, change], { kind: "add" });
  }
  return sum;
}

/** Scales as `x` has rows: the head sees those with logits only, experts have several rows for each. */
function rowsOf({ builder, inputs }: AdaptedContext, scale: Value, x: Value): Value {
  if (x.shape.length === 3) {
    const shape = [formatDim(x.shape[0]!), "1", "1"];
    return builder.op("reshape", [scale], { shape }, `${scale.name}.items`)[0]!;
  }
  if (equal(x.shape[0]!, scale.shape[0]!)) return scale;
  const label = `${scale.name}.logit_rows`;
  return builder.op("select_rows", [scale, inputs.logitRows], {}, label)[0]!;
}
