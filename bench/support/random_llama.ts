// Models with random weights that benches make: nothing should be tuned to models that fit a cache, and a bench
// should not fetch gigabytes. Made where temporary files go, deleted by the caller.

import { type LlamaShape, writeRandomLlama } from "../../tests/support/random_llama.ts";
import { deleteAtInterrupt } from "../../tools/support/children.ts";

interface RandomShape {
  readonly shape: LlamaShape;
  readonly format: string;
}

const TINYLLAMA: LlamaShape = {
  ...{ layers: 22, hidden: 2048, heads: 32, kvHeads: 4, headDim: 64 },
  ...{ feedForward: 5632, vocabulary: 32000, context: 8192 },
};

const LLAMA_8B: LlamaShape = {
  ...{ layers: 32, hidden: 4096, heads: 32, kvHeads: 8, headDim: 128 },
  ...{ feedForward: 14336, vocabulary: 128256, context: 8192 },
};

/** Shapes of Llama 3 with 8B and 70B (4.5 and 40 GB), the 1.1B shape of TinyLlama, and one of 5.4 GB: more than a WASM memory holds. */
const MODELS: Readonly<Record<string, RandomShape>> = {
  "tinyllama-q4_0": { shape: TINYLLAMA, format: "Q4_0" },
  "tinyllama-q8_0": { shape: TINYLLAMA, format: "Q8_0" },
  "tinyllama-lf8": { shape: TINYLLAMA, format: "LF8" },
  "llama-8b-random": { shape: LLAMA_8B, format: "Q4_0" },
  "llama-70b-random": {
    shape: { ...LLAMA_8B, layers: 80, hidden: 8192, heads: 64, feedForward: 28672 },
    format: "Q4_0",
  },
  "llama-5gb": { shape: { ...TINYLLAMA, layers: 110 }, format: "Q8_0" },
};
const IDS = 8192;

/** A file that was made, with ids that are no control tokens. */
export interface RandomModel {
  readonly name: string;
  readonly path: string;
  readonly ids: readonly number[];
  readonly isTemporary: true;
  /** LF8 (8-bit weights in groups of 256) is in no other engine's files. */
  readonly isOwnFormat: boolean;
}

/** Names under which benches know these models. */
export const RANDOM_MODELS: readonly string[] = Object.keys(MODELS);

/** Writes the model of that name into the folder for temporary files. */
export async function makeRandomModel(name: string): Promise<RandomModel> {
  const model = MODELS[name];
  if (!model) throw new RangeError(`No random model ${name}: there are ${RANDOM_MODELS}`);
  const path = await Deno.makeTempFile({
    prefix: `${name}-`,
    suffix: model.format === "LF8" ? ".safetensors" : ".gguf",
  });
  deleteAtInterrupt(path);
  await writeRandomLlama(path, model.shape, model.format);
  // Bytes and control tokens come first in the vocabulary.
  const { vocabulary } = model.shape;
  const ids = Array.from({ length: IDS }, (_, i) => 300 + i * 7919 % (vocabulary - 300));
  return { name, path, ids, isTemporary: true, isOwnFormat: model.format === "LF8" };
}
