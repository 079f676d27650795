// Results for words that come again, bounded in number and in length of the words: two generations,
// the older one dropped as a whole. That is nearly as good as least-recently-used and costs one look-up.

const WORDS_PER_GENERATION = 8192;
const MAX_WORD_LENGTH = 64;

/** Makes a function that remembers what `encode` gave for short words. Results must not be changed. */
export function rememberWords(
  encode: (word: string) => readonly number[],
): (word: string) => readonly number[] {
  let young = new Map<string, readonly number[]>();
  let old = new Map<string, readonly number[]>();

  return (word) => {
    if (word.length > MAX_WORD_LENGTH) return encode(word);
    const fresh = young.get(word);
    if (fresh !== undefined) return fresh;
    const found = old.get(word) ?? encode(word);
    if (young.size >= WORDS_PER_GENERATION) {
      old = young;
      young = new Map();
    }
    young.set(word, found);
    return found;
  };
}
