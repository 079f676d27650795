// Jinja's tests, the words behind `is`: one row for each.

import { bind, type Call } from "./call_arguments.ts";
import { fail } from "./failure.ts";
import { asNumber } from "./filter_arguments.ts";
import { formatPercent } from "./format_text.ts";
import { plainText } from "./python_text.ts";
import { REFUSED_FILTERS } from "./refused.ts";
import type { CompareOperator } from "./syntax.ts";
import { isLowerText, isUpperText } from "./text_case.ts";
import {
  areEqual,
  compare,
  defined,
  dictKey,
  isCallable,
  isDict,
  isFloat,
  isIndexed,
  isList,
  isMarkup,
  isNamespace,
  isNumber,
  isUndefined,
  kindOf,
  textOf,
  typeName,
  type Value,
} from "./values.ts";

/** A test: what stands before `is`, and the argument of those that take one. */
type Predicate = (value: Value, argument: Value, call: Call) => boolean;

/** Whether a number leaves a remainder. Of a text, Python's `%` makes another text, which is no number. */
function leaves(rest: number, value: Value, by: Value, { budget }: Call): boolean {
  const text = textOf(value);
  if (text !== undefined) return formatPercent(text, { right: by, budget }) === undefined;
  const divisor = asNumber(by);
  return divisor === 0 ? fail("division by zero") : Math.abs(asNumber(value) % divisor) === rest;
}

/** Python's `in`. */
function isIn(value: Value, container: Value): boolean {
  if (isUndefined(container)) return false;
  const text = textOf(container);
  if (text !== undefined) {
    defined(value);
    const wanted = textOf(value);
    return wanted === undefined
      ? fail(`cannot look for a ${typeName(value)} in a text`)
      : text.includes(wanted);
  }
  if (isList(container)) {
    if (kindOf(container) === "dict_keys") dictKey(value);
    if (kindOf(container) !== "generator") return container.some((item) => areEqual(item, value));
    // A generator is gone through as far as the value.
    const rest = container as Value[];
    while (rest.length > 0) if (areEqual(rest.shift()!, value)) return true;
    return false;
  }
  if (isDict(container)) return container.has(dictKey(value));
  return fail(`cannot look for a value in a ${typeName(container)}`);
}

/** Comparisons by their operators. */
export const COMPARE: Readonly<Record<CompareOperator, (a: Value, b: Value) => boolean>> = {
  "==": areEqual,
  "!=": (a, b) => !areEqual(a, b),
  "<": (a, b) => compare(a, b) < 0,
  "<=": (a, b) => compare(a, b) <= 0,
  ">": (a, b) => compare(a, b) > 0,
  ">=": (a, b) => compare(a, b) >= 0,
  "in": isIn,
  "not in": (a, b) => !isIn(a, b),
};

/** Names of filters, which the table of filters fills in: it needs this one. */
export const FILTER_NAMES: Set<string> = new Set();

function isReached(value: Value): boolean {
  return textOf(value) !== undefined || isDict(value) || isUndefined(value);
}

const PLAIN: ReadonlyMap<string, Predicate> = new Map<string, Predicate>([
  ["boolean", (value) => typeof value === "boolean"],
  [
    "callable",
    (value) => isCallable(value) || isUndefined(value) || (isNamespace(value) && !!value.call),
  ],
  ["defined", (value) => !isUndefined(value)],
  ["escaped", isMarkup],
  ["even", (value, _other, call) => leaves(0, value, 2, call)],
  ["false", (value) => value === false],
  ["filter", (name) => isNamed(name, FILTER_NAMES) || isNamed(name, REFUSED_FILTERS)],
  ["float", isFloat],
  ["integer", (value) => typeof value === "number" && !isFloat(value)],
  [
    "iterable",
    (value) =>
      isReached(value) || isList(value) ||
      (isNamespace(value) && value.type === "LoopContext"),
  ],
  ["lower", (value, _other, { budget }) => isLowerText(plainText(value, budget))],
  ["mapping", isDict],
  ["none", (value) => value === null],
  ["number", (value) => isNumber(value)],
  ["odd", (value, _other, call) => leaves(1, value, 2, call)],
  ["sequence", (value) => isReached(value) || (isList(value) && isIndexed(value))],
  ["string", (value) => textOf(value) !== undefined],
  ["test", (name) => isNamed(name, PREDICATE_NAMES)],
  ["true", (value) => value === true],
  ["undefined", isUndefined],
  ["upper", (value, _other, { budget }) => isUpperText(plainText(value, budget))],
]);

/** Tests of two values, and what the second is called. */
const BESIDE: ReadonlyMap<string, readonly [string, Predicate]> = new Map<
  string,
  readonly [string, Predicate]
>([
  ...([
    ["==", "eq", "equalto"],
    ["!=", "ne"],
    ["<", "lt", "lessthan"],
    ["<=", "le"],
    [">", "gt", "greaterthan"],
    [">=", "ge"],
  ] as const).flatMap((names) =>
    names.map((name) => [name, ["b", COMPARE[names[0]]] as const] as const)
  ),
  ["divisibleby", ["num", (value, by, call) => leaves(0, value, by, call)]],
  ["in", ["seq", isIn]],
  ["sameas", ["other", isSame]],
]);

/** Names of all tests. */
export const PREDICATE_NAMES: ReadonlySet<string> = new Set([...PLAIN.keys(), ...BESIDE.keys()]);

const UNHASHABLE: readonly string[] = ["dict", "dict_items", "dict_keys", "list"];

function isNamed(name: Value, names: { has(name: string): boolean }): boolean {
  if (UNHASHABLE.includes(typeName(name))) fail(`unhashable type: '${typeName(name)}'`);
  const text = textOf(name);
  return text !== undefined && names.has(text);
}

/** Python's `is`, where it does not depend on which equal values are kept once. */
function isSame(value: Value, other: Value): boolean {
  return value === other || (isUndefined(value) && isUndefined(other) && value.why === other.why);
}

/** Applies the test that a call names. */
export function applyPredicate(value: Value, call: Call): boolean {
  const plain = PLAIN.get(call.name);
  if (plain !== undefined) {
    bind(call);
    return plain(value, null, call);
  }
  const row = BESIDE.get(call.name) ?? fail(`No test named '${call.name}'`);
  const [name, holds] = row;
  if (call.args.length + call.named.size === 0) {
    fail(`the test '${call.name}' needs an argument`);
  }
  return holds(value, bind(call, name)[0], call);
}
