// Reads a text byte by byte along an expression. All ways of reading it are followed at once, as threads; what cannot go
// on is dropped. Nothing is looked up again: frames are shared, and equal ones of ambiguous grammars are made once.

import { ResourceError } from "../../errors.ts";
import { DEAD } from "./automaton.ts";
import type {
  ArrayExpression,
  Expression,
  Leaf,
  MemberValue,
  NameTree,
  ObjectExpression,
  Repeat,
} from "./expression.ts";
import type { ArrayFrame, Chain, Frame, Members, ObjectFrame, Thread, Threads } from "./frames.ts";
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  END_ARRAY,
  END_OBJECT,
  OPEN_ARRAY,
  OPEN_OBJECT,
} from "./json_marks.ts";
import { sameValueKey } from "./same_value.ts";

/** Most ways of reading at once. */
const MOST_THREADS = 4096;
/** Most frames that are remembered for sharing. */
const MOST_FRAMES = 1 << 16;

/** Reads along one expression. */
export class Reader {
  /** What was read; the first `length` bytes hold. */
  text: Uint8Array = new Uint8Array(256);
  length = 0;
  readonly #root: Expression;
  readonly #frames = new Map<string, Frame>();
  readonly #ids = new Map<object, number>();
  #nextId = 1;
  #out: Thread[] = [];
  #canEnd = false;
  /** Frames that went on in this step. */
  #resumed: (Frame | undefined)[] = [];

  constructor(root: Expression) {
    this.#root = root;
  }

  /** Before the first byte. */
  start(): Threads {
    return this.#collect(() => this.#enter(this.#root, undefined));
  }

  /** Takes a byte into `text`. */
  push(byte: number): void {
    if (this.length === this.text.length) {
      const larger = new Uint8Array(2 * this.length);
      larger.set(this.text);
      this.text = larger;
    }
    this.text[this.length++] = byte;
  }

