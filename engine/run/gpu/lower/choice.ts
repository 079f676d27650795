// A choice between dispatches that is made anew in every step: workgroup counts are dims, so a factor of 0 or 1
// in them says which of a node's dispatches run.

import { type Dim, max, min, mul, sub } from "../../../graph/dim/mod.ts";

/** 1 if `least` ≤ value ≤ `most`, else 0. */
export function isBetween(
  value: Dim,
  { least, most }: { readonly least: number; readonly most: number },
): Dim {
  const above = max(0, min(1, sub(value, least - 1)));
  return most === Infinity ? above : mul(above, max(0, min(1, sub(most + 1, value))));
}
