// Losses of classifiers.

import { int, text } from "../derivation/attributes.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";
import { logSoftmaxAlong } from "./softmax.ts";

function loss(name: string, startsAtLogs: boolean): OnnxOp {
  return onnxOp(name, {
    versions: [12, 13],
    attributes: {
      ignore_index: int(),
      reduction: text("mean", { choices: ["none", "sum", "mean"] }),
    },
    build(call) {
      const { ignore_index, reduction } = call.attributes;
      const [x, ...others] = call.take(2, 1);
      const logs = startsAtLogs ? x! : logSoftmaxAlong(call, { x: x!, axis: 1 });
      const ignored = { ignores: ignore_index !== undefined, ignore_index: ignore_index ?? 0 };
      const y = call.one("nll_loss", [logs, ...others], { reduction, ...ignored });
      return startsAtLogs ? [y] : [y, logs];
    },
  });
}

/** Losses. */
export const lossOps: readonly OnnxOp[] = [
  loss("NegativeLogLikelihoodLoss", true),
  loss("SoftmaxCrossEntropyLoss", false),
];
