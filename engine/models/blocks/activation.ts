// The words that config files use for activations, and what the graph's ops call them. "gelu" is the exact form with
// erf, "gelu_tanh" the approximation: mixing them up moves logits by up to 7e-3 and no argmax, so a file's word is never guessed.

import { FormatError, UnsupportedError } from "../../errors.ts";
import type { ActivationName } from "../../ops/activations.ts";
import type { BlockContext } from "./context.ts";

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
 * The activation of a model's feed-forward blocks: the spec's, else what the file says.
 *
 * @throws {UnsupportedError} If nothing here computes it. @throws {FormatError} If neither says one.
 */
export function activationOf({ spec, params, file }: BlockContext): ActivationName {
  const word = spec.feedForward.activation ?? params.activation;
  if (word === undefined) {
    throw new FormatError("is missing, and the model cannot be built without it", {
      file,
      place: "activation",
    });
  }
  const activation = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  if (activation) return activation;
  throw new UnsupportedError(
    `activation "${word}" is not built: known are ${Object.keys(WORDS).join(", ")}`,
    { file, place: "activation of the feed-forward blocks" },
  );
}
