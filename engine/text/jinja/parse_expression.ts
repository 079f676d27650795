// Expressions, by recursive descent; one rule for each level of precedence, weakest first, as in
// Jinja's parser: conditional, or, and, not, comparison, sum, concatenation, product, power, sign, postfix.

import { fail } from "./failure.ts";
import { checkFilter } from "./filters.ts";
import { unquote } from "./lexer.ts";
import { PREDICATE_NAMES } from "./predicates.ts";
import type {
  Application,
  Arguments,
  BinaryOperator,
  CompareOperator,
  Expression,
} from "./syntax.ts";
import type { TokenReader } from "./token_reader.ts";
import { floatValue, type Value } from "./values.ts";

const COMPARISONS: readonly string[] = ["==", "!=", "<", "<=", ">", ">="];
const CONSTANTS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
]);
const NO_ARGUMENTS: Arguments = { positional: [], named: [] };

/** Parses one expression; a comma ends it. */
export function parseExpression(reader: TokenReader): Expression {
  return reader.nested(() => parseConditional(reader));
}

/** Parses an expression that may be a tuple without parentheses. */
export function parseTuple(reader: TokenReader): Expression {
  const first = parseExpression(reader);
  if (!reader.isAt("operator", ",")) return first;
  const items = [first];
  while (reader.accept("operator", ",")) {
    const { type } = reader.peek();
    if (type === "statementEnd" || type === "outputEnd") break;
    items.push(parseExpression(reader));
  }
  return { type: "list", items, isTuple: true, line: first.line };
}

/** Parses what may stand behind `in` of a loop: no condition, since `if` there filters the loop. */
export function parseLoopList(reader: TokenReader): Expression {
  return reader.nested(() => parseOr(reader));
}

function parseConditional(reader: TokenReader): Expression {
  let value = parseOr(reader);
  while (reader.isAt("name", "if")) {
    const { line } = reader.next();
    const test = parseOr(reader);
    const otherwise = reader.accept("name", "else") ? parseExpression(reader) : undefined;
    value = { type: "conditional", test, then: value, otherwise, line };
  }
  return value;
}

type Parse = (reader: TokenReader) => Expression;

/** A level of one word that groups from the left. */
function logicOf(operator: "or" | "and", parseOperand: Parse): Parse {
  return (reader) => {
    let left = parseOperand(reader);
    while (reader.isAt("name", operator)) {
      const { line } = reader.next();
      left = { type: "logic", operator, left, right: parseOperand(reader), line };
    }
    return left;
  };
}

const parseOr = logicOf("or", logicOf("and", parseNot));

function parseNot(reader: TokenReader): Expression {
  if (!reader.isAt("name", "not")) return parseComparison(reader);
  const { line } = reader.next();
  return { type: "unary", operator: "not", operand: reader.nested(() => parseNot(reader)), line };
}

function comparisonAt(reader: TokenReader): CompareOperator | undefined {
  const { type, text } = reader.peek();
  if (type === "operator" && COMPARISONS.includes(text)) return text as CompareOperator;
  if (type !== "name") return undefined;
  if (text === "in") return "in";
  const following = reader.peek(1);
  return text === "not" && following.type === "name" && following.text === "in"
    ? "not in"
    : undefined;
}

function parseComparison(reader: TokenReader): Expression {
  const first = parseSum(reader);
  const rest: [CompareOperator, Expression][] = [];
  for (
    let operator = comparisonAt(reader);
    operator !== undefined;
    operator = comparisonAt(reader)
  ) {
    reader.next();
    if (operator === "not in") reader.next();
    rest.push([operator, parseSum(reader)]);
  }
  return rest.length === 0 ? first : { type: "compare", first, rest, line: first.line };
}

/** A level of operators that group from the left. */
function leftOf(operators: readonly string[], parseOperand: Parse): Parse {
  return (reader) => {
    let left = parseOperand(reader);
    while (reader.peek().type === "operator" && operators.includes(reader.peek().text)) {
      const { text, line } = reader.next();
      const operator = text as BinaryOperator;
      left = { type: "binary", operator, left, right: parseOperand(reader), line };
    }
    return left;
  };
}

const parseSum = leftOf(["+", "-"], leftOf(["~"], leftOf(["*", "/", "//", "%"], parsePower)));

