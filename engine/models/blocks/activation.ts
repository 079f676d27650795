// The words that config files use for activations, and what the graph's ops call them. "gelu" is the exact form with
// erf, "gelu_tanh" the approximation: mixing them up moves logits by up to 7e-3 and no argmax, so a file's word is never guessed.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { UNARY, UNARY_NAMES, type UnaryName } from "../../../functions/unary.ts";
import type { BlockContext } from "./context.ts";

const WORDS: ReadonlyMap<string, UnaryName> = new Map(
  UNARY_NAMES.flatMap((name) => (UNARY[name].words ?? []).map((word) => [word, name] as const)),
);

/**
 * The activation of a model's feed-forward blocks: the spec's, else what the file says.
 *
 * @throws {UnsupportedError} If nothing here computes it. @throws {FormatError} If neither says one.
 */
export function activationOf({ spec, params, file }: BlockContext): UnaryName {
  const word = spec.feedForward.activation ?? params.activation;
  if (word === undefined) {
    throw new FormatError("is missing, and the model cannot be built without it", {
      file,
      place: "activation",
    });
  }
  const activation = WORDS.get(word);
  if (activation) return activation;
  throw new UnsupportedError(
    `activation "${word}" is not built: known are ${[...WORDS.keys()].join(", ")}`,
    { file, place: "activation of the feed-forward blocks" },
  );
}
