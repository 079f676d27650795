// From tokens to words, by the rules of openai/whisper and transformers (`_combine_tokens_into_words`): tokens that make no
// whole character belong to the next, a word begins with a space or a mark, and marks then join the word that they stand
// at. Languages without spaces are cut at every token that ends a character.

import type { Tokenizer } from "../../text/tokenizer.ts";

/** A word and its tokens. */
export interface SpokenWord {
  readonly text: string;
  /** Of its first token, and of its last, among those given. */
  readonly from: number;
  readonly last: number;
}

/** Chinese, Japanese, Thai, Lao, Burmese, Cantonese. */
const WITHOUT_SPACES: readonly string[] = ["zh", "ja", "th", "lo", "my", "yue"];
const MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
/** Marks that belong to the word behind them, and to that in front of them. */
const OPENING = "\"'“¡¿([{-", CLOSING = "\"'.。,，!！?？:：”)]}、";
/** Tokens that stand for no text are none. */
const SHOWN = { skipSpecial: true };
/** In place of bytes that are no character. */
const BROKEN = "\ufffd";

/**
 * Cuts the tokens of a stretch into words, each with the space in front of it. Bytes at the end that make no character
 * are left out.
 */
export function wordsOf(
  ids: readonly number[],
  { tokenizer, language }: {
    readonly tokenizer: Pick<Tokenizer, "decode">;
    readonly language: string | undefined;
  },
): SpokenWord[] {
  const characters = wholeCharacters(ids, tokenizer);
  const words = WITHOUT_SPACES.includes(language ?? "") ? characters : spaced(characters);
  return closed(opened(words)).filter(({ text }) => text !== "");
}

function wholeCharacters(
  ids: readonly number[],
  tokenizer: Pick<Tokenizer, "decode">,
): SpokenWord[] {
  const whole = tokenizer.decode(ids, SHOWN), found: SpokenWord[] = [];
  let from = 0, length = 0;
  for (let last = 0; last < ids.length; last++) {
    const text = tokenizer.decode(ids.slice(from, last + 1), SHOWN), broken = text.indexOf(BROKEN);
    // What is broken in the whole text too does not become whole with the next token.
    const isOver = broken < 0 || length + broken >= whole.length ||
      whole[length + broken] === BROKEN;
    if (!isOver) continue;
    found.push({ text, from, last });
    length += text.length;
    from = last + 1;
  }
  return found;
}

function joined(first: SpokenWord, second: SpokenWord): SpokenWord {
  return { text: first.text + second.text, from: first.from, last: second.last };
}

function spaced(parts: readonly SpokenWord[]): SpokenWord[] {
  const words: SpokenWord[] = [];
  for (const part of parts) {
    const isNew = words.length === 0 || part.text.startsWith(" ") ||
      MARKS.includes(part.text.trim());
    if (isNew) words.push(part);
    else words.push(joined(words.pop()!, part));
  }
  return words;
}

/** Opening marks with a space in front join the word behind them. */
function opened(words: readonly SpokenWord[]): SpokenWord[] {
  return words.reduceRight<SpokenWord[]>((found, word) => {
    const isOpening = word.text.startsWith(" ") && OPENING.includes(word.text.trim());
    const [next, ...others] = found;
    return isOpening && next ? [joined(word, next), ...others] : [word, ...found];
  }, []);
}

/** Closing marks join the word in front of them. */
function closed(words: readonly SpokenWord[]): SpokenWord[] {
  const found: SpokenWord[] = [];
  for (const word of words) {
    const last = found.at(-1);
    if (last && !last.text.endsWith(" ") && CLOSING.includes(word.text)) {
      found[found.length - 1] = joined(last, word);
    } else found.push(word);
  }
  return found;
}
