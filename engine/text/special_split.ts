// Finds whole tokens (control tokens, words added by hand) in text before anything else happens to
// it: leftmost first, longest among those that begin at the same place. A vocabulary may hold
// thousands of them that begin alike (`<unused0>` …) or runs of one character, so they stand in a trie:
// the work at a place is bounded by the longest token, and most places fail at the first unit.

/** Calls `onText` for the stretches between whole tokens and `onToken` for the tokens, in order. */
export type SpecialSplitter = (
  text: string,
  onText: (stretch: string, start: number) => void,
  onToken: (id: number, start: number) => void,
) => void;

interface TrieNode {
  readonly next: Map<number, TrieNode>;
  id: number | undefined;
}

function buildTrie(tokens: ReadonlyMap<string, number>): TrieNode {
  const root: TrieNode = { next: new Map(), id: undefined };
  for (const [text, id] of tokens) {
    let node = root;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      let child = node.next.get(unit);
      if (child === undefined) node.next.set(unit, child = { next: new Map(), id: undefined });
      node = child;
    }
    if (node !== root) node.id = id;
  }
  return root;
}

/**
 * Makes a splitter for a set of tokens.
 *
 * @param tokens Text of each token and its id; an empty text never matches.
 */
export function createSpecialSplitter(tokens: ReadonlyMap<string, number>): SpecialSplitter {
  const root = buildTrie(tokens);

  return (text, onText, onToken) => {
    let start = 0;
    let at = 0;
    while (at < text.length) {
      let id: number | undefined;
      let end = at;
      let node = root.next.get(text.charCodeAt(at));
      for (let i = at + 1; node !== undefined; i++) {
        if (node.id !== undefined) {
          id = node.id;
          end = i;
        }
        if (i >= text.length) break;
        node = node.next.get(text.charCodeAt(i));
      }
      if (id === undefined) {
        at++;
        continue;
      }
      if (at > start) onText(text.slice(start, at), start);
      onToken(id, at);
      at = end;
      start = end;
    }
    if (start < text.length) onText(text.slice(start), start);
  };
}
