// What happens where two scattered values meet: the reductions of the scatter ops, which are kinds of
// `binary`.

import { BINARY } from "../../functions/binary.ts";
import { isFloat, isWide } from "./data_types.ts";
import { getElement, type HostTensor, setElement } from "./host_tensor.ts";
import { elementsOf } from "./strided.ts";

/** Names of the reductions; `none` overwrites. */
export const SCATTER_REDUCTIONS = ["none", "add", "mul", "max", "min"] as const;

/** Puts element `j` of `updates` into element `i` of `out`. */
export function scatterer(
  reduction: typeof SCATTER_REDUCTIONS[number],
  { out, updates }: { readonly out: HostTensor; readonly updates: HostTensor },
): (i: number, j: number) => void {
  const to = elementsOf(out), from = elementsOf(updates);
  if (reduction === "none") return (i, j) => to[i] = from[j];
  const kind = BINARY[reduction];
  if (isWide(out.dtype)) {
    return (i, j) => to[i] = kind.bigint!(to[i] as bigint, from[j] as bigint);
  }
  // Truth values: adding is "or", multiplying "and"; both are what min and max of 0 and 1 are.
  const apply = isFloat(out.dtype) ? kind.float! : kind.integer!;
  return (i, j) =>
    setElement(out, { index: i, value: apply(getElement(out, i), getElement(updates, j)) });
}
