// rope_attention: rope_append and attention in one, so that a row which is alone in its step needs no pass over its heads
// between the product that makes them and their attention (spec MD-10). Made by a pass
// (engine/plan/passes/fuse_attention_input.ts) where the device has a kernel for it.

import { choice, integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import type { Attributes, CaseInput, CaseRandom, OpCase, OpRecord, ReferenceCall } from "../op.ts";
import { checkInputCount, optionalInput, requireEqual } from "../shape_rules.ts";
import { attention } from "./attention.ts";
import { ropeAppend } from "./rope_append.ts";

/** Inputs that it has in common with rope_append; those of attention follow. */
const ROPE_INPUTS = 10;

function split(attributes: Attributes): { readonly rope: Attributes; readonly attend: Attributes } {
  const { style, epsilon, base, scale, window, softcap } = attributes as Readonly<
    Record<"style" | "epsilon" | "base" | "scale" | "window" | "softcap", number>
  >;
  return { rope: { style, epsilon, base }, attend: { scale, window, softcap } };
}

/** Shape rule of this op and of its form with an 8-bit result. */
export function inferRopeAttention(
  inputs: readonly (TensorType | undefined)[],
  attributes: Attributes,
): TensorType[] {
  checkInputCount(inputs, ROPE_INPUTS + 2);
  const { rope, attend } = split(attributes);
  const [queries, keys, values] = ropeAppend.infer(inputs.slice(0, ROPE_INPUTS), rope);
  for (const [index, name] of [[10, "sinks"], [11, "slopes"]] as const) {
    const perHead = optionalInput(inputs, index, name, { rank: 1 });
    if (perHead) requireEqual(queries!.shape[1]!, perHead.shape[0]!, `the heads and the ${name}`);
  }
  const [out] = attention.infer(
    [queries, keys, values, inputs[4], inputs[5], ...inputs.slice(10)],
    attend,
  );
  return [out!, keys!, values!];
}

/** Reference of this op and, before it quantises, of its form with an 8-bit result. */
export function attendToRotated(call: ReferenceCall): void {
  const { inputs, outputs: [out, keys, values], attributes, stateOf } = call;
  const { rope, attend } = split(attributes);
  const rotary = inputs.slice(0, ROPE_INPUTS);
  const rows = inputs[0]!.shape[0]!, width = keys!.shape[2]!;
  const heads = out!.shape[1]! / width;
  const queries = {
    dtype: "f32" as const,
    shape: [rows, heads, width],
    data: new Float32Array(rows * heads * width),
  };
  ropeAppend.reference({
    ...{ ...call, inputs: rotary, attributes: rope },
    outputs: [queries, keys!, values!],
  });
  attention.reference({
    ...{ ...call, outputs: [out!], attributes: attend },
    inputs: [queries, inputs[2], inputs[3], inputs[4], inputs[5], ...inputs.slice(ROPE_INPUTS)],
    stateOf: (index, slot) => stateOf(index + 1, slot),
  });
}

/** What both forms take, by attribute. */
export const ROPE_ATTENTION_ATTRIBUTES = {
  style: choice(["half", "interleaved"]),
  epsilon: number(1e-6),
  base: number(0),
  scale: number(),
  window: integer(0, 0),
  softcap: number(0),
} as const;

/**
 * (the inputs of rope_append, sinks f32[H]?, slopes f32[H]?) → (f32[M, H·D], keys, values); the attributes of rope_append
 * and attention.
 */
export const ropeAttention: OpRecord = defineOp({
  name: "rope_attention",
  summary: "attention(rope_append(qkv, …), …)",
  attributes: ROPE_ATTENTION_ATTRIBUTES,
  infer: inferRopeAttention,
  reference: attendToRotated,
  inPlace: { 1: 2, 2: 3 },
  cases: ropeAttentionCases,
  tolerance: attention.tolerance!,
});

interface Heads {
  readonly heads: number;
  readonly groups: number;
  readonly width: number;
  readonly rotated: number;
  readonly capacity: number;
  readonly style: "half" | "interleaved";
  readonly dtype: "f32" | "f16";
  readonly norms?: boolean;
  readonly apart?: boolean;
  readonly biased?: boolean;
  readonly window?: number;
}

// Heads of a part of a subgroup and of more; contexts of one workgroup and of many.
const HEADS: readonly Heads[] = [
  { heads: 4, groups: 2, width: 64, rotated: 64, capacity: 40, style: "half", dtype: "f16" },
  {
    heads: 9,
    groups: 3,
    width: 32,
    rotated: 24,
    capacity: 600,
    style: "half",
    dtype: "f16",
    norms: true,
  },
  {
    heads: 6,
    groups: 1,
    width: 64,
    rotated: 64,
    capacity: 600,
    style: "interleaved",
    dtype: "f32",
    apart: true,
  },
  {
    heads: 2,
    groups: 2,
    width: 32,
    rotated: 20,
    capacity: 40,
    style: "interleaved",
    dtype: "f16",
    biased: true,
    window: 5,
  },
  {
    heads: 3,
    groups: 1,
    width: 12,
    rotated: 6,
    capacity: 40,
    style: "half",
    dtype: "f32",
    apart: true,
    norms: true,
  },
];

function ropeAttentionCases(random: CaseRandom): OpCase[] {
  return HEADS.flatMap((shape) =>
    [[], [0], [shape.capacity - 1], [7], [3, 4, 5, 2], Array.from({ length: 11 }, (_, i) => i)]
      .map((positions) => caseOf(random, shape, positions))
  );
}

function caseOf(random: CaseRandom, shape: Heads, positions: readonly number[]): OpCase {
  const { heads, groups, width, rotated, capacity, style, dtype } = shape;
  const { norms = false, apart = false, biased = false, window = 0 } = shape;
  const rows = positions.length;
  const state = (): CaseInput => ({
    role: "state",
    dtype,
    shape: [capacity, groups, width],
    slots: [0, 1].map(() => random.normal(capacity * groups * width)),
  });
  return {
    name: `${heads}/${groups} heads of ${width}, ${rotated} rotated, ${style}, ${dtype}, ` +
      `positions ${positions.join(" ")}`,
    inputs: [
      random.input([rows, (heads + (apart ? 0 : 2 * groups)) * width]),
      random.input([rows, rotated]),
      state(),
      state(),
      random.indices(positions),
      random.indices(positions.map(() => 1)),
      ...[6, 7].map(() => norms ? random.weight("F32", [width]) : undefined),
      ...[8, 9].map(() => apart ? random.input([rows, groups * width]) : undefined),
      ...[10, 11].map(() => biased ? random.weight("F32", [heads]) : undefined),
    ],
    attributes: {
      ...{ style, epsilon: 1e-5, base: norms ? 1 : 0 },
      ...{ scale: width ** -0.5, window, softcap: biased ? 10 : 0 },
    },
  };
}
