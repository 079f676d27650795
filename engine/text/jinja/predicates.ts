// Jinja's tests, the words behind `is`: one row for each.

import { fail } from "./failure.ts";
import {
  areEqual,
  compare,
  defined,
  dictKey,
  isCallable,
  isDict,
  isFloat,
  isList,
  isNumber,
  isUndefined,
  plainNumber,
  typeName,
  type Value,
} from "./values.ts";

type Predicate = (value: Value, argument: Value) => boolean;

function wholeNumber(value: Value): number {
  defined(value);
  return isNumber(value) ? plainNumber(value) : fail(`expected a number, not ${typeName(value)}`);
}

/** Python's `in`. */
export function isIn(value: Value, container: Value): boolean {
  if (isUndefined(container)) return false;
  if (typeof container === "string") {
    defined(value);
    return typeof value === "string"
      ? container.includes(value)
      : fail(`cannot look for a ${typeName(value)} in a text`);
  }
  if (isList(container)) return container.some((item) => areEqual(item, value));
  if (isDict(container)) return container.has(dictKey(value));
  return fail(`cannot look for a value in a ${typeName(container)}`);
}

const isEqual: Predicate = areEqual;
const isLess: Predicate = (value, other) => compare(value, other) < 0;
const isLessOrEqual: Predicate = (value, other) => compare(value, other) <= 0;

const ROWS: ReadonlyMap<string, Predicate> = new Map<string, Predicate>([
  ["boolean", (value) => typeof value === "boolean"],
  ["callable", isCallable],
  ["defined", (value) => !isUndefined(value)],
  ["divisibleby", (value, by) => wholeNumber(value) % wholeNumber(by) === 0],
  ["eq", isEqual],
  ["equalto", isEqual],
  ["==", isEqual],
  ["even", (value) => wholeNumber(value) % 2 === 0],
  ["false", (value) => value === false],
  ["float", isFloat],
  ["ge", (value, other) => isLessOrEqual(other, value)],
  [">=", (value, other) => isLessOrEqual(other, value)],
  ["gt", (value, other) => isLess(other, value)],
  [">", (value, other) => isLess(other, value)],
  ["greaterthan", (value, other) => isLess(other, value)],
  ["in", isIn],
  ["integer", (value) => typeof value === "number" && Number.isInteger(value)],
  ["iterable", (value) => typeof value === "string" || isList(value) || isDict(value)],
  ["le", isLessOrEqual],
  ["<=", isLessOrEqual],
  [
    "lower",
    (value) => typeof value === "string" && /\p{L}/u.test(value) && value === value.toLowerCase(),
  ],
  ["lt", isLess],
  ["<", isLess],
  ["lessthan", isLess],
  ["mapping", isDict],
  ["ne", (value, other) => !areEqual(value, other)],
  ["!=", (value, other) => !areEqual(value, other)],
  ["none", (value) => value === null],
  ["number", (value) => isNumber(value)],
  ["odd", (value) => Math.abs(wholeNumber(value) % 2) === 1],
  ["sameas", (value, other) => value === other],
  ["sequence", (value) => typeof value === "string" || isList(value) || isDict(value)],
  ["string", (value) => typeof value === "string"],
  ["true", (value) => value === true],
  ["undefined", isUndefined],
  [
    "upper",
    (value) => typeof value === "string" && /\p{L}/u.test(value) && value === value.toUpperCase(),
  ],
]);

/** Names of all tests. */
export const PREDICATE_NAMES: ReadonlySet<string> = new Set(ROWS.keys());

/** Applies a test. */
export function applyPredicate(name: string, value: Value, argument: Value): boolean {
  const row = ROWS.get(name);
  return row === undefined ? fail(`No test named '${name}'`) : row(value, argument);
}
