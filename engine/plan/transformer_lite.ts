// Transformer-Lite's memory policy (spec TL-4), for comparison with greedy by size: tensors take buffers
// in order of production, and a buffer whose tensor is dead is taken again only if subtraction or
// division of the symbolic sizes gives an established integer that says it is large enough. Sizes that
// cannot be compared, like N·4096 and sumN·256, never share.

import { type Dim, exactDiv, sub } from "../graph/dim/mod.ts";
import { type Item, stack } from "./memory.ts";

/** A tensor to be placed whose size is also known as a dim. */
export interface SymbolicItem extends Item {
  readonly size: Dim;
}

/** True if subtraction or division establishes that `size` fits into `buffer`. */
export function establishedFit(buffer: Dim, size: Dim): boolean {
  const difference = sub(buffer, size);
  if (typeof difference === "number") return difference >= 0;
  const ratio = exactDiv(buffer, size);
  return typeof ratio === "number" && ratio >= 1;
}

/** Offsets under the policy; items must come in order of production. */
export function placeAsTransformerLite(
  items: readonly SymbolicItem[],
  alignment: number,
): number[] {
  const buffers: { readonly first: SymbolicItem; freeAfter: number }[] = [];
  const bufferOf = items.map((item) => {
    // The first fit in order of creation: the paper names no other choice.
    let at = buffers.findIndex(({ first, freeAfter }) =>
      freeAfter < item.first && establishedFit(first.size, item.size)
    );
    if (at < 0) at = buffers.push({ first: item, freeAfter: 0 }) - 1;
    buffers[at]!.freeAfter = item.last;
    return at;
  });
  const starts = stack(buffers.map(({ first }) => first.bytes), alignment);
  return bufferOf.map((at) => starts[at]!);
}
