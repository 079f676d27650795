// Tensors as the scripts of tools/fixtures store them in JSON: element type, dims, and little-endian bytes in base64 or
// strings.

import type { GraphTensor } from "../../mod.ts";

const ARRAYS = {
  float16: Float16Array,
  float32: Float32Array,
  float64: Float64Array,
  uint8: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  bool: Uint8Array,
};

/** A tensor of a fixture. */
export type StoredTensor =
  | {
    readonly type: keyof typeof ARRAYS;
    readonly dims: readonly number[];
    readonly data: string;
  }
  | { readonly type: "string"; readonly dims: readonly number[]; readonly data: readonly string[] };

/** The tensor for a graph. */
export function tensorOf(stored: StoredTensor): GraphTensor {
  if (stored.type === "string") return stored;
  const { type, dims, data } = stored;
  return { type, data: new ARRAYS[type](Uint8Array.fromBase64(data).buffer), dims };
}

/**
 * What differs from a stored tensor, as a sentence: type, dims, or an element by more than `tolerance` of the largest
 * value.
 */
export function differingElement(
  actual: GraphTensor,
  stored: StoredTensor,
  tolerance: number,
): string | undefined {
  if (actual.type !== stored.type || `${actual.dims}` !== `${stored.dims}`) {
    return `${actual.type}[${actual.dims}], ${stored.type}[${stored.dims}] wanted`;
  }
  if (stored.type === "string") {
    const at = stored.data.findIndex((text, i) => text !== actual.data[i]);
    return at < 0 ? undefined : `[${at}] is ${actual.data[at]}, ${stored.data[at]} wanted`;
  }
  const [got, wanted] = [actual, tensorOf(stored)]
    .map(({ data }) => Array.from(data as ArrayLike<number | bigint>, Number)) as [
      number[],
      number[],
    ];
  const finite = wanted.filter(Number.isFinite).map(Math.abs);
  const bound = tolerance * finite.reduce((a, b) => Math.max(a, b), 0);
  const at = wanted.findIndex((value, i) =>
    !(Object.is(value, got[i]) || Math.abs(value - got[i]!) <= bound)
  );
  return at < 0 ? undefined : `[${at}] is ${got[at]}, ${wanted[at]} wanted`;
}