// In Jinja, unlike Python, powers group from the left and a sign binds stronger. But a base that Jinja's compiler
// folds to a number stands bare in the Python it writes, where the power binds stronger than the sign:
// -3 ** z is -(3 ** z), x ** z of x = -3 is not, and neither is -3 ** 2, which is folded as a whole.
function parsePower(reader: TokenReader): Expression {
  let base = parseSigned(reader);
  while (reader.isAt("operator", "**")) {
    const { line } = reader.next();
    const exponent = parseSigned(reader);
    base = isFolded(base) && !isFolded(exponent)
      ? { type: "signedPower", base, exponent, line }
      : { type: "binary", operator: "**", left: base, right: exponent, line };
  }
  return base;
}

/** Filters that Jinja gives the context, for which it waits until it renders. */
const CONTEXT_FILTERS = ["map", "reject", "rejectattr", "select", "selectattr"];

/** Whether Jinja's compiler knows the value: nothing in it is a name, a call or a filter that wants the context. */
function isFolded(node: unknown): boolean {
  if (typeof node !== "object" || node === null) return true;
  const { type, filter } = node as Partial<Extract<Expression, { type: "filter" }>>;
  if (["name", "call"].includes(type as string)) return false;
  if (filter !== undefined && CONTEXT_FILTERS.includes(filter.name)) return false;
  return Object.values(node).every(isFolded);
}

function parseSigned(reader: TokenReader): Expression {
  return parseFilters(reader, parseSign(reader));
}

function parseSign(reader: TokenReader): Expression {
  const { type, text, line } = reader.peek();
  if (type === "operator" && (text === "-" || text === "+")) {
    reader.next();
    const operand = reader.nested(() => parseSign(reader));
    return { type: "unary", operator: text, operand, line };
  }
  return parsePostfix(reader, parsePrimary(reader));
}

function parsePrimary(reader: TokenReader): Expression {
  const token = reader.next();
  const { type, text, line } = token;
  if (type === "string") {
    let value = unquote(text, line);
    while (reader.peek().type === "string") value += unquote(reader.next().text, line);
    return { type: "literal", value, line };
  }
  if (type === "integer") return { type: "literal", value: parseInteger(text, line), line };
  if (type === "float") {
    return { type: "literal", value: floatValue(Number(text.replaceAll("_", ""))), line };
  }
  if (type === "name") {
    return CONSTANTS.has(text)
      ? { type: "literal", value: CONSTANTS.get(text) as Value, line }
      : { type: "name", name: text, line };
  }
  if (type === "operator" && text === "(") return parseGroup(reader, line);
  if (type === "operator" && text === "[") {
    return { type: "list", items: parseItems(reader, "]"), isTuple: false, line };
  }
  if (type === "operator" && text === "{") return parseDict(reader, line);
  if (type === "end") return fail("Unexpected end of template", line);
  return fail(`expected an expression, found ${text === "" ? "end of tag" : `'${text}'`}`, line);
}

function parseInteger(text: string, line: number): number {
  const value = Number(text.replaceAll("_", ""));
  return Number.isSafeInteger(value) ? value : fail(`the integer ${text} is too large`, line);
}

function parseItems(reader: TokenReader, end: string): Expression[] {
  const items: Expression[] = [];
  while (!reader.accept("operator", end)) {
    items.push(parseExpression(reader));
    if (!reader.isAt("operator", end)) reader.expect("operator", ",");
  }
  return items;
}

function parseGroup(reader: TokenReader, line: number): Expression {
  if (reader.accept("operator", ")")) return { type: "list", items: [], isTuple: true, line };
  const first = parseExpression(reader);
  if (reader.accept("operator", ")")) return first;
  reader.expect("operator", ",");
  return { type: "list", items: [first, ...parseItems(reader, ")")], isTuple: true, line };
}

function parseDict(reader: TokenReader, line: number): Expression {
  const pairs: [Expression, Expression][] = [];
  while (!reader.accept("operator", "}")) {
    const key = parseExpression(reader);
    reader.expect("operator", ":");
    pairs.push([key, parseExpression(reader)]);
    if (!reader.isAt("operator", "}")) reader.expect("operator", ",");
  }
  return { type: "dict", pairs, line };
}

