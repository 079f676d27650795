// The word that was meant: flags, options, fields, commands and names of models find it here.

/** Number of single-character edits between two words, a swap of neighbours counting as one. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    before = last;
    last = row;
  }
  return last[b.length]!;
}

/** Of words as near as each other the one with the same first letter, which is seldom mistyped, goes before. */
function distanceOf(word: string, candidate: string): number {
  return editDistance(word, candidate) + (word[0] === candidate[0] ? 0 : 0.5);
}

/**
 * The known word closest to a misspelt one, whose case does not count; undefined when none is close.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * assertEquals(nearest("promt", ["prompt", "seed"]), "prompt");
 * assertEquals(nearest("xyz", ["prompt", "seed"]), undefined);
 * ```
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const folded = word.toLowerCase();
  let best: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = candidate.startsWith(`${word}-`)
      ? 0 // its first word
      : candidate.startsWith(word)
      ? 1
      : distanceOf(folded, candidate.toLowerCase());
    if (distance < least && distance < Math.max(word.length, 2)) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}
