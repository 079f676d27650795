// Values of expressions: one function for each type of node. Python's rules for operators, Jinja's for
// attributes and missing values, and the sandbox's for what must not be reached.

import type { Budget } from "./budget.ts";
import type { Call } from "./call_arguments.ts";
import { fail, TemplateFailure } from "./failure.ts";
import { applyFilter } from "./filters.ts";
import { applyPredicate, isIn } from "./predicates.ts";
import { plainText } from "./python_text.ts";
import type {
  Application,
  Arguments,
  BinaryOperator,
  CompareOperator,
  Expression,
} from "./syntax.ts";
import { DICT_METHODS, FORBIDDEN_METHODS, LIST_METHODS, TEXT_METHODS } from "./text_methods.ts";
import {
  areEqual,
  compare,
  defined,
  dictKey,
  floatValue,
  integerValue,
  isCallable,
  isDict,
  isFloat,
  isList,
  isNamespace,
  isNumber,
  isTrue,
  isUndefined,
  iterate,
  plainNumber,
  tupleValue,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

/** Names and their values, with the scope around them. */
export interface Scope {
  readonly values: Map<string, Value>;
  readonly outer: Scope | undefined;
  readonly budget: Budget;
}

/** Finds a name. */
export function lookUp(scope: Scope, name: string): Value {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.outer) {
    const value = at.values.get(name);
    if (value !== undefined) return value;
  }
  return undefinedValue(`'${name}' is undefined`);
}

type Node<T extends Expression["type"]> = Extract<Expression, { type: T }>;
type Evaluators = { [T in Expression["type"]]: (node: Node<T>, scope: Scope) => Value };

const EVALUATORS: Evaluators = {
  literal: ({ value }) => value,
  name: ({ name }, scope) => lookUp(scope, name),
  list({ items, isTuple }, scope) {
    const values = items.map((item) => evaluate(item, scope));
    return isTuple ? tupleValue(values) : values;
  },
  dict: ({ pairs }, scope) =>
    new Map(pairs.map(([key, value]) => [dictKey(evaluate(key, scope)), evaluate(value, scope)])),
  unary: ({ operator, operand }, scope) => applySign(operator, evaluate(operand, scope)),
  binary: ({ operator, left, right }, scope) =>
    BINARY[operator](evaluate(left, scope), evaluate(right, scope), scope.budget),
  logic({ operator, left, right }, scope) {
    const value = evaluate(left, scope);
    return isTrue(value) === (operator === "and") ? evaluate(right, scope) : value;
  },
  compare({ first, rest }, scope) {
    let left = evaluate(first, scope);
    for (const [operator, node] of rest) {
      const right = evaluate(node, scope);
      if (!COMPARE[operator](left, right)) return false;
      left = right;
    }
    return true;
  },
  conditional({ test, then, otherwise }, scope) {
    if (isTrue(evaluate(test, scope))) return evaluate(then, scope);
    return otherwise === undefined
      ? undefinedValue("the condition has no else")
      : evaluate(otherwise, scope);
  },
  attribute: ({ object, name }, scope) => getAttribute(evaluate(object, scope), name, scope.budget),
  item: ({ object, key }, scope) =>
    getItem(evaluate(object, scope), evaluate(key, scope), scope.budget),
  slice({ object, start, stop, step }, scope) {
    const bound = (node: Expression | undefined) =>
      node === undefined ? null : evaluate(node, scope);
    return slice(evaluate(object, scope), bound(start), bound(stop), bound(step), scope.budget);
  },
  call({ callee, args }, scope) {
    const target = defined(evaluate(callee, scope));
    const run = isCallable(target) || isNamespace(target) ? target.call : undefined;
    if (run === undefined) return fail(`a ${typeName(target)} cannot be called`);
    const { args: positional, named } = evaluateArguments(args, scope);
    scope.budget.enter();
    const result = run(positional, named);
    scope.budget.leave();
    return result;
  },
  filter: ({ input, filter }, scope) => filterValue(evaluate(input, scope), filter, scope),
  test({ input, test, isNegated }, scope) {
    const value = evaluate(input, scope);
    const argument = test.args.positional[0];
    const given = argument === undefined
      ? undefinedValue(`the test '${test.name}' needs an argument`)
      : evaluate(argument, scope);
    return applyPredicate(test.name, value, given) !== isNegated;
  },
};

