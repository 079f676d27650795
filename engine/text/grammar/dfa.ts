// Boolean combinations of regular languages as one deterministic automaton over code points, made state by state when
// somebody asks (subset and product construction, Rabin and Scott 1959). One language alone never leads into a dead
// end; where several are joined, states are looked at until an end is found.

import { UnsupportedError } from "../../errors.ts";
import { LAST } from "./code_points.ts";
import { createNfa, type Nfa, type Regular } from "./nfa.ts";

/** A language, or what is outside of it. */
export interface Part {
  readonly regular: Regular;
  readonly isNegated?: boolean;
}

/** A deterministic automaton; states are numbers, 0 is the first. */
export interface Dfa {
  /** Whether it has no text at all. */
  readonly isEmpty: boolean;
  /** `[low, high, to, low, high, to, …]`, sorted, only to states from which an end can be reached. */
  transitions(state: number): readonly number[];
  /** Whether a text may end here. */
  accepts(state: number): boolean;
  /** So many states are known by now. */
  readonly size: number;
}

/** Most states that are looked at, to find out whether one is a dead end, or how far the ends are. */
export const MOST_STATES = 40_000;

interface Member {
  readonly nfa: Nfa;
  readonly isNegated: boolean;
}

interface State {
  /** By member, its states; undefined where a negated member has none left, and so cannot refuse. */
  readonly sets: readonly (readonly number[])[];
  readonly accepts: boolean;
  /** All transitions, also into dead ends. */
  all?: number[];
  /** Those that are alive. */
  alive?: number[];
  isAlive?: boolean;
}

/** By the language of the first part, what is known of it together with others. */
const known = new WeakMap<Regular, Map<string, Dfa>>();
const numbers = { next: 0, of: new WeakMap<Regular, number>() };

/** A number of its own for a language: the same object, the same number. */
export function numberOf(regular: Regular): number {
  let number = numbers.of.get(regular);
  if (number === undefined) numbers.of.set(regular, number = numbers.next++);
  return number;
}

/** The automaton of what is in every part; the same one for the same parts. */
export function createDfa(parts: readonly Part[]): Dfa {
  const { regular: first } = parts[0]!;
  let byOthers = known.get(first);
  if (!byOthers) known.set(first, byOthers = new Map());
  const key = parts.map(({ regular, isNegated }) => `${isNegated ? "!" : ""}${numberOf(regular)}`)
    .join(" ");
  let dfa = byOthers.get(key);
  if (!dfa) byOthers.set(key, dfa = joinedDfa(parts));
  return dfa;
}

function joinedDfa(parts: readonly Part[]): Dfa {
  const members = parts.map(({ regular, isNegated = false }): Member => ({
    nfa: createNfa(regular),
    isNegated,
  }));
  const states: State[] = [];
  const byKey = new Map<string, number>();
  const isSure = members.length === 1 && !members[0]!.isNegated;

  function intern(sets: readonly (readonly number[])[], isStart: boolean): number {
    if (members.some(({ isNegated }, i) => !isNegated && sets[i]!.length === 0)) return -1;
    const key = (isStart ? "^" : "") + sets.map((set) => set.join(",")).join(";");
    let id = byKey.get(key);
    if (id === undefined) {
      const accepts = members.every(({ nfa, isNegated }, i) =>
        nfa.accepts(sets[i]!, isStart) !== isNegated
      );
      id = states.push({ sets, accepts }) - 1;
      byKey.set(key, id);
    }
    return id;
  }

  function allTransitions(id: number): readonly number[] {
    const state = states[id]!;
    return state.all ??= merged(members, state.sets, (sets) => intern(sets, false));
  }

  function isAlive(id: number): boolean {
    const state = states[id]!;
    if (isSure) return true;
    if (state.isAlive === undefined) markAlive(id);
    return state.isAlive!;
  }

  // Looks at all that can be reached, and marks what leads to an end.
  function markAlive(from: number): void {
    const reached = new Set([from]);
    const before = new Map<number, number[]>();
    for (const id of reached) {
      if (states[id]!.isAlive !== undefined) continue;
      if (reached.size > MOST_STATES) {
        throw new UnsupportedError(`a joined pattern has more than ${MOST_STATES} states`);
      }
      const list = allTransitions(id);
      for (let i = 2; i < list.length; i += 3) {
        reached.add(list[i]!);
        const sources = before.get(list[i]!);
        if (sources) sources.push(id);
        else before.set(list[i]!, [id]);
      }
    }
    const alive = new Set([...reached].filter((id) => states[id]!.accepts || states[id]!.isAlive));
    for (const id of alive) for (const source of before.get(id) ?? []) alive.add(source);
    for (const id of reached) states[id]!.isAlive = alive.has(id);
  }

  const first = intern(members.map(({ nfa }) => nfa.closure([nfa.start], true)), true);
  return {
    isEmpty: first < 0 || !isAlive(first) || (isSure && states[first]!.sets[0]!.length === 0),
    transitions(id) {
      const state = states[id]!;
      if (state.alive) return state.alive;
      const all = allTransitions(id);
      const alive: number[] = [];
      for (let i = 0; i < all.length; i += 3) {
        if (isAlive(all[i + 2]!)) alive.push(all[i]!, all[i + 1]!, all[i + 2]!);
      }
      return state.alive = alive;
    },
    accepts: (id) => states[id]!.accepts,
    get size() {
      return states.length;
    },
  };
}

// Cuts all code points where an edge begins or ends, and joins neighbours that lead to the same state.
function merged(
  members: readonly Member[],
  sets: readonly (readonly number[])[],
  intern: (sets: readonly (readonly number[])[]) => number,
): number[] {
  const edges = members.flatMap(({ nfa }, member) =>
    sets[member]!.flatMap((state) => nfa.edges[state]!.map(({ set, to }) => ({ member, set, to })))
  );
  const cuts = new Set([0]);
  for (const { set } of edges) {
    for (let i = 0; i < set.length; i += 2) cuts.add(set[i]!).add(set[i + 1]! + 1);
  }
  const sorted = [...cuts].filter((cut) => cut <= LAST).sort((a, b) => a - b);
  const cursors = new Int32Array(edges.length);
  const targets = new Map<string, number>();
  const list: number[] = [];
  for (const [index, low] of sorted.entries()) {
    const high = (sorted[index + 1] ?? LAST + 1) - 1;
    const hit: number[] = [];
    for (const [i, { set }] of edges.entries()) {
      while (cursors[i]! < set.length && set[cursors[i]! + 1]! < low) cursors[i]! += 2;
      if (cursors[i]! < set.length && set[cursors[i]!]! <= low) hit.push(i);
    }
    const key = hit.join(",");
    let to = targets.get(key);
    if (to === undefined) {
      to = intern(members.map(({ nfa }, member) => {
        const own = hit.map((i) => edges[i]!).filter((edge) => edge.member === member);
        return own.length === 0 ? [] : nfa.closure(own.map(({ to: state }) => state), false);
      }));
      targets.set(key, to);
    }
    if (to < 0) continue;
    if (list.at(-1) === to && list.at(-2) === low - 1) list[list.length - 2] = high;
    else list.push(low, high, to);
  }
  return list;
}
