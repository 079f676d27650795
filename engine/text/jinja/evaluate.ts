// Values of expressions: one function for each type of node. Python's rules for operators, Jinja's for
// attributes and missing values, and the sandbox's for what must not be reached.

import { getAttribute, getItem, getSlice } from "./access.ts";
import type { Budget } from "./budget.ts";
import type { Call } from "./call_arguments.ts";
import { fail, TemplateFailure } from "./failure.ts";
import { applyFilter } from "./filters.ts";
import { applySign, BINARY } from "./operators.ts";
import { applyPredicate, COMPARE } from "./predicates.ts";
import type { Application, Arguments, Expression } from "./syntax.ts";
import {
  defined,
  dictKey,
  isCallable,
  isDict,
  isNamespace,
  isNumber,
  isTrue,
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
  signedPower({ base, exponent }, scope) {
    const left = evaluate(base, scope);
    const right = evaluate(exponent, scope);
    const number = isNumber(left) ? plainNumber(left) : 0;
    const hasSign = number < 0 || Object.is(number, -0);
    if (!hasSign) return BINARY["**"](left, right, scope.budget);
    return applySign("-", BINARY["**"](applySign("-", left), right, scope.budget));
  },
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
  attribute: ({ object, name }, scope) =>
    getAttribute(evaluate(object, scope), { name, budget: scope.budget }),
  item: ({ object, key }, scope) =>
    getItem(evaluate(object, scope), { key: evaluate(key, scope), budget: scope.budget }),
  slice({ object, start, stop, step }, scope) {
    const bound = (node: Expression | undefined) =>
      node === undefined ? null : evaluate(node, scope);
    const bounds = { start: bound(start), stop: bound(stop), step: bound(step) };
    return getSlice(evaluate(object, scope), { bounds, budget: scope.budget });
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
  filter: ({ input, filter }, scope) =>
    filterValue(evaluate(input, scope), { application: filter, scope }),
  test({ input, test, isNegated }, scope) {
    const value = evaluate(input, scope);
    const call = { ...evaluateArguments(test.args, scope), name: test.name, budget: scope.budget };
    return applyPredicate(value, call) !== isNegated;
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
export function filterValue(
  value: Value,
  { application: { name, args, line }, scope }: {
    readonly application: Application;
    readonly scope: Scope;
  },
): Value {
  try {
    return applyFilter(value, { name, ...evaluateArguments(args, scope), budget: scope.budget });
  } catch (error) {
    if (error instanceof TemplateFailure && error.line === 0) error.line = line;
    throw error;
  }
}
