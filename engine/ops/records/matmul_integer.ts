// matmul_integer: product of 8-bit codes less their zero points, summed exactly in 32 bit. The zero
// point of a is one number or one a row, that of b one number or one a column.

import { defineOp } from "../define_op.ts";
import { product } from "../../graph/dim/mod.ts";
import { BYTES, numbersOf, storeNumbers } from "../host_numbers.ts";
import { getElement, type HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  refuseMisfit,
  requireInput,
} from "../shape_rules.ts";
import { eachMatrix, matmulShape, multiply } from "./matmul_nd.ts";

/** (a i8|u8[…, M, K], b i8|u8[…, K, N], a_zero?, b_zero?) → i32[…, M, N]. */
export const matmulInteger: OpRecord = defineOp({
  name: "matmul_integer",
  summary: "product of 8-bit codes less their zero points",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 4);
    const a = requireInput(inputs, { index: 0, name: "a", dtype: BYTES, minRank: 1 });
    const b = requireInput(inputs, { index: 1, name: "b", dtype: BYTES, minRank: 1 });
    const aZero = optionalInput(inputs, { index: 2, name: "a_zero", dtype: a.dtype });
    const bZero = optionalInput(inputs, { index: 3, name: "b_zero", dtype: b.dtype });
    if (aZero) {
      const rows = product(a.shape.slice(0, -1));
      refuseMisfit(product(aZero.shape), { sizes: [1, rows], what: "the zero points of a" });
    }
    if (bZero) {
      refuseMisfit(bZero.shape.at(-1) ?? 1, {
        sizes: [1, lastDim(b)],
        what: "the zero points of b",
      });
    }
    return [{ dtype: "i32", shape: matmulShape(a.shape, { b: b.shape }) }];
  },
  reference({ inputs: [a, b, aZero, bZero], outputs: [out] }) {
    const y = new Float64Array(out!.data.length);
    const columns = b!.shape.length === 1 ? 1 : b!.shape.at(-1)!;
    const left = lessZeros(a!, aZero, (i) => Math.floor(i / a!.shape.at(-1)!));
    // Zero points of b are [N] or […, 1, N].
    const matrix = columns * (b!.shape.at(-2) ?? b!.shape[0]!);
    const perMatrix = (bZero?.data.length ?? 1) > columns;
    const right = lessZeros(
      b!,
      bZero,
      (i) => (perMatrix ? Math.floor(i / matrix) * columns : 0) + i % columns,
    );
    eachMatrix(a!, {
      b: b!,
      transposeA: false,
      transposeB: false,
      visit: (at, sizes) => {
        multiply(left.subarray(at.a), { b: right.subarray(at.b), y: y.subarray(at.out) }, sizes);
      },
    });
    storeNumbers(out!, y);
  },
  cases: (random) =>
    ([
      [[5, 7], [7, 9], "u8", "i8", 1],
      [[50, 33], [33, 40], "u8", "u8", 40],
      [[2, 3, 64], [64, 17], "i8", "i8", 0],
      [[2, 5, 8], [2, 8, 8], "u8", "i8", 1],
      [[1, 128], [128, 64], "u8", "i8", 0],
      [[33, 3, 8], [33, 8, 101], "i8", "u8", 101],
    ] as const).map(([a, b, left, right, zeros]) => ({
      inputs: [
        random.codes(left, a),
        random.codes(right, b),
        zeros ? random.codes(left, []) : undefined,
        zeros ? random.codes(right, zeros === 1 ? [] : [zeros]) : undefined,
      ],
    })),
  tolerance: { ofLargest: 0, reason: "whole numbers" },
});

function lessZeros(
  codes: HostTensor,
  zero: HostTensor | undefined,
  zeroIndex: (index: number) => number,
): Float64Array {
  return Float64Array.from(numbersOf(codes), (code, i) => {
    if (!zero) return code;
    return code - getElement(zero, zero.data.length === 1 ? 0 : zeroIndex(i));
  });
}
