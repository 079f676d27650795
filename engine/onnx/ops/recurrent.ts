// RNN, GRU and LSTM.

import type { Dim } from "../../graph/dim/mod.ts";
import {
  flag,
  float,
  floats,
  int,
  type OnnxAttributesOf,
  text,
  texts,
} from "../derivation/attributes.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";

const attributes = {
  activation_alpha: floats([]),
  activation_beta: floats([]),
  activations: texts(),
  clip: float(0),
  direction: text("forward", { choices: ["forward", "reverse", "bidirectional"] }),
  hidden_size: int(undefined),
  layout: int(0, { since: 14 }),
} as const;

type Given = OnnxAttributesOf<typeof attributes>;

interface Layer {
  readonly kind: "rnn" | "gru" | "lstm";
  /** Of one direction. */
  readonly activations: readonly string[];
  /** An attribute of this kind alone. */
  readonly own?: "linear_before_reset" | "input_forget";
}

function layer(name: string, { kind, activations, own }: Layer): OnnxOp {
  return onnxOp(name, {
    versions: [7, 14],
    attributes: { ...attributes, ...own && { [own]: flag(false) } },
    build(call) {
      const { attributes: given } = call;
      const { activations: named, clip, direction, hidden_size, layout } = given;
      const directions = direction === "bidirectional" ? 2 : 1;
      return call.op("recurrent", call.take(3, 5), {
        ...{ kind, direction, clip },
        hidden: hidden_size ?? known(call.input(2).type.shape[2]),
        activations: named ?? Array.from({ length: directions }, () => activations).flat(),
        ...parameters(given),
        batch_first: layout === 1,
        ...own && { [own]: (given as Readonly<Record<string, unknown>>)[own] as boolean },
      });
    },
  });
}

// Lists of parameters hold entries only for the activations that take some: they are spread out to one
// an activation, where 0 in an unused place does nothing.
function parameters(given: Given) {
  const spread = (list: readonly number[], takes: ReadonlySet<string>) => {
    if (list.length === 0 || !given.activations) return [];
    if (list.length === given.activations.length) return list;
    let at = 0;
    return given.activations.map((name) =>
      takes.has(name.toLowerCase()) && at < list.length ? list[at++]! : 0
    );
  };
  return {
    alphas: spread(given.activation_alpha, TAKE_ALPHA),
    betas: spread(given.activation_beta, TAKE_BETA),
  };
}

const TAKE_BETA = new Set(["affine", "scaledtanh", "hardsigmoid"]);
const TAKE_ALPHA = new Set([...TAKE_BETA, "leakyrelu", "thresholdedrelu", "elu"]);

function known(dim: Dim | undefined): number {
  if (typeof dim === "number") return dim;
  throw new RangeError("the hidden size must be a known number");
}

/** Recurrent layers. */
export const recurrentOps: readonly OnnxOp[] = [
  layer("GRU", {
    kind: "gru",
    activations: ["Sigmoid", "Tanh"],
    own: "linear_before_reset",
  }),
  layer("LSTM", {
    kind: "lstm",
    activations: ["Sigmoid", "Tanh", "Tanh"],
    own: "input_forget",
  }),
  layer("RNN", { kind: "rnn", activations: ["Tanh"] }),
];