  /** What may be behind a byte, which `text` has already. Without a thread and no end, it is not allowed. */
  step({ list }: Threads, byte: number): Threads {
    return this.#collect(() => {
      for (const thread of list) this.#stepThread(thread, byte);
    });
  }

  /** What goes on behind a thread's scanner, when it ends at the present length. */
  behind({ leaf, state, parent }: Thread): Threads {
    return this.#collect(() => {
      if (leaf !== "names") this.#resume(parent);
      else this.#named(parent as ObjectFrame | ArrayFrame, state);
    });
  }

  #collect(run: () => void): Threads {
    this.#out = [];
    this.#resumed = [];
    this.#canEnd = false;
    run();
    return { list: this.#out, canEnd: this.#canEnd };
  }

  #stepThread(thread: Thread, byte: number): void {
    const { leaf, parent } = thread;
    if (leaf === "names") return this.#stepName(thread, byte);
    const { automaton, bounds } = leaf;
    const state = automaton.next(thread.state, byte);
    if (state === DEAD) return;
    const count = bounds ? thread.count + +automaton.counts(state) : 0;
    const next = { leaf, state, count, parent };
    if (bounds && !withinBounds(next)) return;
    this.#place(next);
  }

  #place(thread: Thread): void {
    const { leaf, state, parent } = thread;
    const { automaton } = leaf as Leaf;
    if (!automaton.isLast(state)) this.#add(thread);
    if (automaton.accepts(state)) this.#resume(parent);
  }

  #add(thread: Thread): void {
    const { leaf, state, count, parent } = thread;
    for (const other of this.#out) {
      if (
        other.state === state && other.leaf === leaf && other.parent === parent &&
        other.count === count
      ) return;
    }
    if (this.#out.length >= MOST_THREADS) {
      throw new ResourceError(`the grammar can be read in more than ${MOST_THREADS} ways at once`);
    }
    this.#out.push(thread);
  }

  #enter(expression: Expression, parent: Frame | undefined): void {
    switch (expression.kind) {
      case "leaf":
        return this.#place({ leaf: expression, state: 0, count: 0, parent });
      case "reference":
        return this.#enter(expression.target!, parent);
      case "choice":
        for (const item of expression.items) this.#enter(item, parent);
        return;
      case "sequence":
        return this.#sequence(expression.items, { at: 0, parent });
      case "repeat":
        if (expression.min === 0) this.#resume(parent);
        if (expression.max > 0) this.#again(expression, { count: 0, parent });
        return;
      case "array":
        return this.#enter(OPEN_ARRAY, this.#arrayFrame(expression, { isNew: true, parent }));
      case "object":
        return this.#enter(OPEN_OBJECT, this.#objectFrame(expression, { phase: "open", parent }));
    }
  }

  // The last part of a sequence has no frame of its own, so that lists written by recursion do not pile up.
  #sequence(
    items: readonly Expression[],
    { at, parent }: { at: number; parent: Frame | undefined },
  ): void {
    if (at === items.length) return this.#resume(parent);
    if (at === items.length - 1) return this.#enter(items[at]!, parent);
    const frame = this.#shared(
      items,
      { parent, a: at + 1, b: 0 },
      (id) => ({ kind: "sequence", id, items, at: at + 1, parent }),
    );
    this.#enter(items[at]!, frame);
  }

  #again(repeat: Repeat, { count, parent }: { count: number; parent: Frame | undefined }): void {
    const next = repeat.max === Infinity ? Math.min(count + 1, repeat.min) : count + 1;
    const frame = this.#shared(
      repeat,
      { parent, a: next, b: 0 },
      (id) => ({ kind: "repeat", id, repeat, count: next, parent }),
    );
    this.#enter(repeat.item, frame);
  }

  #shared(
    of: object,
    { parent, a, b }: { parent: Frame | undefined; a: number; b: number },
    make: (id: number) => Frame,
  ): Frame {
    let own = this.#ids.get(of);
    if (own === undefined) this.#ids.set(of, own = this.#nextId++);
    const key = `${own} ${a} ${b} ${parent?.id ?? 0}`;
    let frame = this.#frames.get(key);
    if (!frame) {
      if (this.#frames.size >= MOST_FRAMES) this.#frames.clear();
      this.#frames.set(key, frame = make(this.#nextId++));
    }
    return frame;
  }

  // A part is complete; what is around it goes on.
  #resume(frame: Frame | undefined): void {
    if (this.#resumed.includes(frame)) return;
    this.#resumed.push(frame);
    if (frame === undefined) {
      this.#canEnd = true;
      return;
    }
    switch (frame.kind) {
      case "sequence":
        return this.#sequence(frame.items, frame);
      case "repeat":
        if (frame.count >= frame.repeat.min) this.#resume(frame.parent);
        if (frame.count < frame.repeat.max) this.#again(frame.repeat, frame);
        return;
      case "array":
        return frame.isItem ? this.#itemRead(frame) : this.#item(frame);
      case "object":
        return this.#memberPart(frame);
    }
  }

  #arrayFrame(
    array: ArrayExpression,
    { isItem = false, isNew = false, index = 0, found = 0, parent, texts, from = 0, seen }: {
      isItem?: boolean;
      isNew?: boolean;
      index?: number;
      found?: number;
      parent: Frame | undefined;
      texts?: Chain | undefined;
      from?: number;
      seen?: Uint8Array | undefined;
    },
  ): ArrayFrame {
    if (typeof array.unique === "object") seen ??= new Uint8Array(array.unique.count);
    const make = (id: number): ArrayFrame => ({
      ...{ kind: "array", id, array, isItem, isNew, index, found, texts, from, seen, parent },
    });
    if (array.unique) return make(this.#nextId++);
    return this.#shared(
      array,
      { parent, a: 4 * index + 2 * +isItem + +isNew, b: found },
      make,
    ) as ArrayFrame;
  }

  // Behind an opening bracket or a comma.
  #item(frame: ArrayFrame): void {
    const { array, isNew, index, found, texts, parent } = frame;
    if (isNew && array.min === 0 && (array.contains?.min ?? 0) === 0) {
      this.#enter(END_ARRAY, parent);
    }
    if (index >= array.max) return;
    if (frame.seen) return this.#addNames(frame);
    const { contains } = array;
    const begin = (item: Expression | undefined, count: number) => {
      if (!item) return;
      const own = { isItem: true, index, found: count, texts, from: this.length, parent };
      this.#enter(item, this.#arrayFrame(array, own));
    };
    if (!contains) return begin(array.prefix[index] ?? array.rest, 0);
    const { inside, outside } = contains.prefix[index] ?? contains.rest;
    const isCounted = contains.max !== Infinity;
    if (found < contains.max) {
      begin(inside, isCounted ? found + 1 : Math.min(found + 1, contains.min));
    }
    if (found + insideLeft(array, index + 1) >= contains.min) begin(outside, found);
  }

  #itemRead({ array, index, found, texts, from, seen, parent }: ArrayFrame): void {
    let list = texts;
    if (array.unique === "texts") {
      const text = sameValueKey(this.text.subarray(from, this.length));
      if (holds(texts, text)) return;
      list = { text, before: texts };
    }
    const most = array.max === Infinity ? Math.max(array.prefix.length, array.min) : array.max;
    const next = Math.min(index + 1, most);
    if (next >= array.min && found >= (array.contains?.min ?? 0)) this.#enter(CLOSE_ARRAY, parent);
    const isFull = index + 1 >= array.max || next >= array.prefix.length && !array.rest;
    const own = { index: next, found, texts: list, seen, parent };
    if (!isFull) this.#enter(COMMA, this.#arrayFrame(array, own));
  }

  #objectFrame(
    object: ObjectExpression,
    { phase, parent, members, value, values = [], from = 0 }: {
      phase: ObjectFrame["phase"];
      parent: Frame | undefined;
      members?: Members;
      value?: Expression | undefined;
      values?: readonly MemberValue[];
      from?: number;
    },
  ): ObjectFrame {
    members ??= {
      seen: new Uint8Array(object.values.length),
      missing: object.required.filter(Boolean).length,
      count: 0,
      demands: object.demands,
      others: undefined,
    };
    const id = this.#nextId++;
    return { kind: "object", id, object, phase, members, value, values, from, parent };
  }

  #memberPart(frame: ObjectFrame): void {
    const { object, members, value, parent } = frame;
    switch (frame.phase) {
      case "open":
        if (mayClose(object, members)) this.#enter(END_OBJECT, parent);
        return this.#name(frame);
      case "comma":
        return this.#name(frame);
      case "name": {
        const text = String.fromCharCode(...this.text.subarray(frame.from, this.length));
        if (object.known.has(text) || holds(members.others, text)) return;
        const others = { text, before: members.others };
        const next = { ...members, count: members.count + 1, others };
        return this.#colons(frame, { members: next, values: frame.values });
      }
      case "colon":
        return this.#enter(value!, this.#objectFrame(object, { ...frame, phase: "value" }));
      case "value":
        if (mayClose(object, members)) this.#enter(CLOSE_OBJECT, parent);
        if (mayGoOn(object, members)) {
          this.#enter(COMMA, this.#objectFrame(object, { phase: "comma", members, parent }));
        }
    }
  }

  #colons(
    { object, parent }: ObjectFrame,
    { members, values }: { members: Members; values: readonly MemberValue[] },
  ): void {
    for (const { value, meets } of values) {
      const next = meets === 0 ? members : { ...members, demands: members.demands & ~meets };
      if (next.demands !== 0 && !canMeet(object, next)) continue;
      const own = { phase: "colon" as const, members: next, value, parent };
      this.#enter(COLON, this.#objectFrame(object, own));
    }
  }

  #name({ object, members, parent }: ObjectFrame): void {
    const frame = this.#objectFrame(object, { phase: "name", members, parent });
    this.#addNames(frame);
    if (!mayAdd(object, members)) return;
    for (const { key, values } of object.others) {
      const own = { phase: "name" as const, members, values, from: this.length, parent };
      this.#enter(key, this.#objectFrame(object, own));
    }
  }

  #addNames(frame: ObjectFrame | ArrayFrame): void {
    if (canReachName(frame, 0)) this.#add({ leaf: "names", state: 0, count: 0, parent: frame });
  }

  #stepName({ state, parent }: Thread, byte: number): void {
    const frame = parent as ObjectFrame | ArrayFrame;
    const names = treeOf(frame);
    let node = names.child[state]!;
    while (node !== 0 && names.byte[node] !== byte) node = names.sibling[node]!;
    if (node === 0 || !canReachName(frame, node)) return;
    if (names.child[node] !== 0) this.#add({ leaf: "names", state: node, count: 0, parent });
    this.#named(frame, node);
  }

  #named(frame: ObjectFrame | ArrayFrame, node: number): void {
    const name = treeOf(frame).name[node]!;
    const old = frame.kind === "array" ? frame.seen! : frame.members.seen;
    if (name < 0 || old[name] === 1) return;
    const seen = old.slice();
    seen[name] = 1;
    if (frame.kind === "array") return this.#itemRead({ ...frame, seen });
    const { object, members } = frame;
    const missing = members.missing - +object.required[name]!;
    if (!object.required[name] && !mayAdd(object, members)) return;
    const next = { ...members, seen, missing, count: members.count + 1 };
    this.#colons(frame, { members: next, values: object.values[name]! });
  }
}

