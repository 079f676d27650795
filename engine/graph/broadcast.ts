// NumPy broadcasting of two host tensors, for the references of binary ops.

import { getElement, setElement } from "./host_tensor.ts";
import type { HostTensor } from "./op.ts";

/** out = apply(a, b), element by element; dims of size 1 or absent dims repeat. */
export function broadcastElements(
  a: HostTensor,
  b: HostTensor,
  out: HostTensor,
  apply: (x: number, y: number) => number,
): void {
  for (let i = 0; i < out.data.length; i++) {
    const x = getElement(a, sourceIndex(i, out.shape, a.shape));
    const y = getElement(b, sourceIndex(i, out.shape, b.shape));
    setElement(out, i, apply(x, y));
  }
}

function sourceIndex(index: number, shape: readonly number[], source: readonly number[]): number {
  let at = 0, stride = 1;
  for (let axis = 1; axis <= source.length; axis++) {
    const size = source.at(-axis)!, outSize = shape.at(-axis)!;
    if (size !== 1) at += (index % outSize) * stride;
    index = Math.floor(index / outSize);
    stride *= size;
  }
  return at;
}
