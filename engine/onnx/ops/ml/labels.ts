// Labels of classes: strings or integers, in the order of the scores.

import type { HostTensor } from "../../../ops/host_tensor.ts";
import type { StringTensor } from "../../derivation/tensor.ts";

/** Names of classes. */
export type Labels = readonly string[] | readonly bigint[];

/**
 * The one list of two that is given.
 *
 * @throws {RangeError} If both are, or neither is.
 */
export function labelsOf(
  strings: readonly string[] = [],
  integers: readonly bigint[] = [],
): Labels {
  if ((strings.length > 0) === (integers.length > 0)) {
    const found = strings.length > 0 ? "both are given" : "none is given";
    throw new RangeError(`labels must be strings or integers: ${found}`);
  }
  return strings.length > 0 ? strings : integers;
}

/** A vector of labels: the one of each row, or all of them. */
export function labelVector(
  labels: Labels,
  picks: Iterable<number> = labels.keys(),
): HostTensor | StringTensor {
  const picked = Array.from(picks, (pick) => labels[pick]!);
  const shape = [picked.length];
  return typeof labels[0] === "string"
    ? { dtype: "string", shape, data: picked as string[] }
    : { dtype: "i64", shape, data: BigInt64Array.from(picked as bigint[]) };
}

/** An element of a tensor that may hold strings. */
export type Element = string | number | bigint;

/** All elements. */
export function elementsIn({ data }: HostTensor | StringTensor): readonly Element[] {
  return Array.from(data as ArrayLike<Element>);
}
