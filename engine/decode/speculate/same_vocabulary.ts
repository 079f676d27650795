// Whether two models speak of the same tokens: a draft model's ids are given to the other as they are. What counts is the
// text of every token, not the name of a file; it is looked at once for two tokenizers.

import type { Tokenizer } from "../../text/tokenizer.ts";

const known = new WeakMap<Tokenizer, WeakMap<Tokenizer, string | undefined>>();

/** What differs between two vocabularies, in words; undefined: nothing. */
export function vocabularyDifference(a: Tokenizer, b: Tokenizer): string | undefined {
  if (a === b) return undefined;
  const others = known.get(a) ?? new WeakMap<Tokenizer, string | undefined>();
  known.set(a, others);
  if (!others.has(b)) others.set(b, compare(a, b));
  return others.get(b);
}

function compare(a: Tokenizer, b: Tokenizer): string | undefined {
  if (a.vocabSize !== b.vocabSize) return `${b.vocabSize} tokens, not ${a.vocabSize}`;
  for (let id = 0; id < a.vocabSize; id++) {
    const text = a.tokenText(id), other = b.tokenText(id);
    if (text !== other) {
      return `token ${id} is ${JSON.stringify(other)}, not ${JSON.stringify(text)}`;
    }
  }
  return undefined;
}
