// Which tokens end an answer. Files name one end token, models use several (end of text, of turn, of
// message), and a model that goes on past the end of its turn talks to itself. So tokens that are
// known to mean an end count too, but only where the vocabulary says that they are no ordinary text.
// This is a table of token texts, not of models.

import { TOKEN_KIND, type Vocabulary } from "./vocabulary.ts";

const END_TEXTS: readonly string[] = [
  "<|endoftext|>",
  "<|end_of_text|>",
  "<|end▁of▁sentence|>",
  "<｜end▁of▁sentence｜>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<|im_end|>",
  "<|end|>",
  "<|return|>",
  "<|call|>",
  "<end_of_turn>",
  "<turn|>",
  "<|end_of_turn|>",
  "<|END_OF_TURN_TOKEN|>",
  "<|endofturn|>",
  "<EOT>",
  "<|EOT|>",
  "_<EOT>",
  "<end_of_utterance>",
  "<eos>",
  "[EOS]",
  "[EOT]",
];

/** Ids that end generation: the named ones and those of the table that are no ordinary text. */
export function endOfGenerationIds(
  { ids, kinds }: Vocabulary,
  named: Iterable<number | undefined>,
): Set<number> {
  const found = new Set<number>();
  for (const id of named) if (id !== undefined) found.add(id);
  for (const text of END_TEXTS) {
    const id = ids.get(text);
    if (id === undefined) continue;
    if (kinds[id] === TOKEN_KIND.control || kinds[id] === TOKEN_KIND.userDefined) found.add(id);
  }
  return found;
}
