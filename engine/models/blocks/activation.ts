// The words that config files use for activations, and what the graph's ops call them. "gelu" is the exact form with erf, "gelu_tanh" the approximation: mixing
// them up moves logits by up to 7e-3 and no argmax, so a file's word is never guessed.

import { UnsupportedError } from "../../errors.ts";
import type { ActivationName } from "../../graph/activations.ts";

const WORDS: Readonly<Record<string, ActivationName>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_tanh: "gelu_tanh",
  gelu_new: "gelu_tanh",
  gelu_fast: "gelu_tanh",
  gelu_pytorch_tanh: "gelu_tanh",
  relu: "relu",
};

/**
 * The activation that a config file's word stands for.
 *
 * @throws {UnsupportedError} If nothing here computes it.
 */
export function activationOf(word: string, file: string): ActivationName {
  const activation = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  if (activation) return activation;
  throw new UnsupportedError(
    `activation "${word}" is not built: known are ${Object.keys(WORDS).join(", ")}`,
    { file },
  );
}
