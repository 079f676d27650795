// Which keys of a file a size comes from, for messages: a tensor that has another shape than the config says is found
// by its name, but what must be changed may be the config.

import type { WeightFile } from "../formats/source.ts";
import { metadataAt } from "./metadata.ts";
import type { Names } from "./spec.ts";

/** Hyperparameters that are sizes; heads count after their products with channels, which projections have. */
const SINGLE: readonly string[] = [
  ...["hidden", "feedForward", "vocabulary", "embeddingDim", "experts", "expertFeedForward"],
  ...["sharedFeedForward", "queryRank", "keyRank", "context", "tokenTypes", "relativeBuckets"],
  ...["encoderFeedForward", "encoderHeads"],
];
const HEADS: readonly string[] = ["headDim", "valueDim", "heads", "kvHeads"];
const PRODUCTS: readonly (readonly [string, string])[] = [
  ["heads", "headDim"],
  ["kvHeads", "headDim"],
  ["kvHeads", "valueDim"],
  ["heads", "valueDim"],
];

/** Projections, by the axis on which heads are counted. */
const HEAD_AXIS: Readonly<Record<string, number>> = {
  query: 0,
  key: 0,
  value: 0,
  attention_output: 1,
};

/** Where sizes stand. */
export interface SizeSource {
  readonly file: WeightFile;
  readonly names: Names;
  /** Hyperparameters. */
  readonly params: object;
  /** Of the tensor; what it is tells apart keys that have the same value. */
  readonly role: string;
}

/** `intermediate_size is 100`, or a product of two keys; undefined where no key says it. */
export function sourceOfSize(
  { size, axis }: { readonly size: number; readonly axis: number },
  source: SizeSource,
): string | undefined {
  const values = source.params as Readonly<Record<string, unknown>>;
  const single = (list: readonly string[]) => {
    const key = list.filter((name) => values[name] === size)
      .map((name) => keyOf(name, source)).find((found) => found !== undefined);
    return key && `${key} is ${size}`;
  };
  // Where a file does not count the heads of keys, there are as many as queries have.
  const ofKeys = source.role === "key" || source.role === "value";
  const ordered = ofKeys ? PRODUCTS.toSorted(([a], [b]) => b.length - a.length) : PRODUCTS;
  const products = ordered.flatMap(([first, second]) => {
    const a = values[first], b = values[second];
    const key = Number(a) * Number(b) === size ? keyOf(first, source) : undefined;
    return key === undefined ? [] : [`${key} is ${a}, times ${b} channels`];
  });
  if (HEAD_AXIS[source.role] === axis) return products[0];
  // Factors of rotation are half as many as channels: no key says that number.
  if (source.role.startsWith("rope_factors")) return undefined;
  return single(SINGLE) ?? products[0] ?? single(HEADS);
}

/** The key of a file under which a hyperparameter stands. */
function keyOf(name: string, { file: { metadata }, names }: SizeSource): string | undefined {
  const architecture = String(metadata.get("general.architecture") ?? "");
  return names.hyperparameters[name]?.map((key) => key.replace("{arch}", architecture))
    .find((key) => typeof metadataAt(metadata, key) === "number");
}
