// What filters share: the value as text, as number, as items, and attributes by a dotted path.

import { getItem } from "./access.ts";
import { type Call, textArgument } from "./call_arguments.ts";
import { lengthOf } from "./characters.ts";
import { fail } from "./failure.ts";
import { plainText } from "./python_text.ts";
import {
  defined,
  isDict,
  isList,
  isNumber,
  isUndefined,
  iterate,
  kindOf,
  plainNumber,
  textOf,
  typeName,
  type Value,
} from "./values.ts";

/** A filter: the value in front of the bar, and the arguments. */
export type Filter = (value: Value, call: Call) => Value;

/** `str` of a value. */
export function asText(value: Value, call: Call): string {
  return plainText(value, call.budget);
}

/** What can be gone through; pays for its length. */
export function itemsOf(value: Value, call: Call): readonly Value[] {
  const items = iterate(value);
  call.budget.spend(items.length);
  return items;
}

/** A number, or a refusal. */
export function asNumber(value: Value): number {
  defined(value);
  return isNumber(value) ? plainNumber(value) : fail(`expected a number, not ${typeName(value)}`);
}

/** `a.b.0` of a value, as filters that take an attribute read it; every step may fall back. */
export function attributeOf(
  value: Value,
  path: Value,
  { budget, fallback }: Pick<Call, "budget"> & { fallback?: Value | undefined },
): Value {
  if (isUndefined(path) || path === null) return value;
  const parts = typeof path === "number" ? [path] : textArgument(path).split(".");
  return parts.reduce<Value>((object, part) => {
    const key = typeof part === "string" && /^\d+$/.test(part) ? Number(part) : part;
    const found = getItem(object, { key, budget });
    return isUndefined(found) && fallback !== undefined && fallback !== null ? fallback : found;
  }, value);
}

/** Lower case of texts, where case does not count. */
export function foldCase(value: Value, isCased: boolean): Value {
  return isCased ? value : textOf(value)?.toLowerCase() ?? value;
}

/** `len` of a value. */
export function lengthOfValue(value: Value): number {
  if (isUndefined(value)) return 0;
  const text = textOf(value);
  if (text !== undefined) return lengthOf(text);
  if (isList(value) && kindOf(value) !== "generator") return value.length;
  return isDict(value) ? value.size : fail(`a ${typeName(value)} has no length`);
}
