// Where the last few tokens of a text stood before: hash tables of n-grams, one for each n, that grow with the text. A
// token costs one entry a table, a question one look at each, however long the text is. An entry is the place behind an
// n-gram; that the tokens are those is seen in the text itself.

/** Which of several places of an n-gram is remembered. */
export type Occurrence = "first" | "latest";

/** The places of n-grams in a text. */
export interface NgramIndex {
  /** Takes in what `tokens` has more than at the last call. */
  extend(tokens: ArrayLike<number>): void;
  /**
   * The place behind the longest n-gram that the text ends with and that stood before its end, too; −1 if there is none.
   */
  find(): number;
}

const FIRST_SIZE = 1024;

/** An index of all n-grams up to `longest` tokens. */
export function createNgramIndex(
  { longest, occurrence }: { readonly longest: number; readonly occurrence: Occurrence },
): NgramIndex {
  // Zero is a free cell.
  const tables = Array.from({ length: longest }, () => new Int32Array(FIRST_SIZE));
  const used = new Int32Array(longest);
  let text: ArrayLike<number> = [];
  let length = 0;

  /** Cell of the n-gram before `end`: its own, or the free one where it belongs. */
  function cellOf(n: number, end: number): number {
    const table = tables[n - 1]!, mask = table.length - 1;
    let hash = 0;
    for (let i = end - n; i < end; i++) hash = Math.imul(hash ^ text[i]!, 0x9e3779b1) ^ hash >>> 15;
    for (let cell = hash & mask;; cell = cell + 1 & mask) {
      if (table[cell] === 0 || isAlike(table[cell]!, end, n)) return cell;
    }
  }

  function isAlike(a: number, b: number, n: number): boolean {
    for (let i = 1; i <= n; i++) if (text[a - i] !== text[b - i]) return false;
    return true;
  }

  function add(n: number, end: number): void {
    const cell = cellOf(n, end), table = tables[n - 1]!;
    if (table[cell] === 0) {
      table[cell] = end;
      if (++used[n - 1]! * 2 > table.length) grow(n);
    } else if (occurrence === "latest") table[cell] = end;
  }

  function grow(n: number): void {
    const old = tables[n - 1]!;
    tables[n - 1] = new Int32Array(2 * old.length);
    for (const end of old) if (end > 0) tables[n - 1]![cellOf(n, end)] = end;
  }

  return {
    extend(tokens) {
      text = tokens;
      // An n-gram is known once something has followed it.
      for (; length < tokens.length; length++) {
        for (let n = 1; n <= longest && n <= length; n++) add(n, length);
      }
    },
    find() {
      for (let n = Math.min(longest, length - 1); n > 0; n--) {
        const place = tables[n - 1]![cellOf(n, length)]!;
        if (place > 0) return place;
      }
      return -1;
    },
  };
}
