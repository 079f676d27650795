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

/** Something that has a value. */
export type Expression =
  & { readonly line: number }
  & (
    | { readonly type: "literal"; readonly value: Value }
    | { readonly type: "name"; readonly name: string }
    | { readonly type: "list"; readonly items: readonly Expression[]; readonly isTuple: boolean }
    | { readonly type: "dict"; readonly pairs: readonly (readonly [Expression, Expression])[] }
    | { readonly type: "unary"; readonly operator: "-" | "+" | "not"; readonly operand: Expression }
    | {
      readonly type: "binary";
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
    | { readonly type: "signedPower"; readonly base: Expression; readonly exponent: Expression }
    | {
      readonly type: "logic";
      readonly operator: "and" | "or";
      readonly left: Expression;
      readonly right: Expression;
    }
    | {
      readonly type: "compare";
      readonly first: Expression;
      readonly rest: readonly (readonly [CompareOperator, Expression])[];
    }
    | {
      readonly type: "conditional";
      readonly test: Expression;
      readonly then: Expression;
      readonly otherwise: Expression | undefined;
    }
    | { readonly type: "attribute"; readonly object: Expression; readonly name: string }
    | { readonly type: "item"; readonly object: Expression; readonly key: Expression }
    | {
      readonly type: "slice";
      readonly object: Expression;
      readonly start: Expression | undefined;
      readonly stop: Expression | undefined;
      readonly step: Expression | undefined;
    }
    | { readonly type: "call"; readonly callee: Expression; readonly args: Arguments }
    | { readonly type: "filter"; readonly input: Expression; readonly filter: Application }
    | {
      readonly type: "test";
      readonly input: Expression;
      readonly test: Application;
      readonly isNegated: boolean;
    }
  );

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

/** Something that writes or changes. */
export type Statement =
  & { readonly line: number }
  & (
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "output"; readonly value: Expression }
    | {
      readonly type: "if";
      readonly branches: readonly { readonly test: Expression; readonly body: Body }[];
      readonly otherwise: Body;
    }
    | {
      readonly type: "for";
      readonly target: Target;
      readonly list: Expression;
      readonly test: Expression | undefined;
      readonly body: Body;
      readonly otherwise: Body;
      readonly isRecursive: boolean;
    }
    | { readonly type: "set"; readonly target: Target; readonly value: Expression }
    | {
      readonly type: "capture";
      readonly target: Target;
      readonly filters: readonly Application[];
      readonly body: Body;
    }
    | (MacroParts & { readonly type: "macro"; readonly body: Body })
    | {
      readonly type: "callBlock";
      readonly parameters: readonly Parameter[];
      readonly uses: readonly MacroExtra[];
      readonly call: Expression;
      readonly body: Body;
    }
    | {
      readonly type: "filterBlock";
      readonly filters: readonly Application[];
      readonly body: Body;
    }
    | {
      readonly type: "with";
      readonly values: readonly (readonly [string, Expression])[];
      readonly body: Body;
    }
    | { readonly type: "group"; readonly body: Body }
    | { readonly type: "scope"; readonly body: Body }
    /** Names that have no value yet, whatever they are outside (scopes.ts). */
    | { readonly type: "hide"; readonly names: readonly string[] }
    | { readonly type: "discard"; readonly value: Expression }
    | { readonly type: "break" }
    | { readonly type: "continue" }
  );

/** Statements in order. */
export type Body = readonly Statement[];
