// Softmax over the last dim as exporters write it: plain, or "safe" as PyTorch 2.5 and later do, where a row that
// sees nothing (all -∞, so that every weight is NaN) becomes zeros: where(is_nan(s), 0, s).

import type { Node, Value } from "../../graph/graph.ts";
import { isNumber, makerOf, type MatchContext, soleMaker } from "./match.ts";

/** The softmax whose weights a value is, if nothing else reads what lies between. */
export function softmaxOf(value: Value, context: MatchContext): Node | undefined {
  const softmax = soleMaker(value, { name: "softmax", context }) ?? safeSoftmaxOf(value, context);
  if (!softmax) return undefined;
  const rank = value.shape.length, { axis } = softmax.attributes;
  return axis === -1 || axis === rank - 1 ? softmax : undefined;
}

function safeSoftmaxOf(value: Value, context: MatchContext): Node | undefined {
  const choice = soleMaker(value, { name: "where", context });
  const [condition, zero, weights] = choice?.inputs ?? [];
  if (!condition || !weights || !isNumber(zero, 0)) return undefined;
  const test = soleMaker(condition, { name: "is_nan", context });
  return test?.inputs[0] === weights && context.uses.get(weights) === 2
    ? makerOf(weights, "softmax", context)
    : undefined;
}
