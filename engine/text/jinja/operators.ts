// Python's operators of arithmetic. Integers are exact or refused; floats divide and take remainders as CPython does,
// which is not what flooring a quotient gives (1 // 0.1 is 9).

import type { Budget } from "./budget.ts";
import { escapeText } from "./escape.ts";
import { fail } from "./failure.ts";
import { formatPercent } from "./format_text.ts";
import { plainText } from "./python_text.ts";
import type { BinaryOperator } from "./syntax.ts";
import {
  defined,
  floatValue,
  integerValue,
  isFloat,
  isList,
  isMarkup,
  isNumber,
  isTrue,
  isTuple,
  kindOf,
  listOfKind,
  markupValue,
  plainNumber,
  textOf,
  typeName,
  type Value,
} from "./values.ts";

/** The signs and `not`. */
export function applySign(operator: "-" | "+" | "not", value: Value): Value {
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

/** Python's remainder, which has the sign of the divisor. */
function remainder(a: number, b: number): number {
  const rest = a % nonZero(b);
  if (rest === 0) return b < 0 ? -0 : 0;
  return rest < 0 === b < 0 ? rest : rest + b;
}

/** Python's `//`: of what the remainder leaves. */
function floorDivide(a: number, b: number): number {
  const rest = a % nonZero(b);
  const quotient = (a - rest) / b - Number(rest !== 0 && rest < 0 !== b < 0);
  if (quotient === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

function raise(a: number, b: number): number {
  if (a === 0 && b < 0) return fail("0.0 cannot be raised to a negative power");
  const result = a ** b;
  if (Number.isNaN(result) && !Number.isNaN(a) && !Number.isNaN(b)) {
    fail("a complex number is none");
  }
  if (!Number.isFinite(result) && Number.isFinite(a) && Number.isFinite(b)) {
    fail("the power is too large");
  }
  return result;
}

const addNumbers = arithmetic("+", (a, b) => a + b);
const power = arithmetic("**", raise);
const floatPower = arithmetic("**", raise, true);
const multiplyNumbers = arithmetic("*", (a, b) => a * b);
const modulo = arithmetic("%", remainder);

function add(left: Value, right: Value, budget: Budget): Value {
  const [a, b] = [textOf(left), textOf(right)];
  if (a !== undefined && b !== undefined) {
    budget.spend(6 * (a.length + b.length));
    if (!isMarkup(left) && !isMarkup(right)) return a + b;
    return markupValue(escapeText(left) + escapeText(right));
  }
  if (isList(left) && isList(right) && isTuple(left) === isTuple(right)) {
    budget.spend(left.length + right.length);
    if (isTuple(left)) return listOfKind("tuple", { items: [...left, ...right] });
    if (kindOf(left) === "list" && kindOf(right) === "list") return [...left, ...right];
  }
  return addNumbers(left, right, budget);
}

function isRepeated(value: Value): value is readonly Value[] {
  return isList(value) && (kindOf(value) === "list" || isTuple(value));
}

function multiply(left: Value, right: Value, budget: Budget): Value {
  const isSequence = (value: Value) => textOf(value) !== undefined || isRepeated(value);
  if (isNumber(left) && isSequence(right)) return multiply(right, left, budget);
  if (!isSequence(left)) return multiplyNumbers(left, right, budget);
  defined(right);
  if (!isNumber(right) || isFloat(right)) return fail(`cannot repeat by a ${typeName(right)}`);
  const times = Math.max(0, plainNumber(right));
  const text = textOf(left);
  if (text !== undefined) {
    budget.spend(times * text.length);
    return isMarkup(left) ? markupValue(text.repeat(times)) : text.repeat(times);
  }
  const list = left as readonly Value[];
  budget.spend(times * list.length);
  const items: Value[] = Array(times).fill(list).flat(1);
  return isTuple(list) ? listOfKind("tuple", { items }) : items;
}

/** Operators by their sign. */
export const BINARY: Readonly<Record<BinaryOperator, Operation>> = {
  "+": add,
  "-": arithmetic("-", (a, b) => a - b),
  "*": multiply,
  "/": arithmetic("/", (a, b) => a / nonZero(b), true),
  "//": arithmetic("//", floorDivide),
  "%": (left, right, budget) => {
    if (isMarkup(left)) return fail("formatting marked text is not supported");
    return typeof left === "string"
      ? formatPercent(left, { right, budget })
      : modulo(left, right, budget);
  },
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
