// Finds whole tokens (control tokens, words added by hand) in text before anything else happens to
// it: leftmost first, longest among those that begin at the same place. A vocabulary may hold
// thousands of them that begin alike (`<unused0>` …), so the candidates at a place are looked up by
// first character and length, never tried one by one.

/** Calls `onText` for the stretches between whole tokens and `onToken` for the tokens, in order. */
export type SpecialSplitter = (
  text: string,
  onText: (stretch: string, start: number, end: number) => void,
  onToken: (id: number) => void,
) => void;

/**
 * Makes a splitter for a set of tokens.
 *
 * @param tokens Text of each token and its id; empty texts are ignored.
 */
export function createSpecialSplitter(tokens: ReadonlyMap<string, number>): SpecialSplitter {
  const lengths = new Map<number, number[]>();
  for (const text of tokens.keys()) {
    if (text === "") continue;
    const first = text.charCodeAt(0);
    const known = lengths.get(first);
    if (known === undefined) lengths.set(first, [text.length]);
    else if (!known.includes(text.length)) known.push(text.length);
  }
  for (const list of lengths.values()) list.sort((a, b) => b - a);

  return (text, onText, onToken) => {
    let start = 0;
    let at = 0;
    while (at < text.length && lengths.size > 0) {
      const candidates = lengths.get(text.charCodeAt(at));
      const length = candidates?.find((n) => tokens.has(text.slice(at, at + n)));
      if (length === undefined) {
        at++;
        continue;
      }
      if (at > start) onText(text.slice(start, at), start, at);
      onToken(tokens.get(text.slice(at, at + length)) as number);
      at += length;
      start = at;
    }
    if (start < text.length) onText(text.slice(start), start, text.length);
  };
}
