// Walking tensors by strides: the one loop under every reference that moves, repeats or combines
// elements. Elements are moved as they are stored, so one copy serves every element type, 64-bit
// integers and codes of small floats included.

import { type Numbers, numbersOf, stridesOf } from "./host_numbers.ts";
import { elementCount, type HostTensor } from "./host_tensor.ts";

/** Elements by flat index, whatever they are; for moving them, not for computing with them. */
export type Elements = Record<number, unknown>;

/** Storage of a tensor as elements that are only moved. */
export function elementsOf({ data }: HostTensor): Elements {
  return data as unknown as Elements;
}

/** Elements in a form in which `<`, `>` and `===` order them, 64-bit integers exactly. */
export function comparableOf(tensor: HostTensor): Numbers {
  const wide = tensor.dtype === "i64" || tensor.dtype === "u64";
  return wide ? tensor.data as unknown as Numbers : numbersOf(tensor);
}

/**
 * Compares two elements of `comparableOf`, for `sort`: NaN is above all numbers and equal to itself, as numpy
 * and PyTorch order it, and both zeros are equal.
 */
export function compareElements(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  return a === b ? 0 : Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

/**
 * Visits the indices of `shape` in row-major order. `offsets[k]` starts at `starts[k]` (default 0) and
 * follows `strides[k]`, one stride a dim; the array is the same at every visit.
 */
export function walk(
  shape: readonly number[],
  { strides, visit, starts = strides.map(() => 0) }: {
    readonly strides: readonly (readonly number[])[];
    readonly visit: (index: number, offsets: readonly number[]) => void;
    readonly starts?: readonly number[] | undefined;
  },
): void {
  const count = elementCount(shape);
  const counters = shape.map(() => 0);
  const offsets = [...starts];
  for (let index = 0; index < count; index++) {
    visit(index, offsets);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const wraps = ++counters[axis]! === shape[axis]!;
      for (let k = 0; k < offsets.length; k++) {
        offsets[k]! += strides[k]![axis]! * (wraps ? 1 - shape[axis]! : 1);
      }
      if (!wraps) break;
      counters[axis] = 0;
    }
  }
}

/** Fills `out` in row-major order with elements of `source`, from `start` on, by strides. */
export function copyStrided(
  out: HostTensor,
  { source, strides, start = 0 }: {
    readonly source: HostTensor;
    readonly strides: readonly number[];
    readonly start?: number | undefined;
  },
): void {
  const to = elementsOf(out), from = elementsOf(source);
  walk(out.shape, {
    strides: [strides],
    visit: (index, offsets) => to[index] = from[offsets[0]!],
    starts: [start],
  });
}

/** Strides by which a tensor of `shape` is read under the shape `out`; dims that repeat have 0. */
export function broadcastStrides(shape: readonly number[], out: readonly number[]): number[] {
  const lead = out.length - shape.length;
  const strides = stridesOf(shape);
  return out.map((_, axis) => {
    const size = shape[axis - lead];
    return size === undefined || size === 1 ? 0 : strides[axis - lead]!;
  });
}

/** Sizes around an axis: the product before it, its own, and the product behind it. */
export function aroundAxis(
  shape: readonly number[],
  axis: number,
): { readonly outer: number; readonly size: number; readonly inner: number } {
  return {
    outer: elementCount(shape.slice(0, axis)),
    size: shape[axis]!,
    inner: elementCount(shape.slice(axis + 1)),
  };
}
