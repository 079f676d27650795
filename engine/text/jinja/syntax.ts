// The tree of a parsed template. Plain data; render.ts and evaluate.ts have one function for each type.

import type { Value } from "./values.ts";

/** Arguments of a call, a filter or a test. */
export interface Arguments {
  readonly positional: readonly Expression[];
  readonly named: readonly (readonly [string, Expression])[];
  /** `*list` at the end. */
  readonly spread?: Expression;
  /** `**dict` at the end. */
  readonly spreadNamed?: Expression;
}

/** A filter or test with its arguments. */
export interface Application {
  readonly name: string;
  readonly args: Arguments;
  readonly line: number;
}

/** Operators of arithmetic. */
export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**" | "~";

/** Operators of comparison. */
export type CompareOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in";

/** A node of each type, and the line that it begins in. */
type NodesOf<Parts> = {
  [T in keyof Parts]: { readonly type: T; readonly line: number } & Readonly<Parts[T]>;
}[keyof Parts];

interface ExpressionParts {
  literal: { value: Value };
  name: { name: string };
  list: { items: readonly Expression[]; isTuple: boolean };
  dict: { pairs: readonly (readonly [Expression, Expression])[] };
  unary: { operator: "-" | "+" | "not"; operand: Expression };
  binary: { operator: BinaryOperator; left: Expression; right: Expression };
  signedPower: { base: Expression; exponent: Expression };
  logic: { operator: "and" | "or"; left: Expression; right: Expression };
  compare: { first: Expression; rest: readonly (readonly [CompareOperator, Expression])[] };
  conditional: { test: Expression; then: Expression; otherwise: Expression | undefined };
  attribute: { object: Expression; name: string };
  item: { object: Expression; key: Expression };
  slice: {
    object: Expression;
    start: Expression | undefined;
    stop: Expression | undefined;
    step: Expression | undefined;
  };
  call: { callee: Expression; args: Arguments };
  filter: { input: Expression; filter: Application };
  test: { input: Expression; test: Application; isNegated: boolean };
}

/** Something that has a value. */
export type Expression = NodesOf<ExpressionParts>;

/** What `set` and `for` assign to. */
export type Target =
  | { readonly type: "names"; readonly names: readonly string[] }
  | { readonly type: "attribute"; readonly object: string; readonly name: string };

/** A parameter of a macro and its default. */
export interface Parameter {
  readonly name: string;
  readonly fallback: Expression | undefined;
}

/** Names that a macro is given where its body reads them. */
export type MacroExtra = "caller" | "kwargs" | "varargs";

/** What a macro is beside its body. */
export interface MacroParts {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly uses: readonly MacroExtra[];
}

interface StatementParts {
  text: { text: string };
  output: { value: Expression };
  if: { branches: readonly { readonly test: Expression; readonly body: Body }[]; otherwise: Body };
  for: {
    target: Target;
    list: Expression;
    test: Expression | undefined;
    body: Body;
    otherwise: Body;
    isRecursive: boolean;
  };
  set: { target: Target; value: Expression };
  capture: { target: Target; filters: readonly Application[]; body: Body };
  macro: MacroParts & { body: Body };
  callBlock: Omit<MacroParts, "name"> & { call: Expression; body: Body };
  filterBlock: { filters: readonly Application[]; body: Body };
  with: { values: readonly (readonly [string, Expression])[]; body: Body };
  group: { body: Body };
  scope: { body: Body };
  /** Names that have no value yet, whatever they are outside (scopes.ts). */
  hide: { names: readonly string[] };
  discard: { value: Expression };
  break: unknown;
  continue: unknown;
}

/** Something that writes or changes. */
export type Statement = NodesOf<StatementParts>;

/** Statements in order. */
export type Body = readonly Statement[];
