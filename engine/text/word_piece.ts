// WordPiece: each word is covered from the left by the longest pieces of the vocabulary; a word that
// cannot be covered is the unknown token as a whole. Vocabularies mark either the pieces inside a word
// (`##ing`, the original) or those at its beginning (`▁play`, as GGUF files write them); both become
// two prefixes here.

import type { Vocabulary } from "./vocabulary/vocabulary.ts";

/** How a vocabulary marks the place of a piece in its word. */
export interface WordPieceMarks {
  /** Before a piece that begins a word. */
  readonly begin: string;
  /** Before a piece that goes on with a word. */
  readonly inside: string;
}

/** What a WordPiece model is made of. */
export interface WordPieceOptions {
  readonly vocabulary: Vocabulary;
  readonly marks: WordPieceMarks;
  readonly unkId: number;
  /** Words with more characters than this are unknown; 100 in every published model. */
  readonly maxWordLength: number;
}

/** Makes the encoder of one word. */
export function createWordPiece(options: WordPieceOptions): (word: string, out: number[]) => void {
  const { vocabulary: { ids }, marks, unkId, maxWordLength } = options;

  return (word, out) => {
    if (word.length > maxWordLength && Array.from(word).length > maxWordLength) {
      out.push(unkId);
      return;
    }
    const found: number[] = [];
    for (let start = 0; start < word.length;) {
      const mark = start === 0 ? marks.begin : marks.inside;
      let end = word.length;
      let id: number | undefined;
      while (end > start && (id = ids.get(mark + word.slice(start, end))) === undefined) end--;
      if (id === undefined) {
        out.push(unkId);
        return;
      }
      found.push(id);
      start = end;
    }
    for (const id of found) out.push(id);
  };
}

// Blanks that English writing does not have, taken out piece by piece as the reference decoder does.
const CLEANUPS: readonly (readonly [string, string])[] = [
  [" .", "."],
  [" ?", "?"],
  [" !", "!"],
  [" ,", ","],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [" do not", " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
];

/** Text of a piece behind other text: with a blank in front where it begins a word. */
export function wordPieceText(
  text: string,
  { marks, cleanup }: { readonly marks: WordPieceMarks; readonly cleanup: boolean },
): string {
  const isInside = marks.inside === ""
    ? !text.startsWith(marks.begin)
    : text.startsWith(marks.inside);
  if (isInside) return text.slice(marks.inside.length);
  let shown = " " + (text.startsWith(marks.begin) ? text.slice(marks.begin.length) : text);
  if (cleanup) { for (const [from, to] of CLEANUPS) shown = shown.replaceAll(from, to); }
  return shown;
}
