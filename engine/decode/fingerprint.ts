// Tells models apart whose caches must not be mixed: names, formats and shapes of all tensors, samples of
// their bytes (fine-tuned siblings differ in nothing else), and the layout of the cache. Hashing all weights
// would cost a second a gigabyte; 16 samples of 256 bytes cost nothing and any training changes them.

import type { TensorInfo } from "../formats/source.ts";
import { formatDim } from "../graph/dim/mod.ts";
import type { Value } from "../graph/graph.ts";
import type { ResolvedLimits } from "./load_options.ts";

const SAMPLES = 16;
const SAMPLE_BYTES = 256;

/**
 * Reads the samples now, while the file is open. SHA-256, 32 bytes, is computed when somebody asks: it is a wait behind
 * all threads that are busy, 3 ms of a load with two.
 */
export async function fingerprintOf(
  graph: { readonly states: readonly Pick<Value, "name" | "dtype" | "shape">[] },
  tensors: readonly TensorInfo[],
  { precision, kvFormat }: ResolvedLimits,
): Promise<() => Promise<Uint8Array>> {
  const facts = {
    precision,
    kvFormat,
    // The capacity is left out: a longer context holds what a shorter one saved.
    states: graph.states.map((
      { name, dtype, shape },
    ) => [name, dtype, shape.slice(1).map(formatDim)]),
    tensors: tensors.map(({ name, format, shape }) => [name, format, shape]),
  };
  const text = new TextEncoder().encode(JSON.stringify(facts));
  const bytes = new Uint8Array(text.length + SAMPLES * SAMPLE_BYTES);
  bytes.set(text);
  for (let sample = 0; sample < SAMPLES && tensors.length > 0; sample++) {
    const { source, offset, byteLength } = tensors[Math.floor(sample * tensors.length / SAMPLES)]!;
    const length = Math.min(SAMPLE_BYTES, byteLength);
    const middle = offset + Math.floor((byteLength - length) / 2);
    const start = text.length + sample * SAMPLE_BYTES;
    await source.readInto(middle, bytes.subarray(start, start + length));
  }
  let digest: Promise<ArrayBuffer> | undefined;
  return async () => new Uint8Array(await (digest ??= crypto.subtle.digest("SHA-256", bytes)));
}
