// What every block builder is handed, and the two smallest blocks (linear, norm), which the others are
// made of. Blocks know roles and shapes; names of tensors and of models never reach them.

import type { Attributes } from "../../graph/op.ts";
import type { GraphBuilder } from "../../graph/builder.ts";
import type { Value } from "../../graph/graph.ts";
import type { Hyperparameters } from "../hparams.ts";
import type { ModelSpec } from "../spec.ts";
import type { TensorLookup } from "../tensors.ts";

/** Inputs of a step (see build.ts for their shapes). */
export interface StepInputs {
  readonly tokens: Value;
  readonly positions: Value;
  readonly slots: Value;
  readonly logitRows: Value;
}

/** Surroundings of a block. */
export interface BlockContext {
  readonly builder: GraphBuilder;
  readonly spec: ModelSpec;
  readonly params: Hyperparameters;
  readonly tensors: TensorLookup;
  readonly inputs: StepInputs;
  /** Positions that a cache holds. */
  readonly capacity: number;
  /** Storage of keys and values. */
  readonly cacheType: "f16" | "f32";
  /** Rotary table of an attention kind: f32[M, ropeDim]. */
  ropeTable(kind: string): Value;
}

/** The one output of an op. */
export function apply(
  builder: GraphBuilder,
  op: string,
  label: string,
  inputs: readonly Value[],
  attributes: Attributes = {},
): Value {
  return builder.op(op, inputs, attributes, label)[0]!;
}

/** A weight of a role. */
export function weight(
  { builder, tensors }: BlockContext,
  role: string,
  shape: readonly number[],
  layer?: number,
): Value {
  const tensor = tensors.get(role, shape, layer);
  return builder.weight(tensor.name, tensor);
}

/** Whether a bias belongs to a projection: never, when the file has it, or always. */
export type BiasRule = "none" | "present" | "required";

/** Sizes and place of a projection. */
export interface LinearOptions {
  readonly role: string;
  /** Path-like name of the node. */
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly layer?: number;
  readonly bias?: BiasRule;
}

/** y = W x (+ b): f32[…, columns] → f32[…, rows]. */
export function linear(context: BlockContext, x: Value, options: LinearOptions): Value {
  const { role, name, rows, columns, layer, bias = "none" } = options;
  const matrix = weight(context, role, [rows, columns], layer);
  const biasRole = `${role}_bias`;
  const hasBias = bias === "required" ||
    (bias === "present" && context.tensors.has(biasRole, layer));
  const inputs = hasBias ? [x, matrix, weight(context, biasRole, [rows], layer)] : [x, matrix];
  return apply(context.builder, "matmul", name, inputs);
}

/** The model's norm over the last dimension, with the weight of a role. */
export function norm(
  context: BlockContext,
  x: Value,
  { role, name, size, layer }: { role: string; name: string; size: number; layer?: number },
): Value {
  const { spec, params, builder } = context;
  return apply(builder, "rms_norm", name, [x, weight(context, role, [size], layer)], {
    epsilon: params.normEpsilon,
    base: spec.norm.base,
  });
}