/** Attributes, items and calls behind a value. */
function parsePostfix(reader: TokenReader, start: Expression): Expression {
  let value = start;
  while (true) {
    const { line } = reader.peek();
    if (reader.accept("operator", ".")) {
      const { type, text } = reader.next();
      if (type === "name") value = { type: "attribute", object: value, name: text, line };
      else if (type === "integer") {
        const key: Expression = { type: "literal", value: parseInteger(text, line), line };
        value = { type: "item", object: value, key, line };
      } else fail("expected a name behind '.'", line);
    } else if (reader.accept("operator", "[")) value = parseSubscript(reader, value, line);
    else if (reader.isAt("operator", "(")) {
      value = { type: "call", callee: value, args: parseArguments(reader), line };
    } else return value;
  }
}

function parseSubscript(reader: TokenReader, object: Expression, line: number): Expression {
  const bound = () =>
    reader.isAt("operator", ":") || reader.isAt("operator", "]")
      ? undefined
      : parseExpression(reader);
  const start = bound();
  if (reader.accept("operator", "]")) {
    return start === undefined
      ? fail("expected an expression between '[' and ']'", line)
      : { type: "item", object, key: start, line };
  }
  reader.expect("operator", ":");
  const stop = bound();
  const step = reader.accept("operator", ":") ? bound() : undefined;
  reader.expect("operator", "]");
  return { type: "slice", object, start, stop, step, line };
}

/** Parses arguments in parentheses. */
function parseArguments(reader: TokenReader): Arguments {
  const { line } = reader.expect("operator", "(");
  const positional: Expression[] = [];
  const named: [string, Expression][] = [];
  let spread: Expression | undefined;
  let spreadNamed: Expression | undefined;
  while (!reader.accept("operator", ")")) {
    const following = reader.peek(1);
    if (reader.accept("operator", "**")) spreadNamed = parseExpression(reader);
    else if (reader.accept("operator", "*")) spread = parseExpression(reader);
    else if (
      reader.peek().type === "name" && following.type === "operator" && following.text === "="
    ) {
      const name = reader.next().text;
      reader.next();
      named.push([name, parseExpression(reader)]);
    } else if (named.length > 0) fail("a positional argument behind a named one", line);
    else positional.push(parseExpression(reader));
    if (!reader.isAt("operator", ")")) reader.expect("operator", ",");
  }
  return {
    positional,
    named,
    ...(spread === undefined ? {} : { spread }),
    ...(spreadNamed === undefined ? {} : { spreadNamed }),
  };
}

/** A name, with more of them behind dots; no built-in has any, but Jinja reads them as one. */
function parseDottedName(reader: TokenReader): string {
  let { text } = reader.expect("name");
  while (reader.accept("operator", ".")) text += "." + reader.expect("name").text;
  return text;
}

/** Parses `name` or `name(arguments)` of a filter. */
export function parseFilter(reader: TokenReader): Application {
  const { line } = reader.peek();
  const name = parseDottedName(reader);
  checkFilter(name, line);
  return { name, args: reader.isAt("operator", "(") ? parseArguments(reader) : NO_ARGUMENTS, line };
}

/** Filters and tests behind a value. */
function parseFilters(reader: TokenReader, start: Expression): Expression {
  let value = start;
  while (true) {
    const { line } = reader.peek();
    if (reader.accept("operator", "|")) {
      value = { type: "filter", input: value, filter: parseFilter(reader), line };
    } else if (reader.accept("name", "is")) value = parseTest(reader, value, line);
    else if (reader.isAt("operator", "(")) {
      value = { type: "call", callee: value, args: parseArguments(reader), line };
    } else return value;
  }
}

function parseTest(reader: TokenReader, input: Expression, line: number): Expression {
  const isNegated = reader.accept("name", "not");
  const name = parseDottedName(reader);
  if (!PREDICATE_NAMES.has(name)) fail(`No test named '${name}'`, line);
  const args = reader.isAt("operator", "(") ? parseArguments(reader) : startsOperand(reader)
    ? {
      ...NO_ARGUMENTS,
      positional: [parsePostfix(reader, reader.nested(() => parsePrimary(reader)))],
    }
    : NO_ARGUMENTS;
  return { type: "test", input, test: { name, args, line }, isNegated, line };
}

/** Whether a test's one argument follows without parentheses (`x is divisibleby 3`). */
function startsOperand(reader: TokenReader): boolean {
  const { type, text, line } = reader.peek();
  if (type === "name" && text === "is") fail("You cannot chain multiple tests with is", line);
  if (type === "string" || type === "integer" || type === "float") return true;
  if (type === "operator") return text === "[" || text === "{";
  return type === "name" &&
    !["else", "or", "and"].includes(text);
}
