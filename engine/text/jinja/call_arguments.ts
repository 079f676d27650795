// Arguments of a call, bound to the names of parameters, with Python's complaints.

import type { Budget } from "./budget.ts";
import { fail } from "./failure.ts";
import {
  defined,
  isFloat,
  isNumber,
  isUndefined,
  plainNumber,
  textOf,
  typeName,
  undefinedValue,
  type Value,
} from "./values.ts";

/** Everything a built-in may look at. */
export interface Call {
  readonly name: string;
  readonly args: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
  readonly budget: Budget;
}

/** Values of parameters in order; missing ones are undefined, unknown or surplus ones are refused. */
export function bind(call: Call, ...parameters: string[]): Value[] {
  const { name, args, named } = call;
  if (args.length > parameters.length) {
    fail(`${name} takes ${parameters.length} arguments, ${args.length} given`);
  }
  for (const key of named.keys()) {
    if (!parameters.includes(key)) fail(`${name} has no argument '${key}'`);
  }
  return parameters.map((parameter, i) => {
    if (i < args.length) return args[i];
    const value = named.get(parameter);
    return value === undefined
      ? undefinedValue(`${name} needs its argument '${parameter}'`)
      : value;
  });
}

/** A text argument, or a default. */
export function textArgument(value: Value, fallback?: string): string {
  if (isUndefined(value) && fallback !== undefined) return fallback;
  const text = textOf(value);
  if (text !== undefined) return text;
  defined(value);
  return fail(`expected a text, not ${typeName(value)}`);
}

/** An integer argument, or a default. */
export function integerArgument(value: Value, fallback?: number): number {
  if (isUndefined(value) && fallback !== undefined) return fallback;
  if (isNumber(value) && !isFloat(value)) return plainNumber(value);
  defined(value);
  return fail(`expected an integer, not ${typeName(value)}`);
}
