// What every block builder is handed, and the two smallest blocks (linear, norm), which the others are
// made of. Blocks know roles and shapes; names of tensors and of models never reach them.

import type { Attributes } from "../../ops/op.ts";
import type { GraphBuilder } from "../../graph/builder.ts";
import type { StateType, Value } from "../../graph/graph.ts";
import { FormatError } from "../../errors.ts";
import type { FieldName } from "../hparam_fields.ts";
import type { Hyperparameters } from "../hparams.ts";
import { factorOf } from "../sizes.ts";
import type { Factor, ModelSpec } from "../spec.ts";
import type { TensorLookup } from "../tensors.ts";
import { adapted, type AdapterInputs } from "./adapted.ts";

/** Inputs of a step (see build.ts for their shapes). */
export interface StepInputs {
  readonly tokens: Value;
  readonly positions: Value;
  /** Absent where nothing outlives the step. */
  readonly slots: Value | undefined;
  readonly logitRows: Value;
  /** Type of each token, for embeddings that add one. */
  readonly types?: Value;
  /** Rows of pictures f32[P, hidden], and which of tokens and pictures each row is, i32[M]. */
  readonly pictures?: { readonly rows: Value; readonly choice: Value } | undefined;
}

/** How rows of a stack see others where it is not "what the session has up to my position". */
export interface SpanInputs {
  /** i32[M] each: whole sequences among the rows of the step; absent: up to the row's position. */
  readonly starts?: Value;
  readonly ends?: Value;
  /** Keys and values outlive the step. */
  readonly isCached: boolean;
  /** f32[H, 2R+1], see the op attention. */
  readonly bias?: Value | undefined;
  /** What rows see by a kind of attention, its window included; absent: all kinds see the same, without windows. */
  readonly ofKind?: (kind: string) => Pick<SpanInputs, "starts" | "ends">;
}

/** What the decoder sees of its source, in its context. */
export interface SourceInputs {
  /** Slot that holds the source of each row, i32[M]: several sessions may share one. */
  readonly slots: Value;
  /** Rows that this source has, i32[M]. */
  readonly ends: Value;
  /** Caches of a layer: state[C, G, D] and state[C, G, E]. */
  readonly caches: readonly { readonly keys: Value; readonly values: Value }[];
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
  readonly cacheType: StateType;
  /** Set in encoders, and where scores depend on distances. */
  readonly spans?: SpanInputs | undefined;
  /** Set in decoders behind an encoder. */
  readonly source?: SourceInputs;
  /** Low-rank changes of projections, where adapters were loaded. */
  readonly adapters?: AdapterInputs | undefined;
  /** Path or URL of the model, for messages. */
  readonly file: string;
  /** Rotary table of an attention kind: f32[M, ropeDim]; undefined where nothing is rotated. */
  ropeTable(kind: string): Value | undefined;
  /** Told of values that tests and tools look at. */
  observe(name: string, value: Value): void;
}

/**
 * Hyperparameters that only some blocks need.
 *
 * @throws {FormatError} If the file lacks one.
 */
export function needed<K extends FieldName>(
  { params, file }: Pick<BlockContext, "params" | "file">,
  names: readonly K[],
): { readonly [N in K]: NonNullable<Hyperparameters[N]> } {
  for (const name of names) {
    if (params[name] !== undefined) continue;
    throw new FormatError("is missing, and the model cannot be built without it", {
      file,
      place: name,
    });
  }
  return params as { readonly [N in K]: NonNullable<Hyperparameters[N]> };
}

/** A weight of a role. */
export function weight(
  { builder, tensors }: BlockContext,
  { role, shape, layer }: {
    readonly role: string;
    readonly shape: readonly number[];
    readonly layer?: number | undefined;
  },
): Value {
  const tensor = tensors.get(role, shape, layer);
  return builder.weight(tensor.name, tensor);
}

/** Whether a bias belongs to a projection: never, when the file has it, or always. */
export type BiasRule = "none" | "present" | "required";

/** The bias of a role, if there is one by the rule. */
export function biasOf(
  context: BlockContext,
  { role, rule, shape, layer }: {
    role: string;
    rule: BiasRule | undefined;
    shape: readonly number[];
    layer?: number | undefined;
  },
): Value | undefined {
  const biasRole = `${role}_bias`;
  const has = rule === "required" || (rule === "present" && context.tensors.has(biasRole, layer));
  return has ? weight(context, { role: biasRole, shape, layer }) : undefined;
}

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
  const { role, name, rows, columns, layer, bias: rule } = options;
  const matrix = weight(context, { role, shape: [rows, columns], layer });
  const bias = biasOf(context, { role, rule, shape: [rows], layer });
  const y = context.builder.op("matmul", bias ? [x, matrix, bias] : [x, matrix], {}, name)[0]!;
  return adapted(context, { x, y }, { role, name, layer, shape: [rows, columns] });
}

/** A norm: its weight's role, the name of its node, and the width that it is over. */
export interface NormOptions {
  readonly role: string;
  readonly name: string;
  readonly size: number;
  readonly layer?: number;
}

/**
 * The model's norm over the last dimension, with the weight of a role. A gain is a diagonal matrix; a file
 * whose stream was turned into another basis has the whole one, and then it is multiplied by.
 */
export function norm(context: BlockContext, x: Value, options: NormOptions): Value {
  const { spec, builder, tensors } = context;
  const { role, name, size, layer } = options;
  if (tensors.stored(role, layer)?.tensors[0]?.shape.length === 2) {
    const normal = normalized(context, { x, name });
    const shape = { rows: size, columns: size, ...layer !== undefined && { layer } };
    return linear(context, normal, { role, name: `${name}.gain`, ...shape, bias: "present" });
  }
  const gain = spec.norm.weight === false ? [] : [weight(context, { role, shape: [size], layer })];
  const bias = biasOf(context, { role, rule: spec.norm.bias, shape: [size], layer });
  if (!bias) return normalized(context, { x, name, weights: gain });
  if (spec.norm.kind === "layer") return normalized(context, { x, name, weights: [gain[0], bias] });
  return builder.op("binary", [normalized(context, { x, name, weights: gain }), bias], {
    kind: "add",
  }, `${name}.bias`)[0]!;
}

/** The model's kind of norm with given weights, or with none. */
export function normalized(
  { spec, params: { normEpsilon: epsilon }, builder }: BlockContext,
  { x, name, weights = [] }: {
    readonly x: Value;
    readonly name: string;
    readonly weights?: readonly (Value | undefined)[];
  },
): Value {
  const { kind, base = 0 } = spec.norm;
  const attributes: Attributes = kind === "layer" ? { centred: true, epsilon } : { epsilon, base };
  return builder.op("norm", [x, ...weights], attributes, name)[0]!;
}

/** x times a factor of the spec; x itself where it is 1. */
export function scaled(
  { builder, params }: BlockContext,
  { x, factor, name }: {
    readonly x: Value;
    readonly factor: Factor | undefined;
    readonly name: string;
  },
): Value {
  const value = factorOf(factor, { params, place: name });
  return value === 1 ? x : builder.op("unary", [x], { kind: "scale", alpha: value }, name)[0]!;
}
