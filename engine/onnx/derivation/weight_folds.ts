// The folds that weights go through while a model loads, in loops that suit many millions of elements:
// conversion to float32, products and sums with something smaller, transposes of matrices. Each gives the
// bits that the op's reference gives (weight_folds_test.ts compares them); whatever is not listed here takes
// the reference.

import { BINARY, type BinaryName } from "../../../functions/binary.ts";
import type { Attributes, TensorType } from "../../graph/graph.ts";
import { hostArray, type HostTensor } from "../../ops/host_tensor.ts";
import { broadcastStrides } from "../../ops/strided.ts";

type Fold = (
  inputs: readonly (HostTensor | undefined)[],
  type: TensorType,
  attributes: Attributes,
) => HostTensor | undefined;

const FOLDS: Readonly<Record<string, Fold>> = {
  cast: ([x], { dtype, shape }) => {
    // Arrays whose elements are their numbers; assigning to float32 rounds as storing one does.
    const isPlain = ["f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "bool"].includes(
      x!.dtype,
    );
    if (dtype !== "f32" || !isPlain) return undefined;
    const data = new Float32Array(x!.data.length);
    data.set(x!.data as Float32Array);
    return { dtype, shape: shape as readonly number[], data };
  },
  binary: (inputs, type, { kind }) =>
    type.dtype === "f32" ? combine(inputs, type, BINARY[kind as BinaryName].float!) : undefined,
  transpose: ([x], { dtype, shape }, { perm }) => {
    const order = perm as readonly number[], rank = order.length;
    // The two last dims change places; those before stay.
    const swaps = rank >= 2 && order[rank - 1] === rank - 2 && order[rank - 2] === rank - 1 &&
      order.slice(0, -2).every((axis, i) => axis === i);
    if (!swaps) return undefined;
    const [rows, columns] = x!.shape.slice(-2) as [number, number];
    const data = hostArray(dtype, { count: x!.data.length });
    turn(x!.data as Float32Array, { to: data as Float32Array, rows, columns });
    return { dtype, shape: shape as readonly number[], data };
  },
};

/** Result of an op on constants, or undefined where its reference has to compute it. */
export function foldFast(
  op: string,
  { inputs, type, attributes }: {
    readonly inputs: readonly (HostTensor | undefined)[];
    readonly type: TensorType;
    readonly attributes: Attributes;
  },
): HostTensor | undefined {
  return Object.hasOwn(FOLDS, op) ? FOLDS[op]!(inputs, type, attributes) : undefined;
}

function combine(
  [a, b]: readonly (HostTensor | undefined)[],
  { shape }: TensorType,
  apply: (x: number, y: number) => number,
): HostTensor | undefined {
  if (a!.dtype !== "f32" || b!.dtype !== "f32" || shape.length === 0) return undefined;
  const sizes = shape as readonly number[], rank = sizes.length;
  const left = a!.data as Float32Array, right = b!.data as Float32Array;
  const leftStrides = broadcastStrides(a!.shape, sizes);
  const rightStrides = broadcastStrides(b!.shape, sizes);
  const width = sizes[rank - 1]!, p = leftStrides[rank - 1]!, q = rightStrides[rank - 1]!;
  const data = hostArray("f32", { count: sizes.reduce((x, y) => x * y, 1) }) as Float32Array;
  const counters = new Array<number>(rank).fill(0);
  for (let start = 0, i = 0, j = 0; start < data.length; start += width) {
    for (let k = 0; k < width; k++) data[start + k] = apply(left[i + k * p]!, right[j + k * q]!);
    for (let axis = rank - 2; axis >= 0; axis--) {
      i += leftStrides[axis]!;
      j += rightStrides[axis]!;
      if (++counters[axis]! < sizes[axis]!) break;
      counters[axis] = 0;
      i -= leftStrides[axis]! * sizes[axis]!;
      j -= rightStrides[axis]! * sizes[axis]!;
    }
  }
  return { dtype: "f32", shape: sizes, data };
}

const TILE = 32;

// Tile by tile, so that both sides stay in the cache.
function turn(
  from: Float32Array,
  { to, rows, columns }: {
    readonly to: Float32Array;
    readonly rows: number;
    readonly columns: number;
  },
): void {
  const size = rows * columns;
  for (let base = 0; base < from.length; base += size) {
    for (let top = 0; top < rows; top += TILE) {
      for (let left = 0; left < columns; left += TILE) {
        const bottom = Math.min(rows, top + TILE), right = Math.min(columns, left + TILE);
        for (let row = top; row < bottom; row++) {
          for (let column = left; column < right; column++) {
            to[base + column * rows + row] = from[base + row * columns + column]!;
          }
        }
      }
    }
  }
}
