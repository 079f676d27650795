// Which tokens end an answer. Files name one end token, models use several (end of text, of turn, of
// message), and a model that goes on past the end of its turn talks to itself. So tokens that are
// known to mean an end count too, but only where the vocabulary says that they are no ordinary text, and that
// nothing beside them gives them another meaning: `<|end|>` ends an answer of Phi-3, and only a message of gpt-oss,
// whose analysis it stands behind. This is a table of token texts, not of models; llama.cpp has the same
// (llama-vocab.cpp, "tokens that cause end-of-generation"). Left out: marks between files and holes of code, behind
// which a text goes on, and `</s>`, which files name where it is an end, and which is HTML in Gemma's vocabulary.

import type { Tokenizer } from "./tokenizer_types.ts";
import { TOKEN_KIND, type Vocabulary } from "./vocabulary/vocabulary.ts";

const END_TEXTS: readonly string[] = [
  ...["<|endoftext|>", "<|end_of_text|>", "<|end▁of▁sentence|>", "<｜end▁of▁sentence｜>"],
  ...["<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>"],
  ...["<|calls|>", "<end_of_turn>", "<turn|>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>"],
  ...["<|endofturn|>", "<EOT>", "<|EOT|>", "_<EOT>", "<end_of_utterance>", "<eos>", "[EOS]"],
  ...["[EOT]", "[e~[", "<|tool_response>"],
];

/** Texts that end no answer in a vocabulary that has all of these beside them. */
const NO_END_BESIDE: readonly (readonly [text: string, beside: readonly string[]])[] = [
  ["<|end|>", ["<|return|>", "<|call|>"]],
  ["<|end|>", ["<|flush|>", "<|calls|>"]],
];

/**
 * Ids that end generation: the named ones, and those of the table that are no ordinary text.
 *
 * @param named Ids that files name. What ends no answer in this vocabulary is not taken from them either:
 * converters write down what they know from other families.
 */
export function endOfGenerationIds(
  { ids, kinds }: Vocabulary,
  named: Iterable<number | undefined>,
): Set<number> {
  const found = new Set([...named].filter((id) => id !== undefined));
  const isMark = (text: string) => {
    const id = ids.get(text);
    return id !== undefined &&
      (kinds[id] === TOKEN_KIND.control || kinds[id] === TOKEN_KIND.userDefined);
  };
  for (const text of END_TEXTS.filter(isMark)) found.add(ids.get(text)!);
  for (const [text, beside] of NO_END_BESIDE) {
    const id = ids.get(text);
    if (id !== undefined && beside.every(isMark)) found.delete(id);
  }
  return found;
}

/** A tokenizer with the ids that files beside it name as ends too. */
export function withEnds(tokenizer: Tokenizer, ids: readonly number[]): Tokenizer {
  const own = tokenizer.endOfGenerationIds;
  const more = ids.filter((id) => id < tokenizer.vocabSize && !own.has(id));
  return more.length === 0
    ? tokenizer
    : { ...tokenizer, endOfGenerationIds: new Set([...own, ...more]) };
}
