// BERT's "basic tokenization" (google-research/bert, as Hugging Face's BertNormalizer and
// BertPreTokenizer do it): clean, put blanks around Han characters, strip accents, lower case, cut at
// blanks and at every punctuation mark. Lower case is taken character by character: JavaScript's own
// `toLowerCase` writes a final sigma, the reference does not.

/** What to do with a text before it is cut into words. */
export interface BertTextOptions {
  readonly cleanText: boolean;
  readonly spaceHan: boolean;
  readonly stripAccents: boolean;
  readonly lowercase: boolean;
}

// Unassigned characters stay: what is unassigned changes with each version of Unicode.
const DROPPED = /[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu;
const BLANK = /[\t\n\r]|\p{White_Space}/gu;
/** The blocks that BERT counts as Chinese; Hangul, kana and newer extensions are not among them. */
const HAN = new RegExp(
  "[\\u4e00-\\u9fff\\u3400-\\u4dbf\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b73f}" +
    "\\u{2b740}-\\u{2b81f}\\u{2b920}-\\u{2ceaf}\\uf900-\\ufaff\\u{2f800}-\\u{2fa1f}]",
  "gu",
);
const PUNCTUATION = "!-/:-@\\[-`\\{-~\\p{P}";
const WORD = new RegExp(
  `[^\\p{White_Space}${PUNCTUATION}]+|[${PUNCTUATION}]`,
  "gu",
);

/** Lower case without a look at the neighbours. */
export function lowercaseEach(text: string): string {
  return text.includes("\u03a3")
    ? Array.from(text, (char) => char.toLowerCase()).join("")
    : text.toLowerCase();
}

/** Removes combining marks after taking letters and marks apart. */
function stripAccents(text: string): string {
  return text.normalize("NFD").replace(/\p{Mn}/gu, "");
}

/** Cleans a text. */
export function normalizeBertText(text: string, options: BertTextOptions): string {
  let result = text;
  if (options.cleanText) result = result.replace(DROPPED, "").replace(BLANK, " ");
  if (options.spaceHan) result = result.replace(HAN, " $& ");
  if (options.stripAccents) result = stripAccents(result);
  return options.lowercase ? lowercaseEach(result) : result;
}

/** Cuts a text into words and single punctuation marks; blanks disappear. */
export function splitBertWords(text: string): string[] {
  return text.match(WORD) ?? [];
}
