// Models with random weights that benches make: nothing should be tuned to models that fit a cache, and a bench
// should not fetch gigabytes. They are kept in the benches' own cache, outside the repository, but for those that are
// larger than anybody wants to keep: the caller deletes them.

import { type LlamaShape, writeRandomLlama } from "../../tests/support/random_llama.ts";
import { deleteAtInterrupt } from "../../tools/support/children.ts";
import { benchCache } from "./bench_cache.ts";

interface RandomShape {
  readonly shape: LlamaShape;
  readonly format: string;
}

const TINYLLAMA: LlamaShape = {
  ...{ layers: 22, hidden: 2048, heads: 32, kvHeads: 4, headDim: 64 },
  ...{ feedForward: 5632, vocabulary: 32000, context: 8192 },
};

/** Runs on the software adapter. */
const TINY: LlamaShape = {
  ...{ layers: 2, hidden: 256, heads: 4, kvHeads: 2, headDim: 64, tiedOutput: true },
  ...{ feedForward: 512, vocabulary: 1000, context: 8192, isLively: true },
};

/** Llama 3.2 1B and 3B. */
const LLAMA_1B: LlamaShape = {
  ...{ layers: 16, hidden: 2048, heads: 32, kvHeads: 8, headDim: 64 },
  ...{ feedForward: 8192, vocabulary: 128256, context: 8192, tiedOutput: true },
  isLively: true,
};
const LLAMA_3B: LlamaShape = { ...LLAMA_1B, layers: 28, hidden: 3072, heads: 24, headDim: 128 };

const LLAMA_8B: LlamaShape = {
  ...{ layers: 32, hidden: 4096, heads: 32, kvHeads: 8, headDim: 128 },
  ...{ feedForward: 14336, vocabulary: 128256, context: 8192, isLively: true },
};

/** Bytes of the largest file that is kept. */
const MOST_KEPT = 10e9;
/** Part of a name in the cache; another one for other contents. */
const EDITION = 2;

/** Shapes of Llama 3, the 1.1B shape of TinyLlama, and one of 5.4 GB: more than a WASM memory holds. */
const MODELS: Readonly<Record<string, RandomShape>> = {
  "tinyllama-q4_0": { shape: TINYLLAMA, format: "Q4_0" },
  "tinyllama-q8_0": { shape: TINYLLAMA, format: "Q8_0" },
  "tinyllama-lf8": { shape: TINYLLAMA, format: "LF8" },
  ...formatsOf("llama-1b", LLAMA_1B),
  ...formatsOf("llama-3b", LLAMA_3B),
  ...formatsOf("llama-8b", LLAMA_8B),
  "llama-tiny-q4_0": { shape: TINY, format: "Q4_0" },
  "llama-8b-random": { shape: LLAMA_8B, format: "Q4_0" },
  "llama-70b-random": {
    shape: { ...LLAMA_8B, layers: 80, hidden: 8192, heads: 64, feedForward: 28672 },
    format: "Q4_0",
  },
  "llama-5gb": { shape: { ...TINYLLAMA, layers: 110 }, format: "Q8_0" },
};
const IDS = 8192;

function formatsOf(name: string, shape: LlamaShape): Record<string, RandomShape> {
  return Object.fromEntries(
    ["Q4_K_M", "Q8_0", "Q4_0", "LF8"].map((format) => [
      `${name}-${format.toLowerCase()}`,
      { shape, format },
    ]),
  );
}

/** A file that was made, with ids that are no control tokens. */
export interface RandomModel {
  readonly name: string;
  readonly path: string;
  readonly ids: readonly number[];
  readonly isRandom: true;
  /** Too large to be kept: whoever measured it deletes it. */
  readonly isTemporary: boolean;
  /** LF8 (8-bit weights in groups of 256) is in no other engine's files. */
  readonly isOwnFormat: boolean;
}

/** Names under which benches know these models. */
export const RANDOM_MODELS: readonly string[] = Object.keys(MODELS);

/** Finds the model of that name, or writes it. */
export async function makeRandomModel(name: string): Promise<RandomModel> {
  const model = MODELS[name];
  if (!model) throw new RangeError(`No random model ${name}: there are ${RANDOM_MODELS}`);
  const isOwnFormat = model.format === "LF8";
  const folder = await benchCache("models");
  const path = `${folder}/${name}-${EDITION}.${isOwnFormat ? "safetensors" : "gguf"}`;
  const found = await Deno.stat(path).catch(() => undefined);
  if (!found) {
    // Under another name until it is whole.
    const part = `${path}.${Deno.pid}.part`;
    deleteAtInterrupt(part);
    await writeRandomLlama(part, model.shape, model.format);
    await Deno.rename(part, path);
  }
  const { size } = found ?? await Deno.stat(path);
  // Bytes and control tokens come first in the vocabulary.
  const { vocabulary } = model.shape;
  const ids = Array.from({ length: IDS }, (_, i) => 300 + i * 7919 % (vocabulary - 300));
  return { name, path, ids, isRandom: true, isTemporary: size > MOST_KEPT, isOwnFormat };
}