/** Whether a text within bounds can end that has come so far. */
export function withinBounds(
  { leaf, state, count }: { readonly leaf: Leaf; readonly state: number; readonly count: number },
): boolean {
  const { automaton, bounds } = leaf;
  if (automaton.accepts(state)) return count >= bounds!.min && count <= bounds!.max;
  for (const { place, more } of automaton.ahead(state)) {
    if (bounds!.canFinish(place, count + more)) return true;
  }
  return false;
}

// How many of the places from `index` on may hold an item of the kind that an array must contain.
function insideLeft({ contains, max }: ArrayExpression, index: number): number {
  let count = 0;
  for (let i = index; i < contains!.prefix.length && i < max; i++) {
    count += +(contains!.prefix[i]!.inside !== undefined);
  }
  const further = Math.max(0, max - Math.max(index, contains!.prefix.length));
  return contains!.rest.inside ? count + further : count;
}

function mayClose({ min }: ObjectExpression, { missing, count, demands }: Members): boolean {
  return missing === 0 && count >= min && demands === 0;
}

/** Whether members that may still come can meet the demands that are left. */
function canMeet({ values, others }: ObjectExpression, { seen, demands }: Members): boolean {
  let left = demands;
  for (const { values } of others) for (const { meets } of values) left &= ~meets;
  for (let name = 0; left !== 0 && name < seen.length; name++) {
    if (seen[name] === 0) { for (const { meets } of values[name]!) left &= ~meets; }
  }
  return left === 0;
}

/** Whether there is room for a member that need not be there. */
function mayAdd({ max }: ObjectExpression, { missing, count }: Members): boolean {
  return count + 1 + missing <= max;
}

function mayGoOn(object: ObjectExpression, members: Members): boolean {
  if (members.missing > 0) return true;
  if (!mayAdd(object, members)) return false;
  return object.others.length > 0 || members.seen.includes(0);
}

function treeOf(frame: ObjectFrame | ArrayFrame): NameTree {
  return frame.kind === "object" ? frame.object.names : frame.array.unique as NameTree;
}

// Whether a name below a node may still come.
function canReachName(frame: ObjectFrame | ArrayFrame, node: number): boolean {
  const { first, end } = treeOf(frame);
  const isArray = frame.kind === "array";
  const seen = isArray ? frame.seen! : frame.members.seen;
  const isOpen = isArray || mayAdd(frame.object, frame.members);
  for (let name = first[node]!; name < end[node]!; name++) {
    if (seen[name] === 0 && (isOpen || (frame as ObjectFrame).object.required[name])) return true;
  }
  return false;
}

function holds(list: Chain | undefined, text: string): boolean {
  for (let item = list; item; item = item.before) if (item.text === text) return true;
  return false;
}
