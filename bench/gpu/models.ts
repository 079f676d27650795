// The models of `deno task bench gpu`: a real one, and shapes of larger ones with random weights, as files that the peer
// reads, too. What they are asked to go on with is real text where a model has words for it.

import { pullModel } from "../../engine/formats/hub/pull.ts";
import { loadTokenizer } from "../../engine/models/load.ts";
import { makeRandomModel, RANDOM_MODELS } from "../support/random_llama.ts";

/** Short names. */
const NAMES: Readonly<Record<string, string>> = {
  smollm2: "smollm2-135m",
  "1b": "llama-1b-q4_0",
  "8b": "llama-8b-q4_0",
  tiny: "llama-tiny-q4_0",
};

/** A file to measure. */
export interface GpuModel {
  readonly name: string;
  readonly path: string;
  /** Has random weights, and words that mean nothing. */
  readonly isRandom: boolean;
}

/** Finds a model by its short name or any that `load` knows, or makes it. */
export async function findGpuModel(name: string): Promise<GpuModel> {
  const known = NAMES[name] ?? name;
  if (!RANDOM_MODELS.includes(known)) {
    return { name, path: await pullModel(known), isRandom: false };
  }
  const { path } = await makeRandomModel(known);
  return { name, path, isRandom: true };
}

const TEXT = new URL("../../tests/fixtures/text/opticks-book3.txt", import.meta.url);

/** So many tokens of Newton's Opticks; of random models ids that are no control tokens, all over the vocabulary. */
export async function textIds(
  { path, isRandom }: GpuModel,
  { count, vocabulary }: { readonly count: number; readonly vocabulary: number },
): Promise<number[]> {
  if (isRandom) {
    return Array.from({ length: count }, (_, i) => 300 + i * 7919 % (vocabulary - 300));
  }
  const ids = (await loadTokenizer(path)).encode(await Deno.readTextFile(TEXT));
  if (ids.length < count) throw new RangeError(`The text has ${ids.length} tokens of ${count}`);
  return ids.slice(0, count);
}
