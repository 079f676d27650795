// fold_batch_norm: a batch norm of constants behind a convolution is a factor and a shift of each of its
// outputs: they go into the convolution's weights and bias, computed when these are loaded.

import { equal } from "../../graph/dim/mod.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { CONV_RULES } from "../../ops/records/conv.ts";
import {
  areFactors,
  computedTensor,
  finiteFactors,
  floatElements,
  isKnownFloat,
} from "./computed_weights.ts";
import { filtersOf } from "./conv_weights.ts";
import { type MatchContext, soleMaker } from "./match.ts";
import { defineReplacement, type Pass } from "./pass.ts";

/** Folds batch norms into the convolutions before them. */
export const foldBatchNorm: Pass = defineReplacement({
  name: "fold_batch_norm",
  // Not `activation`: what comes behind one cannot go into the weights.
  reads: {
    batch_norm: ["epsilon"],
    conv: Object.keys(CONV_RULES),
    conv_transpose: [...Object.keys(CONV_RULES), "output_padding"],
  },
  match,
  replace({ node, op, weight, moved }, conv: Node) {
    const [x, kernel, bias] = conv.inputs as [Value, Value, Value?];
    const norm = normOf(node);
    const scaled = computedTensor(
      `${node.name}.weight`,
      { shape: sizesOf(kernel), make: () => scaleFilters(conv, norm) },
    );
    const shifted = computedTensor(
      `${node.name}.bias`,
      { shape: sizesOf(norm.beta), make: () => shift(bias, norm) },
    );
    const inputs = [moved(x), weight(scaled.name, scaled), weight(shifted.name, shifted)];
    return op(conv.op, inputs, conv.attributes, node.name);
  },
});

interface Norm {
  readonly gamma: Value;
  readonly beta: Value;
  readonly mean: Value;
  readonly variance: Value;
  readonly epsilon: number;
}

function normOf({ inputs, attributes }: Node): Norm {
  const [, gamma, beta, mean, variance] = inputs as [Value, Value, Value, Value, Value];
  return { gamma, beta, mean, variance, epsilon: attributes.epsilon as number };
}

function match(node: Node, context: MatchContext): Node | undefined {
  if (
    node.op !== "batch_norm" || !node.inputs.slice(1).every((value) => value && isKnownFloat(value))
  ) {
    return undefined;
  }
  const x = node.inputs[0]!;
  const conv = soleMaker(x, { name: "conv", context }) ??
    soleMaker(x, { name: "conv_transpose", context });
  const [, kernel, bias, ...others] = conv?.inputs ?? [];
  if (!kernel || !isKnownFloat(kernel) || (bias && !isKnownFloat(bias)) || others.length > 0) {
    return undefined;
  }
  const norm = normOf(node);
  const isTame = !norm.gamma.data || !norm.variance.data || areFactors(factors(norm));
  return isTame && equal(conv!.outputs[0]!.shape[1]!, norm.gamma.shape[0]!) ? conv : undefined;
}

function factors({ gamma, variance, epsilon }: Norm): Float64Array {
  const spread = floatElements(variance);
  return Float64Array.from(floatElements(gamma), (g, i) => g / Math.sqrt(spread[i]! + epsilon));
}

function scaleFilters(conv: Node, norm: Norm): Float32Array {
  const factor = finiteFactors(factors(norm), conv.name), filterOf = filtersOf(conv);
  return floatElements(conv.inputs[1]!).map((value, at) => value * factor[filterOf(at)]!);
}

function shift(bias: Value | undefined, norm: Norm): Float32Array {
  const factor = factors(norm),
    mean = floatElements(norm.mean),
    before = bias && floatElements(bias);
  return Float32Array.from(
    floatElements(norm.beta),
    (beta, i) => beta + ((before?.[i] ?? 0) - mean[i]!) * factor[i]!,
  );
}

function sizesOf({ shape }: Value): readonly number[] {
  return shape as readonly number[];
}
