// matmul_nd: matrix product as NumPy defines it: the two last dims are matrices, those before
// broadcast, and a vector is a row on the left and a column on the right. Either side may be taken
// transposed, and the product scaled, so that Gemm and FusedMatMul are one node. 64-bit integers wrap,
// as two's complement does.

import { flag, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import { FLOATS, numbersOf, storeNumbers, WIDE_INTEGERS } from "../host_numbers.ts";
import { elementCount, type HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseDraft, CaseRandom } from "../op_case.ts";
import {
  broadcastIndex,
  broadcastShapes,
  checkInputCount,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (a […, M, K], b […, K, N]) → […, M, N], of one type. */
export const matmulNd: OpRecord = defineOp({
  name: "matmul_nd",
  summary: "matrix product of the two last dims, broadcasting the others",
  attributes: { transpose_a: flag(false), transpose_b: flag(false), alpha: number(1) },
  infer(inputs, { transpose_a, transpose_b }) {
    checkInputCount(inputs, 2);
    const a = requireInput(inputs, {
      index: 0,
      name: "a",
      dtype: [...FLOATS, ...WIDE_INTEGERS],
      minRank: 1,
    });
    const b = requireInput(inputs, { index: 1, name: "b", dtype: a.dtype, minRank: 1 });
    return [{
      dtype: a.dtype,
      shape: matmulShape(a.shape, { b: b.shape, transposeA: transpose_a, transposeB: transpose_b }),
    }];
  },
  reference({ inputs: [a, b], outputs: [out], attributes }) {
    const { transpose_a, transpose_b, alpha } = attributes;
    if (out!.data instanceof BigInt64Array || out!.data instanceof BigUint64Array) {
      return multiplyWide(a!, b!, out!, attributes);
    }
    const y = new Float64Array(out!.data.length);
    const left = numbersOf(a!), right = numbersOf(b!);
    eachMatrix(a!, {
      b: b!,
      transposeA: transpose_a,
      transposeB: transpose_b,
      visit: (at, sizes) => {
        multiply(left.subarray(at.a), { b: right.subarray(at.b), y: y.subarray(at.out) }, sizes);
      },
    });
    if (alpha !== 1) y.forEach((value, i) => y[i] = value * alpha);
    storeNumbers(out!, y);
  },
  cases: matmulCases,
});

/**
 * Shape of the product.
 *
 * @throws {RangeError} If the inner dims differ or the outer ones do not broadcast.
 */
export function matmulShape(
  a: readonly Dim[],
  { b, transposeA = false, transposeB = false }: {
    readonly b: readonly Dim[];
    readonly transposeA?: boolean | undefined;
    readonly transposeB?: boolean | undefined;
  },
): Dim[] {
  const [left, right] = asMatrices(a, { b, transposeA, transposeB });
  requireEqual(left.at(-1)!, { b: right.at(-2)!, what: "the inner dims of a and b" });
  const shape: Dim[] = broadcastShapes(left.slice(0, -2), right.slice(0, -2));
  if (a.length > 1) shape.push(left.at(-2)!);
  if (b.length > 1) shape.push(right.at(-1)!);
  return shape;
}

// Vectors are never transposed.
function asMatrices<T extends Dim>(
  a: readonly T[],
  { b, transposeA, transposeB }: {
    readonly b: readonly T[];
    readonly transposeA: boolean;
    readonly transposeB: boolean;
  },
): [T[], T[]] {
  const swapped = (shape: readonly T[]) => [...shape.slice(0, -2), shape.at(-1)!, shape.at(-2)!];
  const left = a.length === 1 ? [1 as T, a[0]!] : transposeA ? swapped(a) : [...a];
  const right = b.length === 1 ? [b[0]!, 1 as T] : transposeB ? swapped(b) : [...b];
  return [left, right];
}

/** Sizes of one product, and how far neighbours of a row and of a column are apart. */
export interface MatrixSizes {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
  /** Steps of `a` from row to row and along one. */
  readonly aRow: number;
  readonly aInner: number;
  /** Steps of `b` from row to row and along one. */
  readonly bInner: number;
  readonly bColumn: number;
}

/** Calls `visit` with the flat starts of the matrices of each product. */
export function eachMatrix(
  a: HostTensor,
  { b, transposeA, transposeB, visit }: {
    readonly b: HostTensor;
    readonly transposeA: boolean;
    readonly transposeB: boolean;
    readonly visit: (at: { a: number; b: number; out: number }, sizes: MatrixSizes) => void;
  },
): void {
  const [left, right] = asMatrices(a.shape, { b: b.shape, transposeA, transposeB });
  const [rows, inner] = left.slice(-2) as [number, number], columns = right.at(-1)!;
  const swapA = transposeA && a.shape.length > 1, swapB = transposeB && b.shape.length > 1;
  const sizes = {
    ...{ rows, inner, columns },
    ...(swapA ? { aRow: 1, aInner: rows } : { aRow: inner, aInner: 1 }),
    ...(swapB ? { bInner: 1, bColumn: inner } : { bInner: columns, bColumn: 1 }),
  };
  const aBatch = left.slice(0, -2), bBatch = right.slice(0, -2);
  const batch = broadcastShapes(aBatch, bBatch) as number[];
  const count = elementCount(batch);
  for (let i = 0; i < count; i++) {
    const aAt = broadcastIndex(i, { shape: batch, source: aBatch }) * rows * inner;
    const bAt = broadcastIndex(i, { shape: batch, source: bBatch }) * inner * columns;
    visit({ a: aAt, b: bAt, out: i * rows * columns }, sizes);
  }
}

/** y += a · b of one matrix each. */
export function multiply(
  a: ArrayLike<number>,
  { b, y }: { readonly b: ArrayLike<number>; readonly y: Float64Array },
  { rows, inner, columns, aRow, aInner, bInner, bColumn }: MatrixSizes,
): void {
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < inner; k++) {
      const factor = a[row * aRow + k * aInner]!, start = k * bInner, target = row * columns;
      for (let c = 0; c < columns; c++) y[target + c]! += factor * b[start + c * bColumn]!;
    }
  }
}

