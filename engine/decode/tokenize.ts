// tokenize(): a text's tokens for people to look at, each with the piece of text it stands for.

import type { EncodeOptions, Tokenizer } from "../text/tokenizer.ts";

/**
 * One token of a text.
 * @category Tokens and templates
 */
export interface TextToken {
  /** Token id. */
  readonly id: number;
  /** As the vocabulary writes it (`Ġthe`, `▁the`, `<0x0A>`). */
  readonly piece: string;
}

/**
 * Tokens of a text.
 *
 * @param from A model, or anything else with a tokenizer.
 * @throws {FormatError} If the vocabulary cannot express a part of the text.
 *
 * @example
 * ```ts
 * import { load, tokenize } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("model.gguf");
 * assertEquals(tokenize(model, "a").map(({ piece }) => piece), ["<s>", "▁a"]);
 * ```
 * @category Tokens and templates
 */
export function tokenize(
  from: { readonly tokenizer: Tokenizer },
  text: string,
  options: EncodeOptions = {},
): TextToken[] {
  const { tokenizer } = from;
  return tokenizer.encode(text, options).map((id) => ({ id, piece: tokenizer.tokenText(id) }));
}
