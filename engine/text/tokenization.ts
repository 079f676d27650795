// A tokenizer by the algorithm that a description of a model names [IF-8]: a vocabulary can be matched greedily
// whatever it was made for, but merges and probabilities stand in files of their own kind only.

import { UnsupportedError } from "../errors.ts";
import { createMaximumMatching } from "./maximum_matching.ts";
import type { Tokenizer, TokenizerAlgorithm } from "./tokenizer_types.ts";

/** Names of Inferflow's algorithms that need a vocabulary of their own kind. */
const OWN: ReadonlyMap<string, TokenizerAlgorithm> = new Map([["bpe", "bpe"], ["ulm", "unigram"]]);

/**
 * The tokenizer of a model's files, or another one over its vocabulary.
 *
 * @param name `fmm` or `fmm2`; `bpe` or `ulm`, which the files must be of; `std` or nothing for what they are.
 * @param file For messages.
 * @throws {UnsupportedError} If the files are of another kind.
 */
export function byAlgorithm(
  tokenizer: Tokenizer,
  { name, file }: { readonly name: string; readonly file: string },
): Tokenizer {
  if (name === "fmm" || name === "fmm2") return createMaximumMatching(tokenizer);
  const wanted = OWN.get(name);
  if (wanted === undefined || wanted === tokenizer.algorithm) return tokenizer;
  throw new UnsupportedError(
    `is "${name}", and the model's tokenizer is of the kind ${tokenizer.algorithm}`,
    {
      file,
      place: "tokenization_algorithm",
      remedy: 'Leave the key out to use the model\'s own, or say "fmm"',
    },
  );
}
