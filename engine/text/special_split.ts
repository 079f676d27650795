// Finds whole tokens (control tokens, words added by hand) in text before anything else happens to
// it: leftmost first, longest among those that begin at the same place. A vocabulary may hold
// thousands of them that begin alike (`<unused0>` …) or runs of one character, so they stand in a trie:
// the work at a place is bounded by the longest token, and most places fail at the first unit.
//
// A token may have manners: blanks beside it that belong to it, or words that it must not be a part of.
// They are those of Hugging Face's added tokens (added_vocabulary.rs): a place that they refuse is passed
// with all of the token's length, and a shorter token there is not tried.

/** How a whole token stands in its text. */
export interface TokenManners {
  /** Blanks in front belong to it. */
  readonly left: boolean;
  /** Blanks behind belong to it. */
  readonly right: boolean;
  /** It is no part of a longer word. */
  readonly isWord: boolean;
}

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
    // The first of two alike wins.
    if (node !== root) node.id ??= id;
  }
  return root;
}

// Classes of Unicode take long to read, and few tokens have manners: patterns are made when they are used.
function isWord(character: string): boolean {
  return /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u.test(character);
}

function isBlank(character: string): boolean {
  return /\p{White_Space}/u.test(character);
}

/** Whether the character that ends before `at` is one of words. */
function endsWord(text: string, at: number): boolean {
  const isPair = at > 1 && (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00;
  return at > 0 && isWord(text.slice(isPair ? at - 2 : at - 1, at));
}

function beginsWord(text: string, at: number): boolean {
  return at < text.length && isWord(String.fromCodePoint(text.codePointAt(at) as number));
}

/**
 * Makes a splitter for a set of tokens.
 *
 * @param tokens Text of each token and its id; an empty text never matches.
 * @param manners Of the ids that have any. Blanks that belong to a token are in no stretch.
 */
export function createSpecialSplitter(
  tokens: ReadonlyMap<string, number>,
  manners?: ReadonlyMap<number, TokenManners>,
): SpecialSplitter {
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
      const own = manners?.get(id);
      if (own?.isWord && (endsWord(text, at) || beginsWord(text, end))) {
        at = end;
        continue;
      }
      let from = at;
      if (own?.left) { while (from > start && isBlank(text[from - 1])) from--; }
      if (from > start) onText(text.slice(start, from), start);
      onToken(id, at);
      at = start = end;
      if (own?.right) { while (start < text.length && isBlank(text[start])) start++; }
    }
    if (start < text.length) onText(text.slice(start), start);
  };
}
