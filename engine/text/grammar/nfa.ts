// Regular languages over code points: a small algebra (Regular), and its nondeterministic automaton by Thompson's
// construction (1968). Anchors are edges that may be gone along only before the first character, or after the last.
// States from which no end can be reached are cut off, so that what is left never leads into a dead end.

import { UnsupportedError } from "../../errors.ts";
import { ALL, type CodePoints, codePoints } from "./code_points.ts";

/** A regular language. */
export type Regular =
  | { readonly kind: "set"; readonly set: CodePoints }
  | { readonly kind: "sequence"; readonly items: readonly Regular[] }
  | { readonly kind: "choice"; readonly items: readonly Regular[] }
  | { readonly kind: "repeat"; readonly item: Regular; readonly min: number; readonly max: number }
  /** One of many texts; far smaller than a choice of sequences. */
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** A deterministic automaton; state 0 is the first. */
  | {
    readonly kind: "graph";
    readonly size: number;
    readonly edges: readonly (readonly [from: number, set: CodePoints, to: number])[];
    readonly ends: readonly number[];
  }
  /** Holds before the first character. */
  | { readonly kind: "start" }
  /** Holds behind the last character. */
  | { readonly kind: "end" };

/** Most states of an automaton. */
const MOST_STATES = 100_000;

/** One character of a set. */
export const oneOf = (set: CodePoints): Regular => ({ kind: "set", set });
/** One after the other. */
export const sequence = (...items: readonly Regular[]): Regular => ({ kind: "sequence", items });
/** One of them. */
export const choice = (...items: readonly Regular[]): Regular => ({ kind: "choice", items });
/** So many times. */
export const repeat = (item: Regular, [min, max]: readonly [number, number]): Regular => ({
  kind: "repeat",
  item,
  min,
  max,
});
/** A text. */
export const word = (text: string): Regular => ({ kind: "words", words: [text] });
/** Any text. */
export const ANY: Regular = repeat(oneOf(ALL), [0, Infinity]);
/** The empty text alone. */
export const EMPTY: Regular = sequence();

interface Edge {
  readonly set: CodePoints;
  readonly to: number;
}

/** An automaton; states are numbers. */
export interface Nfa {
  readonly start: number;
  /** Edges by state, each along one character. */
  readonly edges: readonly (readonly Edge[])[];
  /** States reached without a character; `isStart` says whether that is before the first one. */
  closure(states: Iterable<number>, isStart: boolean): number[];
  /** Whether a text may end in one of the states. */
  accepts(states: Iterable<number>, isStart: boolean): boolean;
}

interface Draft {
  readonly edges: Edge[][];
  readonly free: number[][];
  readonly atStart: number[][];
  readonly atEnd: number[][];
}

/**
 * The automaton of a language.
 *
 * @throws {UnsupportedError} If it has more states than memory should hold.
 */
export function createNfa(regular: Regular): Nfa {
  const draft: Draft = { edges: [], free: [], atStart: [], atEnd: [] };
  const start = addState(draft);
  const end = add(draft, regular, start);
  const alive = aliveStates(draft, end);
  const canEndAtOnce = closureOf([start], [draft.free, draft.atStart, draft.atEnd]).includes(end);
  const edges = draft.edges.map((list) => list.filter(({ to }) => alive[to]));
  return {
    start,
    edges,
    closure: (states, isStart) =>
      closureOf(states, isStart ? [draft.free, draft.atStart] : [draft.free])
        .filter((state) => alive[state] || isStart && canEndAtOnce).sort((a, b) => a - b),
    accepts(states, isStart) {
      const tables = [draft.free, draft.atEnd, ...isStart ? [draft.atStart] : []];
      return closureOf(states, tables).includes(end);
    },
  };
}

function addState(draft: Draft): number {
  for (const table of Object.values(draft)) table.push([]);
  if (draft.edges.length > MOST_STATES) {
    throw new UnsupportedError(`a pattern has more than ${MOST_STATES} states`);
  }
  return draft.edges.length - 1;
}

