// conv_integer: convolution of 8-bit codes with zero points, summed exactly in 32 bit. Pads hold the
// zero point of x, that is, they count as 0.

import { convolve } from "../convolve.ts";
import { defineOp } from "../define_op.ts";
import { product } from "../../graph/dim/mod.ts";
import { BYTES, numbersOf, storeNumbers } from "../host_numbers.ts";
import { getElement, type HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, optionalInput, refuseMisfit, requireInput } from "../shape_rules.ts";
import { CONV_CASES, CONV_RULES, convLoops, convShape } from "./conv.ts";

/**
 * (x i8|u8[N, C, …], w i8|u8[F, C / groups, …], x_zero []?, w_zero [] or [F]?) → i32[N, F, …].
 */
export const convInteger: OpRecord = defineOp({
  name: "conv_integer",
  summary: "convolution of 8-bit codes less their zero points",
  attributes: CONV_RULES,
  infer(inputs, attributes) {
    checkInputCount(inputs, 4);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: BYTES, minRank: 3 });
    const w = requireInput(inputs, { index: 1, name: "w", dtype: BYTES, rank: x.shape.length });
    const xZero = optionalInput(inputs, { index: 2, name: "x_zero", dtype: x.dtype });
    const wZero = optionalInput(inputs, { index: 3, name: "w_zero", dtype: w.dtype });
    if (xZero) refuseMisfit(product(xZero.shape), { sizes: [1], what: "the zero points of x" });
    if (wZero) {
      refuseMisfit(product(wZero.shape), { sizes: [1, w.shape[0]!], what: "the zero points of w" });
    }
    return [{ dtype: "i32", shape: convShape(x, { w, attributes }) }];
  },
  reference({ inputs: [x, w, xZero, wZero], outputs: [out], attributes }) {
    const y = new Float64Array(out!.data.length);
    const { sizes, loops } = convLoops(x!, { w: w!, out: out!, attributes });
    convolve(lessZero(x!, xZero, 1), { w: lessZero(w!, wZero, w!.shape[0]!), y, sizes, loops });
    storeNumbers(out!, y);
  },
  cases: (random) =>
    CONV_CASES.map(([x, w, attributes], i) => ({
      inputs: [
        random.codes(i % 2 ? "i8" : "u8", x),
        random.codes(i % 3 ? "i8" : "u8", w),
        i % 2 ? random.codes("i8", []) : undefined,
        i % 3 ? random.codes("i8", i % 3 === 1 ? [] : [w[0]!]) : undefined,
      ],
      attributes,
    })),
  tolerance: { ofLargest: 0, reason: "whole numbers" },
});

/** Codes less their zero points, of which there is one, or one for each of `rows` rows. */
function lessZero(codes: HostTensor, zero: HostTensor | undefined, rows: number): Float64Array {
  const numbers = numbersOf(codes), width = numbers.length / rows;
  return Float64Array.from(numbers, (code, i) => {
    if (!zero) return code;
    return code - getElement(zero, zero.data.length === 1 ? 0 : Math.floor(i / width));
  });
}
