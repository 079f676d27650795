// What every kind of grammar is compiled to: scanners of bytes (automaton.ts), put together by order, choice,
// repetition and reference. Objects and arrays of JSON are expressions of their own, because their members come in any
// order and are counted: which have been seen is data of the reader and not of the grammar.

import type { Automaton } from "./automaton.ts";
import type { Bounds } from "./bounds.ts";

/** A grammar, or a part of one. */
export type Expression =
  | Leaf
  | { readonly kind: "sequence"; readonly items: readonly Expression[] }
  | { readonly kind: "choice"; readonly items: readonly Expression[] }
  | Repeat
  /** Another expression, which may not be there yet. */
  | { readonly kind: "reference"; readonly name: string; target: Expression | undefined }
  | ArrayExpression
  | ObjectExpression;

/** Bytes that an automaton reads. */
export interface Leaf {
  readonly kind: "leaf";
  readonly automaton: Automaton;
  readonly bounds?: Bounds;
}

/** So many times the same. */
export interface Repeat {
  readonly kind: "repeat";
  readonly item: Expression;
  readonly min: number;
  readonly max: number;
}

/** Items of an array. */
export interface ArrayExpression {
  readonly kind: "array";
  /** The first items. */
  readonly prefix: readonly Expression[];
  /** All further ones; undefined if there are none. */
  readonly rest: Expression | undefined;
  readonly min: number;
  readonly max: number;
  /** Items of a kind of which there must be so many. */
  readonly contains?: {
    readonly min: number;
    readonly max: number;
    /** By place, an item that is of the kind, and one that is not, or may be where `max` is Infinity. */
    readonly prefix: readonly Sorted[];
    readonly rest: Sorted;
  };
  /** Whether no two items may be equal: by their texts, or, where few values are allowed, by which have been there. */
  readonly unique: "texts" | NameTree | undefined;
}

/** An item that is of a kind, and one that need not be; undefined where there can be none. */
export interface Sorted {
  readonly inside: Expression | undefined;
  readonly outside: Expression | undefined;
}

/** Members of an object. */
export interface ObjectExpression {
  readonly kind: "object";
  /** Members by name, in the order of the tree of names. */
  readonly names: NameTree;
  /** By named member, the values that it may have. */
  readonly values: readonly (readonly MemberValue[])[];
  /** By member, whether it must be there. */
  readonly required: readonly boolean[];
  /** Members of other names, which are none of `known`. */
  readonly others: readonly { readonly key: Leaf; readonly values: readonly MemberValue[] }[];
  readonly known: ReadonlySet<string>;
  readonly min: number;
  readonly max: number;
  /** By bit, demands that some member has to meet. */
  readonly demands: number;
}

/** A value of a member. */
export interface MemberValue {
  readonly value: Expression;
  /** By bit, demands that it meets. */
  readonly meets: number;
}

/** Quoted names, or other texts, as a tree of bytes. */
export interface NameTree {
  /** By node, its first child; 0 where it has none. */
  readonly child: Int32Array;
  /** By node, the next child of its parent; 0 behind the last. */
  readonly sibling: Int32Array;
  readonly byte: Uint8Array;
  /** By node, the first name below it; names below it stand together. */
  readonly first: Int32Array;
  /** By node, the name behind the last one below it. */
  readonly end: Int32Array;
  /** By node, the name that ends there, or -1. */
  readonly name: Int32Array;
  /** Number of names. */
  readonly count: number;
}
