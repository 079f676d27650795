// RNN, GRU and LSTM.

import type { Dim } from "../../graph/dim/mod.ts";
import { float, floats, int, text, texts } from "../derivation/attributes.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";

const attributes = {
  activation_alpha: floats([]),
  activation_beta: floats([]),
  activations: texts(),
  clip: float(0),
  direction: text("forward", ["forward", "reverse", "bidirectional"]),
  hidden_size: int(undefined),
  layout: int(0, { since: 14 }),
} as const;

interface Layer {
  readonly kind: "rnn" | "gru" | "lstm";
  /** Of one direction. */
  readonly activations: readonly string[];
  readonly flags?: Readonly<Record<string, boolean>>;
}

interface Given {
  readonly activation_alpha: readonly number[];
  readonly activation_beta: readonly number[];
  readonly activations?: readonly string[] | undefined;
  readonly clip: number;
  readonly direction: string;
  readonly hidden_size?: number | undefined;
  readonly layout?: number;
}

function buildLayer(call: OnnxCall<Given>, layer: Layer) {
  const { attributes: given } = call;
  const hidden = given.hidden_size ?? known(call.input(2).type.shape[2]);
  const directions = given.direction === "bidirectional" ? 2 : 1;
  const inputs = [0, 1, 2].map((i) => call.input(i));
  return call.op("recurrent", [...inputs, ...[3, 4, 5, 6, 7].map((i) => call.inputs[i])], {
    kind: layer.kind,
    hidden,
    direction: given.direction,
    activations: given.activations ??
      Array.from({ length: directions }, () => layer.activations).flat(),
    ...parameters(given),
    clip: given.clip,
    batch_first: given.layout === 1,
    ...layer.flags,
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
  onnxOp("GRU", {
    versions: [7, 14],
    attributes: { ...attributes, linear_before_reset: int(0) },
    build: (call) =>
      buildLayer(call, {
        kind: "gru",
        activations: ["Sigmoid", "Tanh"],
        flags: { linear_before_reset: call.attributes.linear_before_reset !== 0 },
      }),
  }),
  onnxOp("LSTM", {
    versions: [7, 14],
    attributes: { ...attributes, input_forget: int(0) },
    build: (call) =>
      buildLayer(call, {
        kind: "lstm",
        activations: ["Sigmoid", "Tanh", "Tanh"],
        flags: { input_forget: call.attributes.input_forget !== 0 },
      }),
  }),
  onnxOp("RNN", {
    versions: [7, 14],
    attributes,
    build: (call) => buildLayer(call, { kind: "rnn", activations: ["Tanh"] }),
  }),
];
