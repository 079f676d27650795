// Losses of classifiers.

import { int, text } from "../derivation/attributes.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";
import { logSoftmaxAlong } from "./softmax.ts";

const attributes = {
  ignore_index: int(undefined),
  reduction: text("mean", ["none", "sum", "mean"]),
} as const;

function lossAttributes(given: { ignore_index?: number | undefined; reduction: string }) {
  return {
    reduction: given.reduction,
    ignores: given.ignore_index !== undefined,
    ignore_index: given.ignore_index ?? 0,
  };
}

/** Losses. */
export const lossOps: readonly OnnxOp[] = [
  onnxOp("NegativeLogLikelihoodLoss", {
    versions: [12, 13],
    attributes,
    build: (call) =>
      call.op(
        "nll_loss",
        [call.input(0), call.input(1), call.inputs[2]],
        lossAttributes(call.attributes),
      ),
  }),
  onnxOp("SoftmaxCrossEntropyLoss", {
    versions: [12, 13],
    attributes,
    build(call) {
      const logs = logSoftmaxAlong(call, call.input(0), 1);
      const inputs = [logs, call.input(1), call.inputs[2]];
      return [call.one("nll_loss", inputs, lossAttributes(call.attributes)), logs];
    },
  }),
];
