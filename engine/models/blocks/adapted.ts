// What adapters add to a projection: y + Σ s_k · B_k (A_k x). The base keeps its numbers and its kernels; the
// two narrow products are float whatever the precision. Where a row's s_k is an input of the step, every
// session, also of one batch, has its own; elsewhere it is a constant.

import type { TensorInfo } from "../../formats/source.ts";
import type { GraphBuilder } from "../../graph/builder.ts";
import type { Value } from "../../graph/graph.ts";
import type { Attributes } from "../../graph/op.ts";

/** The change that one adapter makes to a projection. */
export interface AdapterTerm {
  /** Index of the adapter. */
  readonly adapter: number;
  /** A: [r, columns]. */
  readonly down: TensorInfo;
  /** B: [rows, r]. */
  readonly up: TensorInfo;
  /** alpha / r. */
  readonly factor: number;
}

/** Adapters as blocks see them. */
export interface AdapterInputs {
  /** Changes of a role, in the order of the adapters. */
  terms(role: string, shape: readonly [number, number], layer?: number): AdapterTerm[];
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
  /** Rows and columns of its matrix. */
  readonly shape: readonly [number, number];
  readonly layer?: number | undefined;
}

/** y f32[…, rows] of x f32[…, columns] with what adapters add. */
export function adapted(
  context: AdaptedContext,
  x: Value,
  y: Value,
  { role, name, shape, layer }: AdaptedOptions,
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
    let narrow = apply("matmul", `${path}.down`, [x, builder.weight(down.name, down)]);
    if (constant !== 1) {
      narrow = apply("scale", `${path}.factor`, [narrow], { factor: constant });
    }
    if (typeof given !== "number") {
      narrow = apply("mul", `${path}.scaled`, [narrow, rowsOf(context, given, x)]);
    }
    const change = apply("matmul", `${path}.up`, [narrow, builder.weight(up.name, up)]);
    sum = apply("add", `${path}.sum`, [sum, change]);
  }
  return sum;
}

/** The head sees the rows with logits only. */
function rowsOf({ builder, inputs }: AdaptedContext, scale: Value, x: Value): Value {
  if (x.shape[0] !== inputs.logitRows.shape[0]) return scale;
  const label = `${scale.name}.logit_rows`;
  return builder.op("select_rows", [scale, inputs.logitRows], {}, label)[0]!;
}
