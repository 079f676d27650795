// Prompts as ids, cut and filled up to the length that a text encoder was trained on.

import type { Tokenizer } from "../../text/tokenizer_types.ts";

/** Ids of a prompt. */
export interface PromptIds {
  readonly ids: readonly number[];
  /** How many of them are the prompt's own; the rest fills up. */
  readonly count: number;
  /** Tokens that did not fit. */
  readonly dropped: number;
}

/** Cuts or fills up a prompt. */
export function promptIds(
  tokenizer: Tokenizer,
  { text, length }: { readonly text: string; readonly length: number },
): PromptIds {
  const { prefixIds, suffixIds, padId, eosId } = tokenizer;
  // As in diffusers, texts of control tokens count as such: an encoder obeys nobody.
  const plain = tokenizer.encode(text, { special: true, addSpecial: false });
  const room = length - prefixIds.length - suffixIds.length;
  const own = [...prefixIds, ...plain.slice(0, room), ...suffixIds];
  const filler = new Array<number>(length - own.length).fill(padId ?? eosId ?? 0);
  const dropped = Math.max(0, plain.length - room);
  return { ids: [...own, ...filler], count: own.length, dropped };
}
