// Bounds on the number of characters of a text. They are not states of its automaton, which would be as many as the
// bound is large: a reader counts, and asks here whether a place can still be left in time. Which lengths lead from a
// place to an end follows from which do so with one character less; the sets repeat sooner or later.

import { UnsupportedError } from "../../errors.ts";
import { LAST } from "./code_points.ts";
import { type Dfa, MOST_STATES } from "./dfa.ts";

/** Bounds on a length, with what can be reached within them. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
  /** Whether every text is in the language, so that only the count matters. */
  readonly isFree: boolean;
  /** From no place is the nearest end so many characters and more away, unless that is Infinity: then nobody knows. */
  readonly furthest: number;
  /** Whether a text may end that goes on from a place, with so many characters counted. */
  canFinish(place: number, count: number): boolean;
}

/** Most places by length of a language whose texts are bounded. */
const MOST_KNOWN = 2 ** 24;

/** Bounds on the texts of a language. @throws {UnsupportedError} If it has too many places, `canFinish` too. */
export function createBounds(
  dfa: Dfa,
  { min, max }: { readonly min: number; readonly max: number },
): Bounds {
  const next = successors(dfa);
  const levels = [Uint8Array.from(next, (_, place) => Number(dfa.accepts(place)))];
  const known = new Map([[levels[0]!.join(""), 0]]);
  let repeatsFrom = -1;

  // From which places an end is so many characters away.
  function level(length: number): Uint8Array {
    while (repeatsFrom < 0 && levels.length <= length) {
      const last = levels.at(-1)!;
      const own = Uint8Array.from(next, (to) => Number(to.some((place) => last[place])));
      const key = own.join("");
      if (known.has(key)) repeatsFrom = known.get(key)!;
      else {
        known.set(key, levels.length);
        if (levels.push(own) * own.length > MOST_KNOWN) throw tooLarge();
      }
    }
    if (length < levels.length) return levels[length]!;
    return levels[repeatsFrom + (length - repeatsFrom) % (levels.length - repeatsFrom)]!;
  }

  return {
    min,
    max,
    isFree: next.every((_, place) => isFree(dfa, place)),
    furthest: furthestEnd(next, dfa),
    canFinish(place, count) {
      const least = Math.max(0, min - count);
      for (let length = least; length <= max - count; length++) {
        if (level(length)[place]) return true;
        if (repeatsFrom >= 0 && length > least + levels.length) return false;
      }
      return false;
    },
  };
}

// Any character may follow, and none need.
function isFree(dfa: Dfa, place: number): boolean {
  const [low, high] = dfa.transitions(place);
  return dfa.accepts(place) && low === 0 && high === LAST;
}

// Goes back from the ends, one character at a time.
function furthestEnd(next: readonly (readonly number[])[], dfa: Dfa): number {
  const open = new Set(next.keys());
  let ends: readonly number[] = [...open].filter((place) => dfa.accepts(place));
  const known = new Set(ends);
  for (let length = 1; ends.length > 0; length++) {
    for (const place of known) open.delete(place);
    ends = [...open].filter((place) => next[place]!.some((one) => known.has(one)));
    for (const place of ends) known.add(place);
    if (ends.length === 0) return length;
  }
  return Infinity;
}

function successors(dfa: Dfa): number[][] {
  const next: number[][] = [];
  const seen = new Set([0]);
  for (const place of seen) {
    const list = dfa.transitions(place);
    const targets = new Set<number>();
    for (let i = 2; i < list.length; i += 3) targets.add(list[i]!);
    next[place] = [...targets];
    for (const target of targets) seen.add(target);
    if (seen.size > MOST_STATES) throw tooLarge();
  }
  // States that the construction looked at and found dead have no successors.
  return Array.from({ length: Math.max(...seen) + 1 }, (_, place) => next[place] ?? []);
}

function tooLarge(): UnsupportedError {
  return new UnsupportedError("a pattern is too large for bounds on the length of its texts");
}
