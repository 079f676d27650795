// What a schema says, taken apart: atoms, each about values of one type, and the schemas that must hold beside them.
// Choices (anyOf, a negation, if) are alternatives of such lists.

import type { Part } from "../dfa.ts";
import { isRecord, type SchemaNode } from "./document.ts";

/** Types by bit; whole numbers and others are two. */
export const TYPE = {
  null: 1,
  boolean: 2,
  whole: 4,
  broken: 8,
  string: 16,
  array: 32,
  object: 64,
} as const;
/** Every type. */
export const ALL_TYPES = 127;
/** A schema that must hold, or must not. */
export interface Literal {
  readonly node: SchemaNode;
  readonly isNegated: boolean;
  /** Schemas that hold wherever this must not; where both cannot hold, its negation says nothing more. */
  readonly beside?: readonly Literal[];
}

/** A pattern of names. */
export type Pattern = readonly [source: string, parts: readonly Part[]];

/** One statement; those about a type say nothing about values of others. */
export type Atom =
  | { readonly kind: "types"; readonly types: number }
  | {
    readonly kind: "values";
    readonly values: readonly unknown[];
    /** Texts by which equal values are known. */
    readonly keys: ReadonlySet<string>;
    readonly isNegated: boolean;
    readonly place: string;
  }
  | { readonly kind: "range"; readonly low: number; readonly high: number }
  | {
    readonly kind: "multiple";
    readonly of: number;
    readonly isNegated: boolean;
    readonly place: string;
  }
  | { readonly kind: "text"; readonly part: Part }
  | { readonly kind: "length" | "items" | "members"; readonly min: number; readonly max: number }
  | {
    readonly kind: "list";
    readonly prefix: readonly Literal[];
    readonly rest: Literal | undefined;
  }
  | {
    readonly kind: "contains";
    readonly item: Literal;
    readonly min: number;
    readonly max: number;
    /** Items before that do not count. */
    readonly from: number;
    readonly place: string;
  }
  | { readonly kind: "unique"; readonly place: string }
  | {
    readonly kind: "object";
    readonly named: ReadonlyMap<string, Literal>;
    readonly patterns:
      readonly (readonly [source: string, parts: readonly Part[], value: Literal])[];
    readonly others: Literal | undefined;
    readonly place: string;
  }
  /** There is a member of this value: of a name that the pattern has, or that none of these names and patterns has. */
  | {
    readonly kind: "exists";
    readonly value: Literal;
    readonly pattern: Pattern | undefined;
    readonly names: ReadonlySet<string>;
    readonly others: readonly Pattern[];
    readonly place: string;
  }
  | { readonly kind: "required"; readonly names: readonly string[] }
  | { readonly kind: "names"; readonly name: Literal };

/** What must hold together: atoms, schemas, and of each choice one alternative. */
export interface Statement {
  readonly atoms: readonly Atom[];
  readonly literals: readonly Literal[];
  readonly choices: readonly (readonly Statement[])[];
}

/** A statement of atoms alone. */
export const only = (...atoms: readonly Atom[]): Statement => ({
  atoms,
  literals: [],
  choices: [],
});
/** A statement that schemas hold. */
export const holds = (...literals: readonly Literal[]): Statement => ({
  atoms: [],
  literals,
  choices: [],
});
/** One of several. */
export const oneOf = (alternatives: readonly Statement[]): Statement => ({
  atoms: [],
  literals: [],
  choices: [alternatives],
});
/** All of several. */
export const together = (...statements: readonly Statement[]): Statement => ({
  atoms: statements.flatMap(({ atoms }) => atoms),
  literals: statements.flatMap(({ literals }) => literals),
  choices: statements.flatMap(({ choices }) => choices),
});
/** A statement about values of some types, which no others are. */
export const ofType = (types: number, ...atoms: readonly Atom[]): Statement =>
  only({ kind: "types", types }, ...atoms);
/** A statement that nothing meets. */
export const never: Statement = ofType(0);

/** A text that is the same for equal values. */
export function keyOf(value: unknown): string {
  return JSON.stringify(
    value,
    (_, one) =>
      isRecord(one)
        ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => a < b ? -1 : 1))
        : one,
  );
}
