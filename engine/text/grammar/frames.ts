// Where a reader stands: threads, each in a scanner with what is open around it. Frames are what is open; they are never
// changed, so that threads share them and a step back is an older list of threads.

import type {
  ArrayExpression,
  Expression,
  Leaf,
  MemberValue,
  ObjectExpression,
  Repeat,
} from "./expression.ts";

/** What goes on when a part of it is complete; undefined is the end of the text. */
export type Frame =
  | SequenceFrame
  | RepeatFrame
  | ArrayFrame
  | ObjectFrame;

/** Parts of a sequence follow. */
export interface SequenceFrame {
  readonly kind: "sequence";
  readonly id: number;
  readonly items: readonly Expression[];
  /** The next one. */
  readonly at: number;
  readonly parent: Frame | undefined;
}

/** A part may come again. */
export interface RepeatFrame {
  readonly kind: "repeat";
  readonly id: number;
  readonly repeat: Repeat;
  /** So many have begun; no more than matter are counted. */
  readonly count: number;
  readonly parent: Frame | undefined;
}

/** A list that grows at its end. */
export interface Chain {
  readonly text: string;
  readonly before: Chain | undefined;
}

/** An array. */
export interface ArrayFrame {
  readonly kind: "array";
  readonly id: number;
  readonly array: ArrayExpression;
  /** Whether an item is being read, or may begin. */
  readonly isItem: boolean;
  /** Whether the array may end here without an item: it has just begun. */
  readonly isNew: boolean;
  /** Items before; no more than matter are counted. */
  readonly index: number;
  /** How many of them are of the kind that must be there, likewise. */
  readonly found: number;
  /** Texts of the items, where no two may be equal, and where the present one begins. */
  readonly texts: Chain | undefined;
  readonly from: number;
  /** By value of the tree of values, 1 where it was there. */
  readonly seen: Uint8Array | undefined;
  readonly parent: Frame | undefined;
}

/** What has been read of an object. */
export interface Members {
  /** By name, 1 where it was there. */
  readonly seen: Uint8Array;
  /** Required ones that were not. */
  readonly missing: number;
  readonly count: number;
  /** By bit, demands that no member has met so far. */
  readonly demands: number;
  /** Other names that were there, as they are written. */
  readonly others: Chain | undefined;
}

/** An object. */
export interface ObjectFrame {
  readonly kind: "object";
  readonly id: number;
  readonly object: ObjectExpression;
  /** What completes next: an opening brace or comma, the name of a member, a colon, a value. */
  readonly phase: "open" | "comma" | "name" | "colon" | "value";
  readonly members: Members;
  /** The value that follows. */
  readonly value: Expression | undefined;
  /** In phase `name`, the values that may follow a name that is not in the tree. */
  readonly values: readonly MemberValue[];
  /** Where that name begins. */
  readonly from: number;
  readonly parent: Frame | undefined;
}

/** A place in a scanner; `names` is the tree of names, or of values, of the object or array whose frame is `parent`. */
export interface Thread {
  readonly leaf: Leaf | "names";
  readonly state: number;
  /** Characters so far, where they are bounded. */
  readonly count: number;
  readonly parent: Frame | undefined;
}

/** All ways in which a text may be read so far. */
export interface Threads {
  readonly list: readonly Thread[];
  /** Whether the text may end here. */
  readonly canEnd: boolean;
}