/** The value of an expression. A refusal learns the line of the innermost node that it came through. */
export function evaluate(node: Expression, scope: Scope): Value {
  scope.budget.spend(1);
  try {
    return (EVALUATORS[node.type] as (node: Expression, scope: Scope) => Value)(node, scope);
  } catch (error) {
    if (error instanceof TemplateFailure && error.line === 0) error.line = node.line;
    throw error;
  }
}

function evaluateArguments(
  { positional, named, spread, spreadNamed }: Arguments,
  scope: Scope,
): Pick<Call, "args" | "named"> {
  const args = positional.map((node) => evaluate(node, scope));
  if (spread !== undefined) {
    const more = iterate(evaluate(spread, scope));
    scope.budget.spend(more.length);
    for (const value of more) args.push(value);
  }
  const byName = new Map(named.map(([name, node]) => [name, evaluate(node, scope)]));
  if (spreadNamed !== undefined) {
    const dict = evaluate(spreadNamed, scope);
    if (!isDict(dict)) return fail("expected a dict behind '**'");
    for (const [name, value] of dict) byName.set(String(name), value);
  }
  return { args, named: byName };
}

/** Applies a filter to a value. */
export function filterValue(value: Value, { name, args, line }: Application, scope: Scope): Value {
  try {
    return applyFilter(value, { name, ...evaluateArguments(args, scope), budget: scope.budget });
  } catch (error) {
    if (error instanceof TemplateFailure && error.line === 0) error.line = line;
    throw error;
  }
}

function applySign(operator: "-" | "+" | "not", value: Value): Value {
  if (operator === "not") return !isTrue(value);
  defined(value);
  if (!isNumber(value)) return fail(`a ${typeName(value)} has no sign`);
  const number = operator === "-" ? -plainNumber(value) : plainNumber(value);
  return isFloat(value) ? floatValue(number) : integerValue(number);
}

type Operation = (left: Value, right: Value, budget: Budget) => Value;

function arithmetic(
  sign: string,
  compute: (a: number, b: number) => number,
  isAlwaysFloat = false,
): Operation {
  return (left, right) => {
    defined(left);
    defined(right);
    if (!isNumber(left) || !isNumber(right)) {
      return fail(`${typeName(left)} ${sign} ${typeName(right)} cannot be computed`);
    }
    const result = compute(plainNumber(left), plainNumber(right));
    return isAlwaysFloat || isFloat(left) || isFloat(right)
      ? floatValue(result)
      : integerValue(result);
  };
}

function nonZero(value: number): number {
  return value === 0 ? fail("division by zero") : value;
}

const addNumbers = arithmetic("+", (a, b) => a + b);
const power = arithmetic("**", (a, b) => a ** b);
const floatPower = arithmetic("**", (a, b) => nonZero(a) ** b, true);
const multiplyNumbers = arithmetic("*", (a, b) => a * b);
const modulo = arithmetic("%", (a, b) => a - Math.floor(a / nonZero(b)) * b);

function add(left: Value, right: Value, budget: Budget): Value {
  if (typeof left === "string" && typeof right === "string") {
    budget.spend(left.length + right.length);
    return left + right;
  }
  if (isList(left) && isList(right)) {
    budget.spend(left.length + right.length);
    return [...left, ...right];
  }
  return addNumbers(left, right, budget);
}

function multiply(left: Value, right: Value, budget: Budget): Value {
  if (isNumber(left) && (typeof right === "string" || isList(right))) {
    return multiply(right, left, budget);
  }
  if (typeof left !== "string" && !isList(left)) return multiplyNumbers(left, right, budget);
  if (!isNumber(right) || isFloat(right)) return fail(`cannot repeat by a ${typeName(right)}`);
  const times = Math.max(0, plainNumber(right));
  budget.spend(times * left.length);
  return typeof left === "string" ? left.repeat(times) : Array(times).fill(left).flat(1);
}

