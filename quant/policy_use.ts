// What of a policy is without effect on a model: rules that decide for no tensor, shares of outliers that keep
// none, a format that no row fits. A pattern with a slip in it looks right, and nothing else would show it.
// The mixtures that have names are left out: their rules are for models of many kinds.

import { isNamedPolicy } from "./policies.ts";
import {
  chooseFormat,
  type ModelFacts,
  type PolicyRule,
  type QuantPolicy,
  ruleFits,
  type TensorFacts,
} from "./policy.ts";

/**
 * What is without effect, one line each.
 *
 * @param tensors Those of weights.
 * @throws {RangeError} As {@linkcode chooseFormat}.
 */
export function findIdleParts(
  policy: QuantPolicy,
  tensors: readonly TensorFacts[],
  model: ModelFacts,
): string[] {
  const choices = tensors.map((tensor) => chooseFormat(policy, tensor, model));
  const idle = isNamedPolicy(policy) ? [] : policy.rules.flatMap((rule, i) => {
    const isUsed = choices.some((choice) => choice.rule === i + 1);
    return isUsed ? [] : [`rule ${i + 1} of the policy ${whyIdle(rule, policy, tensors, model)}`];
  });
  const shares = [policy, ...policy.rules].some(({ outliers = 0 }) => outliers > 0);
  if (shares && choices.every(({ outliers }) => outliers === 0)) {
    idle.push(
      "no outliers are kept apart: no matrix to multiply by is large enough and gets a format of blocks",
    );
  }
  const wanted = policy.format.toUpperCase();
  const others = choices.filter(({ insteadOf }) => insteadOf === wanted);
  const isMet = choices.some(({ rule, format, insteadOf }) => rule === 0 && format && !insteadOf);
  if (others.length > 0 && !isMet) {
    const names = [...new Set(others.map(({ format }) => format!.name))].join(", ");
    idle.push(`no tensor is stored as ${wanted}: no row fills its blocks, ${names} stands in`);
  }
  return idle;
}

function whyIdle(
  rule: PolicyRule,
  policy: QuantPolicy,
  tensors: readonly TensorFacts[],
  model: ModelFacts,
): string {
  const fitting = tensors.filter((tensor) => ruleFits(rule, policy, tensor, model)).length;
  if (fitting > 0) return `is without effect: rules before it decide for the ${fitting} it fits`;
  const { pattern, roles } = rule;
  if (pattern === undefined) return "fits no tensor";
  const quoted = JSON.stringify(pattern);
  const found = tensors.filter(({ name }) => new RegExp(pattern).test(name));
  if (found.length === 0) return `fits no tensor: no name contains its pattern ${quoted}`;
  const anyRole = { pattern, format: rule.format };
  if (!roles && !found.some((tensor) => ruleFits(anyRole, policy, tensor, model))) {
    return `fits no tensor: ${quoted} is in names of norms, biases, routers or tables only, which are ` +
      'kept unless "roles" names them';
  }
  return `fits no tensor: those whose names contain ${quoted} do not meet its other conditions`;
}
