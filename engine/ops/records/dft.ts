// dft: the discrete Fourier transform along an axis, forwards or backwards, of real or complex numbers.
// Complex numbers are pairs in the last dim. One-sided: a real signal's spectrum without its mirrored
// half. The radix is 2 where the length allows it and otherwise the definition's sum, so any length
// works.

import { dim, flag, integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { add, type Dim, equal, evaluate, floorDiv } from "../../graph/dim/mod.ts";
import { fourier } from "../fourier.ts";
import { axisOf, FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import { elementCount } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x [… , 1 or 2]) → [… , 1 or 2]. */
export const dft: OpRecord = defineOp({
  name: "dft",
  summary: "discrete Fourier transform along an axis",
  attributes: {
    axis: integer(-64),
    /** Signal length: x is cut or filled with zeros. */
    length: dim(),
    inverse: flag(false),
    onesided: flag(false),
  },
  infer(inputs, { axis, length, inverse, onesided }) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 2 });
    const shape: Dim[] = [...x.shape], at = axisOf(axis, shape.length);
    if (at === shape.length - 1) {
      throw new RangeError("the last axis holds real and imaginary parts");
    }
    if (!equal(shape.at(-1)!, 1) && !equal(shape.at(-1)!, 2)) {
      throw new RangeError("the last dim of x must be 1 (real) or 2 (complex)");
    }
    shape[at] = onesided && !inverse ? add(floorDiv(length, 2), 1) : length;
    shape[shape.length - 1] = onesided && inverse ? 1 : 2;
    return [{ dtype: x.dtype, shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes, env }) {
    const { inverse, onesided } = attributes;
    const axis = axisOf(attributes.axis, x!.shape.length);
    const places = x!.shape[axis]!, results = out!.shape[axis]!;
    const parts = x!.shape.at(-1)!, outParts = out!.shape.at(-1)!;
    const inner = elementCount(x!.shape.slice(axis + 1, -1));
    const outer = elementCount(x!.shape.slice(0, axis));
    const values = numbersOf(x!), y = new Float64Array(out!.data.length);
    const size = evaluate(attributes.length, env);
    for (let line = 0; line < outer * inner; line++) {
      const o = Math.floor(line / inner), n = line % inner;
      const at = (i: number) => ((o * places + i) * inner + n) * parts;
      const re = new Float64Array(size), im = new Float64Array(size);
      for (let i = 0; i < Math.min(places, size); i++) {
        re[i] = values[at(i)]!;
        im[i] = parts === 2 ? values[at(i) + 1]! : 0;
      }
      if (inverse && onesided) mirror(re, im);
      fourier(re, { im, inverse });
      for (let i = 0; i < results; i++) {
        const target = ((o * results + i) * inner + n) * outParts;
        y[target] = re[i]!;
        if (outParts === 2) y[target + 1] = im[i]!;
      }
    }
    storeNumbers(out!, y);
  },
  cases: (random) =>
    [1, 2, 7, 16, 33].flatMap((length) =>
      [false, true].map((onesided) => ({
        inputs: [random.input([2, length, 3, onesided ? 1 : 2])],
        attributes: { axis: 1, length, onesided, inverse: !onesided && length === 7 },
      }))
    ),
});

// The half that a one-sided spectrum leaves out: conjugates of the other.
function mirror(re: Float64Array, im: Float64Array): void {
  im[0] = 0;
  if (re.length % 2 === 0) im[re.length / 2] = 0;
  for (let i = Math.floor(re.length / 2) + 1; i < re.length; i++) {
    re[i] = re[re.length - i]!;
    im[i] = -im[re.length - i]!;
  }
}