// Adds a language behind a state and gives the state behind it.
function add(draft: Draft, regular: Regular, from: number): number {
  switch (regular.kind) {
    case "set": {
      const to = addState(draft);
      if (regular.set.length > 0) draft.edges[from]!.push({ set: regular.set, to });
      return to;
    }
    case "sequence":
      return regular.items.reduce((state, item) => add(draft, item, state), from);
    case "choice": {
      const to = addState(draft);
      for (const item of regular.items) draft.free[add(draft, item, behind(draft, from))]!.push(to);
      return to;
    }
    case "repeat":
      return addRepeat(draft, regular, from);
    case "words":
      return addWords(draft, regular.words, from);
    case "graph": {
      const states = Array.from({ length: regular.size }, () => addState(draft));
      const to = addState(draft);
      draft.free[from]!.push(states[0]!);
      for (const [a, set, b] of regular.edges) {
        draft.edges[states[a]!]!.push({ set, to: states[b]! });
      }
      for (const end of regular.ends) draft.free[states[end]!]!.push(to);
      return to;
    }
    case "start":
    case "end": {
      const to = addState(draft);
      (regular.kind === "start" ? draft.atStart : draft.atEnd)[from]!.push(to);
      return to;
    }
  }
}

function behind(draft: Draft, from: number): number {
  const state = addState(draft);
  draft.free[from]!.push(state);
  return state;
}

function addRepeat(
  draft: Draft,
  { item, min, max }: Regular & { kind: "repeat" },
  from: number,
): number {
  let state = from;
  for (let i = 0; i < min; i++) state = add(draft, item, behind(draft, state));
  const to = addState(draft);
  if (max === Infinity) {
    const loop = behind(draft, state);
    draft.free[add(draft, item, behind(draft, loop))]!.push(loop);
    draft.free[loop]!.push(to);
    return to;
  }
  for (let i = min; i < max; i++) {
    draft.free[state]!.push(to);
    state = add(draft, item, behind(draft, state));
  }
  draft.free[state]!.push(to);
  return to;
}

// A tree of the words, so that their common beginnings are one way.
function addWords(draft: Draft, words: readonly string[], from: number): number {
  const root = behind(draft, from);
  const to = addState(draft);
  const children = new Map<number, Map<number, number>>();
  for (const text of words) {
    let state = root;
    for (const character of text) {
      const point = character.codePointAt(0)!;
      let next = children.get(state);
      if (!next) children.set(state, next = new Map());
      let child = next.get(point);
      if (child === undefined) {
        child = addState(draft);
        next.set(point, child);
        draft.edges[state]!.push({ set: codePoints([point, point]), to: child });
      }
      state = child;
    }
    draft.free[state]!.push(to);
  }
  return to;
}

function closureOf(states: Iterable<number>, tables: readonly (readonly number[][])[]): number[] {
  const seen = new Set(states);
  for (const state of seen) {
    for (const table of tables) for (const next of table[state]!) seen.add(next);
  }
  return [...seen];
}

// Those from which the end can be reached when something was read: a start anchor holds no more, and behind an end
// anchor no character may follow.
function aliveStates({ edges, free, atEnd }: Draft, end: number): boolean[] {
  const size = edges.length;
  const before: number[][] = Array.from({ length: size }, () => []);
  const beforeEnd: number[][] = Array.from({ length: size }, () => []);
  for (let state = 0; state < size; state++) {
    for (const { to } of edges[state]!) before[to]!.push(state);
    for (const to of free[state]!) {
      before[to]!.push(state);
      beforeEnd[to]!.push(state);
    }
    for (const to of atEnd[state]!) beforeEnd[to]!.push(state);
  }
  const ending = closureOf([end], [beforeEnd]);
  const alive: boolean[] = new Array(size).fill(false);
  for (const state of closureOf(ending, [before])) alive[state] = true;
  return alive;
}
