// A policy as JSON, in a file of the user's: the same object as in policy.ts, checked key by key, so that
// a misspelt one is not silently without effect.

import { encodedNames, hasEncoder, isFormatName } from "../../quant/mod.ts";
import { MOST_OUTLIERS } from "../../quant/outliers.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import { TENSOR_ROLES } from "../../quant/tensor_roles.ts";
import {
  COUNT,
  LIST,
  listOf,
  OBJECT,
  oneOf,
  recordReader,
  type ValueRule,
  valueRule,
  whole,
} from "../record.ts";

/** What is wrong with a value, as an end of the sentence, or undefined. */
type Check = (value: unknown) => string | undefined;

function must({ wanted, accepts }: ValueRule): Check {
  return (value) => accepts(value) ? undefined : `it must be ${wanted}`;
}

const count = must(COUNT);
const text = must(valueRule("a text", (value) => typeof value === "string" && value !== ""));
const share = must(valueRule(
  `a number from 0 to ${MOST_OUTLIERS}`,
  (value) => typeof value === "number" && value >= 0 && value <= MOST_OUTLIERS,
));
const roles = listOf(oneOf(TENSOR_ROLES, ""), `a list of ${TENSOR_ROLES.join(", ")}`);

const POLICY_KEYS: Readonly<Record<string, Check>> = {
  name: text,
  format: checkFormat,
  rules: must({ ...LIST, wanted: "a list of rules" }),
  outliers: share,
  ggufFileType: count,
};
const RULE_KEYS: Readonly<Record<string, Check>> = {
  roles: must(valueRule(roles.wanted, (value) => roles.accepts(value) && value.length > 0)),
  pattern: checkPattern,
  layers: must(OBJECT),
  queryGroup: count,
  experts: count,
  below: count,
  format: checkFormat,
  outliers: share,
};
const LAYER_KEYS: Readonly<Record<string, Check>> = {
  first: count,
  firstShare: must(whole("a whole number, 1 or more", { least: 1 })),
  favoured: must(oneOf([true], "true, or left out")),
};

/**
 * The policy of a JSON text, such as `{"format":"q4_k","rules":[{"roles":["ffn_down"],"format":"q6_k"}]}`.
 *
 * @throws {RangeError} If it is no JSON, or a key or value is not one of a policy.
 *
 * @example
 * ```ts
 * import { parsePolicy, quantError } from "@troodon/troodon";
 *
 * const policy = parsePolicy('{"format":"q4_0","rules":[{"roles":["ffn_down"],"format":"q8_0"}]}');
 * console.log((await quantError("model.gguf", { format: policy })).total);
 * ```
 * @category Number formats
 */
export function parsePolicy(text: string): QuantPolicy {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new RangeError(`Cannot read the policy: ${(error as Error).message}`);
  }
  return checkPolicy(json);
}

/**
 * A policy of plain data; its name and its rules may be left out.
 *
 * @throws {RangeError} If a key or value is not one of a policy.
 */
export function checkPolicy(json: unknown): QuantPolicy {
  checkKeys("the policy", json, POLICY_KEYS);
  const { name = "policy", rules = [], ...others } = json as QuantPolicy;
  for (const [i, rule] of rules.entries()) {
    checkKeys(`rule ${i + 1} of the policy`, rule, RULE_KEYS);
    if (rule.layers) checkKeys(`layers of rule ${i + 1}`, rule.layers, LAYER_KEYS);
  }
  return { ...others, name, rules };
}

function checkKeys(what: string, value: unknown, keys: Readonly<Record<string, Check>>): void {
  const fail = (message: string): never => {
    throw new RangeError(`Cannot use ${what}: ${message}`);
  };
  if (!OBJECT.accepts(value)) fail("it must be an object");
  recordReader<Check>({
    unknown: (key, known) => fail(`"${key}" is not one of ${known}`),
    absent: (key) => key === "format" ? fail(`"${key}" is missing`) : undefined,
    read(key, part, check) {
      const fault = check(part);
      if (fault !== undefined) fail(`"${key}" is ${JSON.stringify(part)}, ${fault}`);
    },
  })(value as object, keys);
}

function checkFormat(value: unknown): string | undefined {
  if (value === "keep") return undefined;
  const isKnown = typeof value === "string" && isFormatName(value);
  if (isKnown && hasEncoder(value)) return undefined;
  const names = encodedNames().join(", ");
  return isKnown
    ? `which has no public encoder; those that have one are ${names}`
    : `which is no number format: known are keep, ${names}`;
}

function checkPattern(value: unknown): string | undefined {
  if (text(value) !== undefined) return text(value);
  try {
    new RegExp(value as string);
    return undefined;
  } catch (error) {
    return `which is no regular expression (${(error as Error).message})`;
  }
}
