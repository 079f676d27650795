// Names of options: one that no option has is refused with what was meant, since an option that is read past would be a
// setting that nobody makes. Flags and commands find by `nearest` what was meant, too.

/** Every name of an options type, once; the compiler holds it complete. */
export type OptionKeys<T> = Readonly<Record<keyof Required<T>, true>>;

/**
 * Refuses names that are not known.
 *
 * @param of What takes the options, for the message: `load()`.
 * @throws {RangeError} Naming the option, and the nearest one or all there are.
 */
export function checkOptionKeys<T>(
  options: T,
  { of, known }: { readonly of: string; readonly known: OptionKeys<T> },
): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`Cannot use options of ${of}: they must be an object`);
  }
  const names = Object.keys(known);
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue;
    const near = meantBy(name, names);
    const hint = near === undefined ? `There are ${names.join(", ")}` : `Did you mean ${near}?`;
    throw new RangeError(`Cannot use option "${name}" of ${of}: there is none. ${hint}`);
  }
}

/** The option that was meant: as Python writes names, or with another second half (max_tokens, contextSize). */
export function meantBy(name: string, names: readonly string[]): string | undefined {
  const plain = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const [word] = /^[a-z]+/.exec(plain) ?? [];
  return nearest(plain, names) ??
    (word && word.length > 3 ? names.find((one) => one.startsWith(word)) : undefined);
}

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

/**
 * The known word closest to a misspelt one, or undefined when none is close.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * assertEquals(nearest("promt", ["prompt", "seed"]), "prompt");
 * assertEquals(nearest("xyz", ["prompt", "seed"]), undefined);
 * ```
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = candidate.startsWith(word) ? 1 : editDistance(word, candidate);
    if (distance < least && distance < Math.max(word.length, 2)) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}
