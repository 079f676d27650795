// pow: powers with NumPy broadcasting. Base and exponent may be of different types; the result is of
// the base's. Whole powers of whole numbers are exact and wrap.

import { broadcastElements } from "../broadcast.ts";
import { BROADCASTS } from "../case_sizes.ts";
import { isInteger, isWide, NUMBER_INPUT, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { elementCount, setElement } from "../host_tensor.ts";
import type { CaseInput, HostTensor, OpRecord } from "../op.ts";
import type { CaseRandom } from "../op_case.ts";
import { broadcastShapes, checkInputCount } from "../shape_rules.ts";
import { broadcastStrides, walk } from "../strided.ts";

/** (base T[…], exponent S[…]) → T[broadcast]. */
export const pow: OpRecord = defineOp({
  name: "pow",
  summary: "powers with NumPy broadcasting",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 2);
    const base = requireTyped(inputs, 0, "base", NUMBER_INPUT);
    const exponent = requireTyped(inputs, 1, "exponent", NUMBER_INPUT);
    return [{ dtype: base.dtype, shape: broadcastShapes(base.shape, exponent.shape) }];
  },
  reference({ inputs: [base, exponent], outputs: [out] }) {
    if (isInteger(base!.dtype) && isInteger(exponent!.dtype)) wholePowers(base!, exponent!, out!);
    else broadcastElements(base!, exponent!, out!, power);
  },
  cases: (random) =>
    BROADCASTS.map(([a, b]) => ({
      name: `[${a}] to the power of [${b}]`,
      inputs: [positive(random, a), random.input(b)],
    })),
});

function positive(random: CaseRandom, shape: readonly number[]): CaseInput {
  const data = random.normal(elementCount(shape)).map((value) => Math.abs(value) + 0.1);
  return { role: "input", dtype: "f32", shape, data };
}

/** C's pow: 1 to any power is 1, also to NaN and infinity, where JavaScript says NaN. */
export function power(x: number, y: number): number {
  return x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y;
}

function wholePowers(base: HostTensor, exponent: HostTensor, out: HostTensor): void {
  const strides = [
    broadcastStrides(base.shape, out.shape),
    broadcastStrides(exponent.shape, out.shape),
  ];
  walk(out.shape, strides, (index, offsets) => {
    const x = BigInt(base.data[offsets[0]!]!), y = BigInt(exponent.data[offsets[1]!]!);
    const result = wholePower(x, y);
    if (isWide(out.dtype)) (out.data as BigInt64Array)[index] = result;
    else setElement(out, index, Number(BigInt.asIntN(32, result)));
  });
}

// By squaring, modulo 2^64. A negative power of a whole number is cut to 0, but for ±1.
function wholePower(x: bigint, y: bigint): bigint {
  if (y < 0n) {
    if (x === 0n) throw new RangeError("Cannot raise the whole number 0 to a negative power");
    return x === 1n || x === -1n ? wholePower(x, -y) : 0n;
  }
  let result = 1n, square = x;
  for (let rest = y; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = BigInt.asIntN(64, result * square);
    square = BigInt.asIntN(64, square * square);
  }
  return result;
}
