// Whether results are the same up to what element types and the order of sums leave open. Whole numbers are the
// same; floats may differ by a share of the largest element, since a sum that cancels has no more than that.

import { getElement, type HostTensor } from "../../../engine/ops/host_tensor.ts";
import type { Tensors } from "./peer.ts";

/** Share of the largest element, and of an element itself. */
const ROOM: Readonly<Record<string, number>> = { f32: 2e-5, f64: 2e-5, f16: 2e-2, bf16: 4e-2 };

/** How far runs may be apart beyond that, by name of a result and run. */
export type Extra = (run: number, name: string) => number;

/** Where results differ, in words; undefined where they do not. */
export function difference(
  actual: readonly Tensors[],
  expected: readonly Tensors[],
  extra: Extra = () => 0,
): string | undefined {
  for (const [run, tensors] of expected.entries()) {
    for (const [name, wanted] of tensors) {
      const given = actual[run]!.get(name)!;
      const found = tensorDifference(given, wanted, extra(run, name));
      if (found) return `run ${run}, ${name}${found}`;
    }
  }
  return undefined;
}

function tensorDifference(
  actual: HostTensor,
  expected: HostTensor,
  extra: number,
): string | undefined {
  const { dtype, shape, data } = expected;
  if (actual.dtype !== dtype) return ` is ${actual.dtype}, ${dtype} wanted`;
  if (actual.shape.join() !== shape.join()) return ` is [${actual.shape}], [${shape}] wanted`;
  const room = ROOM[dtype] ?? 0;
  const most = room * largestOf(expected) + extra + (room > 0 ? 1e-7 : 0);
  for (let i = 0; i < data.length; i++) {
    if (actual.data[i] === data[i]) continue;
    const x = getElement(actual, i), y = getElement(expected, i);
    if (x === y || Number.isNaN(x) && Number.isNaN(y)) continue;
    if (!(Math.abs(x - y) <= most + 10 * room * Math.abs(y))) return `[${i}] is ${x}, ${y} wanted`;
  }
  return undefined;
}

/** Largest magnitude below a limit. */
export function largestOf(tensor: HostTensor, limit = Infinity): number {
  let largest = 0;
  for (let i = 0; i < tensor.data.length; i++) {
    const value = Math.abs(getElement(tensor, i));
    if (value > largest && value < limit) largest = value;
  }
  return largest;
}

/** Largest distance between two tensors; infinite where one is finite and the other is not. */
export function distance(a: HostTensor, b: HostTensor): number {
  if (a.data.length !== b.data.length) return Infinity;
  let largest = 0;
  for (let i = 0; i < a.data.length; i++) {
    const x = getElement(a, i), y = getElement(b, i);
    if (x === y || Number.isNaN(x) && Number.isNaN(y)) continue;
    const apart = Math.abs(x - y);
    largest = Math.max(largest, Number.isNaN(apart) ? Infinity : apart);
  }
  return largest;
}
