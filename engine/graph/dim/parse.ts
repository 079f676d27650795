// Text to dims: what ONNX writes into dim_param ("sumN-N", "lastSum + N", "batch"), and what
// `formatDim` prints. Sums, products, exact quotients, powers, quoted names, parentheses and calls.
// A text that is no expression at all ("batch size", "?", "1e3") is one opaque symbol of that name,
// because exporters write whatever they like there; a name never fails, so a caller that needs an
// expression checks the symbols of the result.

import { add, exactDiv, mul, sub, symbol } from "./arithmetic.ts";
import { calls, floorDiv, mod } from "./calls.ts";
import type { Dim } from "./polynomial.ts";

/** Dims by name; a name not listed becomes a symbol from 0 without an upper bound. */
export type KnownSymbols = Readonly<Record<string, Dim>>;

const TOKEN = /\s*(?:(\d+)|([A-Za-z_][A-Za-z0-9_]*)|"([^"]+)"|(\*\*|\/\/|[-+*/%(),]))/y;

// Real names are short; nesting must not exhaust the stack.
const MAX_LENGTH = 512;

interface Token {
  readonly kind: "number" | "name" | "operator";
  readonly text: string;
}

// Thrown and caught inside this file only.
class NotAnExpression extends Error {}

/**
 * Parses a dim.
 *
 * @param known Symbols with their bounds, by name.
 * @throws {RangeError} If a number in an expression is beyond 2^53 or the text is empty.
 */
export function parseDim(text: string, known: KnownSymbols = {}): Dim {
  const name = text.trim();
  try {
    const tokens = tokenize(name);
    const parser = { tokens, at: 0, known };
    const dim = parseSum(parser);
    if (parser.at < tokens.length) throw new NotAnExpression();
    return dim;
  } catch (error) {
    if (!(error instanceof NotAnExpression)) throw error;
    return lookUp(name.replaceAll('"', "'"), known);
  }
}

function lookUp(name: string, known: KnownSymbols): Dim {
  return Object.hasOwn(known, name) ? known[name]! : symbol(name);
}

function tokenize(text: string): Token[] {
  if (text.length > MAX_LENGTH) throw new NotAnExpression();
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    if (!match) throw new NotAnExpression();
    const [, digits, identifier, quoted, operator] = match;
    if (digits !== undefined) tokens.push({ kind: "number", text: digits });
    else if (operator !== undefined) tokens.push({ kind: "operator", text: operator });
    else tokens.push({ kind: "name", text: (identifier ?? quoted)! });
  }
  return tokens;
}

interface Parser {
  readonly tokens: readonly Token[];
  at: number;
  readonly known: KnownSymbols;
}

function takeOperator(parser: Parser, allowed: readonly string[]): string | undefined {
  const token = parser.tokens[parser.at];
  if (token?.kind !== "operator" || !allowed.includes(token.text)) return undefined;
  parser.at++;
  return token.text;
}

function expectOperator(parser: Parser, text: string): void {
  if (!takeOperator(parser, [text])) throw new NotAnExpression();
}

function parseSum(parser: Parser): Dim {
  let value = parseProduct(parser);
  for (;;) {
    const operator = takeOperator(parser, ["+", "-"]);
    if (!operator) return value;
    const right = parseProduct(parser);
    value = operator === "+" ? add(value, right) : sub(value, right);
  }
}

const PRODUCTS: Readonly<Record<string, (a: Dim, b: Dim) => Dim | undefined>> = {
  "*": mul,
  "/": exactDiv,
  "//": floorDiv,
  "%": mod,
};

function parseProduct(parser: Parser): Dim {
  let value = parseSigned(parser);
  for (;;) {
    const operator = takeOperator(parser, Object.keys(PRODUCTS));
    if (!operator) return value;
    const result = PRODUCTS[operator]!(value, parseSigned(parser));
    // A quotient that is not established to be whole has no meaning as a size.
    if (result === undefined) throw new NotAnExpression();
    value = result;
  }
}

function parseSigned(parser: Parser): Dim {
  return takeOperator(parser, ["-"]) ? mul(parseSigned(parser), -1) : parsePower(parser);
}

function parsePower(parser: Parser): Dim {
  const base = parsePrimary(parser);
  if (!takeOperator(parser, ["**"])) return base;
  const exponent = parsePrimary(parser);
  if (typeof exponent !== "number" || exponent > 8) throw new NotAnExpression();
  let value: Dim = 1;
  for (let i = 0; i < exponent; i++) value = mul(value, base);
  return value;
}

function parsePrimary(parser: Parser): Dim {
  if (takeOperator(parser, ["("])) {
    const value = parseSum(parser);
    expectOperator(parser, ")");
    return value;
  }
  const token = parser.tokens[parser.at++];
  if (!token || token.kind === "operator") throw new NotAnExpression();
  if (token.kind === "number") return integer(token.text);
  const next = parser.tokens[parser.at];
  if (next?.kind === "operator" && next.text === "(") return parseCall(parser, token.text);
  return lookUp(token.text, parser.known);
}

function integer(digits: string): number {
  const value = Number(digits);
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(`Cannot use ${digits} as a dim: it is beyond 2^53`);
  }
  return value;
}

function parseCall(parser: Parser, name: string): Dim {
  const apply = calls.get(name.toLowerCase());
  if (!apply) throw new NotAnExpression();
  expectOperator(parser, "(");
  const left = parseSum(parser);
  expectOperator(parser, ",");
  const right = parseSum(parser);
  expectOperator(parser, ")");
  return apply(left, right);
}
