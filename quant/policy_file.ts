// A policy as JSON, in a file of the user's: the same object as in policy.ts, checked key by key, so that
// a misspelt one is not silently without effect.

import { encodedNames, hasEncoder, isFormatName } from "./mod.ts";
import { MOST_OUTLIERS } from "./outliers.ts";
import type { QuantPolicy } from "./policy.ts";
import { TENSOR_ROLES } from "./tensor_roles.ts";

/** What is wrong with a value, as an end of the sentence, or undefined. */
type Check = (value: unknown) => string | undefined;

function must(be: string, isRight: (value: unknown) => boolean): Check {
  return (value) => isRight(value) ? undefined : `it must be ${be}`;
}

const isRecord = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isWhole = (value: unknown, least: number): boolean =>
  Number.isSafeInteger(value) && (value as number) >= least;
const count = must("a whole number, 0 or more", (value) => isWhole(value, 0));
const text = must("a text", (value) => typeof value === "string" && value !== "");
const share = must(
  `a number from 0 to ${MOST_OUTLIERS}`,
  (value) => typeof value === "number" && value >= 0 && value <= MOST_OUTLIERS,
);

const POLICY_KEYS: Readonly<Record<string, Check>> = {
  name: text,
  format: checkFormat,
  rules: must("a list of rules", Array.isArray),
  outliers: share,
  ggufFileType: count,
};
const RULE_KEYS: Readonly<Record<string, Check>> = {
  roles: must(
    `a list of ${TENSOR_ROLES.join(", ")}`,
    (value) =>
      Array.isArray(value) && value.length > 0 &&
      value.every((role) => TENSOR_ROLES.includes(role)),
  ),
  pattern: checkPattern,
  layers: must("an object", isRecord),
  queryGroup: count,
  experts: count,
  below: count,
  format: checkFormat,
  outliers: share,
};
const LAYER_KEYS: Readonly<Record<string, Check>> = {
  first: count,
  firstShare: must("a whole number, 1 or more", (value) => isWhole(value, 1)),
  favoured: must("true, or left out", (value) => value === true),
};

/**
 * The policy of a JSON text, such as `{"format":"q4_k","rules":[{"roles":["ffn_down"],"format":"q6_k"}]}`.
 *
 * @throws {RangeError} If it is no JSON, or a key or value is not one of a policy.
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
  checkKeys("the policy", json, POLICY_KEYS, ["format"]);
  const { name = "policy", rules = [], ...others } = json as QuantPolicy;
  for (const [i, rule] of rules.entries()) {
    checkKeys(`rule ${i + 1} of the policy`, rule, RULE_KEYS, ["format"]);
    if (rule.layers) checkKeys(`layers of rule ${i + 1}`, rule.layers, LAYER_KEYS, []);
  }
  return { ...others, name, rules };
}

function checkKeys(
  what: string,
  value: unknown,
  keys: Readonly<Record<string, Check>>,
  required: readonly string[],
): void {
  if (!isRecord(value)) throw new RangeError(`Cannot use ${what}: it must be an object`);
  for (const [key, part] of Object.entries(value as object)) {
    const check = Object.hasOwn(keys, key) ? keys[key] : undefined;
    if (!check) {
      const known = Object.keys(keys).join(", ");
      throw new RangeError(`Cannot use ${what}: "${key}" is not one of ${known}`);
    }
    const fault = check(part);
    if (fault === undefined) continue;
    throw new RangeError(`Cannot use ${what}: "${key}" is ${JSON.stringify(part)}, ${fault}`);
  }
  const missing = required.find((key) => !Object.hasOwn(value as object, key));
  if (missing) throw new RangeError(`Cannot use ${what}: "${missing}" is missing`);
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