function multiplyWide(
  a: HostTensor,
  b: HostTensor,
  out: HostTensor,
  attributes: { transpose_a: boolean; transpose_b: boolean; alpha: number },
): void {
  if (attributes.alpha !== 1) throw new TypeError("a product of integers cannot be scaled");
  const left = a.data as BigInt64Array, right = b.data as BigInt64Array;
  eachMatrix(a, {
    b,
    transposeA: attributes.transpose_a,
    transposeB: attributes.transpose_b,
    visit: (at, sizes) => {
      for (let i = 0; i < sizes.rows * sizes.columns; i++) {
        const row = Math.floor(i / sizes.columns), column = i % sizes.columns;
        let sum = 0n;
        for (let k = 0; k < sizes.inner; k++) {
          sum += left[at.a + row * sizes.aRow + k * sizes.aInner]! *
            right[at.b + k * sizes.bInner + column * sizes.bColumn]!;
        }
        out.data[at.out + i] = sum;
      }
    },
  });
}

const CASES = [
  [[5, 7], [7, 9]],
  [[33, 64], [64, 40]],
  [[7], [7, 9]],
  [[5, 7], [7]],
  [[2, 3, 5, 7], [7, 9]],
  [[2, 1, 5, 17], [3, 17, 4]],
  [[2, 3, 1, 16], [2, 3, 16, 65]],
] as const;

function matmulCases(random: CaseRandom): CaseDraft[] {
  return CASES.flatMap(([a, b]) =>
    ([[false, false], [true, false], [false, true]] as const).map(([transpose_a, transpose_b]) => {
      const swap = (shape: readonly number[], yes: boolean) =>
        yes && shape.length > 1
          ? [...shape.slice(0, -2), shape.at(-1)!, shape.at(-2)!]
          : [...shape];
      const left = swap(a, transpose_a), right = swap(b, transpose_b);
      return {
        inputs: [random.input(left), random.input(right)],
        attributes: { transpose_a, transpose_b, alpha: transpose_b ? 0.5 : 1 },
      };
    })
  );
}
