// NumPy broadcasting of two host tensors, for the references of binary ops.

import { numbersOf, storeNumbers } from "./host_numbers.ts";
import type { HostTensor } from "./op.ts";
import { broadcastStrides, walk } from "./strided.ts";

/** out = apply(a, b), element by element; dims of size 1 or absent dims repeat. */
export function broadcastElements(
  a: HostTensor,
  b: HostTensor,
  out: HostTensor,
  apply: (x: number, y: number) => number,
): void {
  const x = numbersOf(a), y = numbersOf(b);
  const results = new Float64Array(out.data.length);
  const strides = [broadcastStrides(a.shape, out.shape), broadcastStrides(b.shape, out.shape)];
  walk(out.shape, strides, (index, offsets) => {
    results[index] = apply(x[offsets[0]!]!, y[offsets[1]!]!);
  });
  storeNumbers(out, results);
}
