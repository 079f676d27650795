// Sets of code points as sorted ranges, `[low, high, low, high, …]`, both ends inside, no two ranges touching. Half
// surrogates are code points too: JSON can write them, as escapes.

/** Sorted ranges of code points. */
export type CodePoints = readonly number[];

/** Greatest code point. */
export const LAST = 0x10ffff;

/** Every code point. */
export const ALL: CodePoints = [0, LAST];

/** The set of some ranges, in any order. */
export function codePoints(
  ...ranges: readonly (readonly [low: number, high: number])[]
): CodePoints {
  const sorted = ranges.filter(([low, high]) => low <= high).sort(([a], [b]) => a - b);
  const set: number[] = [];
  for (const [low, high] of sorted) {
    if (set.length > 0 && low <= set.at(-1)! + 1) {
      set[set.length - 1] = Math.max(set.at(-1)!, high);
    } else set.push(low, high);
  }
  return set;
}

/** The set of the characters of a text. */
export function charactersOf(text: string): CodePoints {
  return codePoints(...[...text].map((character): [number, number] => {
    const point = character.codePointAt(0)!;
    return [point, point];
  }));
}

/** What is in one of the sets. */
export function union(...sets: readonly CodePoints[]): CodePoints {
  return codePoints(...sets.flatMap(rangesOf));
}

/** What is not in the set. */
export function complement(set: CodePoints): CodePoints {
  const rest: number[] = [];
  let next = 0;
  for (let i = 0; i < set.length; i += 2) {
    if (set[i]! > next) rest.push(next, set[i]! - 1);
    next = set[i + 1]! + 1;
  }
  if (next <= LAST) rest.push(next, LAST);
  return rest;
}

function rangesOf(set: CodePoints): [number, number][] {
  const ranges: [number, number][] = [];
  for (let i = 0; i < set.length; i += 2) ranges.push([set[i]!, set[i + 1]!]);
  return ranges;
}
