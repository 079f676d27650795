// A policy as JSON, in a file of the user's: the same object as in policy.ts, checked key by key, so that
// a misspelt one is not silently without effect.

import { findFormat, isFormatName } from "./mod.ts";
import { MOST_OUTLIERS } from "./outliers.ts";
import type { PolicyRule, QuantPolicy } from "./policy.ts";
import { TENSOR_ROLES } from "./tensor_roles.ts";

type Check = (value: unknown) => boolean;
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText: Check = (value) => typeof value === "string" && value !== "";
const isRecord: Check = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const POLICY_KEYS: Readonly<Record<string, Check>> = {
  name: isText,
  format: isFormat,
  rules: Array.isArray,
  outliers: isShare,
};
const RULE_KEYS: Readonly<Record<string, Check>> = {
  roles: (value) => Array.isArray(value) && value.every((role) => TENSOR_ROLES.includes(role)),
  pattern: (value) => isText(value) && isPattern(value as string),
  layers: isRecord,
  queryGroup: isCount,
  experts: isCount,
  below: isCount,
  format: isFormat,
  outliers: isShare,
};
const LAYER_KEYS: Readonly<Record<string, Check>> = {
  first: isCount,
  firstShare: (value) => isCount(value) && value !== 0,
  favoured: (value) => value === true,
};

/**
 * The policy of a JSON text.
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
  checkKeys("the policy", json, POLICY_KEYS, ["format"]);
  const { name = "policy", format, rules = [], outliers } = json as {
    name?: string;
    format: string;
    rules?: readonly PolicyRule[];
    outliers?: number;
  };
  for (const [i, rule] of rules.entries()) {
    checkKeys(`rule ${i + 1} of the policy`, rule, RULE_KEYS, ["format"]);
    if (rule.layers) checkKeys(`layers of rule ${i + 1}`, rule.layers, LAYER_KEYS, []);
  }
  return { name, format, rules, ...outliers !== undefined && { outliers } };
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
    if (!check(part)) {
      throw new RangeError(`Cannot use ${what}: "${key}" is ${JSON.stringify(part)}`);
    }
  }
  const missing = required.find((key) => !Object.hasOwn(value as object, key));
  if (missing) throw new RangeError(`Cannot use ${what}: "${missing}" is missing`);
}

function isFormat(value: unknown): boolean {
  if (value === "keep") return true;
  // Rows of 256 suit every format whose block is a row.
  return typeof value === "string" && isFormatName(value) && !!findFormat(value, 256).encode;
}

function isShare(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= MOST_OUTLIERS;
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