const BINARY: Readonly<Record<BinaryOperator, Operation>> = {
  "+": add,
  "-": arithmetic("-", (a, b) => a - b),
  "*": multiply,
  "/": arithmetic("/", (a, b) => a / nonZero(b), true),
  "//": arithmetic("//", (a, b) => Math.floor(a / nonZero(b))),
  "%": (left, right, budget) =>
    typeof left === "string"
      ? fail("formatting with % is not supported")
      : modulo(left, right, budget),
  "**": (left, right, budget) =>
    isNumber(right) && plainNumber(right) < 0
      ? floatPower(left, right, budget)
      : power(left, right, budget),
  "~": (left, right, budget) => {
    const text = plainText(left, budget) + plainText(right, budget);
    budget.spend(text.length);
    return text;
  },
};

const COMPARE: Readonly<Record<CompareOperator, (a: Value, b: Value) => boolean>> = {
  "==": areEqual,
  "!=": (a, b) => !areEqual(a, b),
  "<": (a, b) => compare(a, b) < 0,
  "<=": (a, b) => compare(a, b) <= 0,
  ">": (a, b) => compare(a, b) > 0,
  ">=": (a, b) => compare(a, b) >= 0,
  "in": isIn,
  "not in": (a, b) => !isIn(a, b),
};

/** A method as a value that can be called. */
function findMethod(object: Value, name: string, budget: Budget): Value | undefined {
  const type = typeName(object);
  const wrap = <T extends Value>(
    method: ((self: T, call: Call) => Value) | undefined,
    self: T,
  ): Value | undefined =>
    method && {
      tag: "callable",
      name,
      call: (args, named) => method(self, { name, args, named, budget }),
    };
  if (FORBIDDEN_METHODS[type]?.includes(name)) return refuse(name, type);
  if (typeof object === "string") return wrap(TEXT_METHODS.get(name), object);
  if (isList(object)) return wrap(LIST_METHODS.get(name), object);
  return isDict(object) ? wrap(DICT_METHODS.get(name), object) : undefined;
}

function refuse(name: string, type: string): never {
  return fail(`access to attribute '${name}' of '${type}' object is unsafe`);
}

function missing(object: Value, name: string): Value {
  return undefinedValue(`'${typeName(object)} object' has no attribute '${name}'`);
}

function getAttribute(object: Value, name: string, budget: Budget): Value {
  defined(object);
  if (isNamespace(object)) return object.values.get(name) ?? missing(object, name);
  const method = findMethod(object, name, budget);
  if (method !== undefined) return method;
  const item = isDict(object) ? object.get(name) : undefined;
  if (item !== undefined) return item;
  if (name.startsWith("__")) return refuse(name, typeName(object));
  return missing(object, name);
}

function getItem(object: Value, key: Value, budget: Budget): Value {
  defined(object);
  defined(key);
  if (isDict(object)) {
    const found = isList(key) || isDict(key) ? undefined : object.get(dictKey(key));
    if (found !== undefined) return found;
  } else if (isNumber(key) && (isList(object) || typeof object === "string")) {
    const items = typeof object === "string" ? Array.from(object) : object;
    budget.spend(typeof object === "string" ? items.length : 1);
    return items.at(plainNumber(key)) ?? missing(object, String(plainNumber(key)));
  }
  return typeof key === "string"
    ? getAttribute(object, key, budget)
    : missing(object, plainText(key, budget));
}

function slice(object: Value, from: Value, to: Value, by: Value, budget: Budget): Value {
  defined(object);
  if (typeof object !== "string" && !isList(object)) {
    return fail(`a ${typeName(object)} cannot be sliced`);
  }
  const items = typeof object === "string" ? Array.from(object) : object;
  budget.spend(items.length);
  const bound = (value: Value): number | undefined =>
    value === null || isUndefined(value)
      ? undefined
      : isNumber(value)
      ? plainNumber(value)
      : fail("a slice needs integers");
  const step = bound(by) ?? 1;
  if (step === 0) return fail("a slice step cannot be zero");
  const [low, high] = step > 0 ? [0, items.length] : [-1, items.length - 1];
  const clamp = (value: number | undefined, fallback: number) =>
    value === undefined
      ? fallback
      : Math.max(low, Math.min(high, value < 0 ? value + items.length : value));
  const start = clamp(bound(from), step > 0 ? low : high);
  const stop = clamp(bound(to), step > 0 ? high : low);
  const taken: Value[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) taken.push(items[i]);
  return typeof object === "string" ? taken.join("") : taken;
}
