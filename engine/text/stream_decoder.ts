// Text from tokens one at a time. A token's bytes may end inside a character; what is not yet a whole
// character waits for the next token, so no piece ends in half of one. All pieces joined equal
// `Tokenizer.decode` of all ids, broken bytes included, whatever the ids are: both are the same bytes
// through the same UTF-8 decoder, whose streaming form does the holding back.

import { countLeadingBlanks } from "./assemble.ts";
import type { Tokenizer } from "./tokenizer_types.ts";

/** How a stream is decoded. */
export interface StreamDecoderOptions {
  /** Whether control tokens are left out of the text. False by default, as in `decode`. */
  readonly skipSpecial?: boolean;
  /** Control tokens that are part of the text all the same. */
  readonly shown?: ReadonlySet<number> | undefined;
  /**
   * Whether the text goes on after other text, so that the blank which some vocabularies put in
   * front of a first word is a real one and stays. False by default, as in `decode`.
   */
  readonly continues?: boolean;
}

/** Decodes one stream of tokens. */
export interface StreamDecoder {
  /**
   * Takes the next token and gives the text that is certain now; often empty.
   *
   * @throws {RangeError} If the id is outside the vocabulary.
   */
  push(id: number): string;
  /** Ends the stream and gives what was held back: U+FFFD where a character was never completed. */
  finish(): string;
}

/** Bytes that are given to a function one by one: more of them than a stack has room for are in a token of a broken file. */
const MOST_ARGUMENTS = 1024;

/** Starts a stream. */
export function createStreamDecoder(
  tokenizer: Tokenizer,
  { skipSpecial = false, shown, continues = false }: StreamDecoderOptions = {},
): StreamDecoder {
  // Made when it is needed: an answer may be ASCII to its end, and be over soon.
  let utf8: TextDecoder | undefined, mayHold = false;
  let blanksToDrop = continues ? 0 : tokenizer.leadingBlanks;
  return {
    push(id) {
      if (skipSpecial && tokenizer.isSpecial(id) && !shown?.has(id)) return "";
      const bytes = tokenizer.tokenBytes(id);
      const blanks = countLeadingBlanks(bytes, blanksToDrop);
      blanksToDrop = 0;
      const rest = blanks === 0 ? bytes : bytes.subarray(blanks);
      if (!mayHold && rest.length <= MOST_ARGUMENTS && rest.every(isAscii)) {
        return String.fromCharCode(...rest);
      }
      mayHold = !isAscii(rest.at(-1) ?? 0x80);
      return (utf8 ??= new TextDecoder("utf-8", { ignoreBOM: true })).decode(rest, {
        stream: true,
      });
    },
    finish: () => utf8?.decode() ?? "",
  };
}

function isAscii(byte: number): boolean {
  return byte < 0x80;
}
