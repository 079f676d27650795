// Equality of results as the conformance suite's own runner judges it: same type and shape, numbers
// within a relative 1e-3 and an absolute 1e-7; sums that cancel may be off by a millionth of the largest
// element. What is stored in fewer bits than that is judged by one step of its own type.

import { getElement, type HostTensor } from "../../engine/ops/host_tensor.ts";
import { type HostValue, isHostTensor } from "../../engine/onnx/derivation/tensor.ts";

const RELATIVE: Readonly<Record<string, number>> = {
  f16: 2e-3,
  bf16: 1e-2,
  f8e4m3fn: 0.13,
  f8e4m3fnuz: 0.13,
  f8e5m2: 0.26,
  f8e5m2fnuz: 0.26,
};

/** Throws at the first difference. */
export function expectEqual(actual: HostValue, expected: HostValue, what: string): void {
  if (actual.dtype !== expected.dtype) {
    throw new Error(`${what} is ${actual.dtype}, ${expected.dtype} wanted`);
  }
  if (expected.dtype === "sequence" && actual.dtype === "sequence") {
    if (actual.items.length !== expected.items.length) {
      throw new Error(`${what} has ${actual.items.length} items, ${expected.items.length} wanted`);
    }
    expected.items.forEach((item, i) => expectEqual(actual.items[i]!, item, `${what}[${i}]`));
  } else if (expected.dtype === "optional" && actual.dtype === "optional") {
    if (!actual.value !== !expected.value) {
      throw new Error(`${what} is${actual.value ? "" : " not"} there`);
    }
    if (actual.value && expected.value) expectEqual(actual.value, expected.value, what);
  } else if (expected.dtype === "string" && actual.dtype === "string") {
    expectShape(actual, expected, what);
    const at = expected.data.findIndex((text, i) => text !== actual.data[i]);
    if (at >= 0) {
      throw new Error(`${what}[${at}] is "${actual.data[at]}", "${expected.data[at]}" wanted`);
    }
  } else if (isHostTensor(actual) && isHostTensor(expected)) {
    expectShape(actual, expected, what);
    expectNumbers(actual, expected, what);
  }
}

function expectShape(
  actual: { readonly shape: readonly number[] },
  expected: { readonly shape: readonly number[] },
  what: string,
): void {
  if (actual.shape.join() !== expected.shape.join()) {
    throw new Error(`${what} is of shape [${actual.shape}], [${expected.shape}] wanted`);
  }
}

function expectNumbers(actual: HostTensor, expected: HostTensor, what: string): void {
  const relative = RELATIVE[expected.dtype] ?? 1e-3;
  const whole = !/^(f|bf)/.test(expected.dtype);
  const absolute = 1e-7 + 1e-6 * largestOf(expected);
  for (let i = 0; i < expected.data.length; i++) {
    if (actual.data[i] === expected.data[i]) continue;
    const x = getElement(actual, i), y = getElement(expected, i);
    if (Object.is(x, y) || (Number.isNaN(x) && Number.isNaN(y))) continue;
    if (!whole && Math.abs(x - y) <= absolute + relative * Math.abs(y)) continue;
    throw new Error(`${what}[${i}] is ${x}, ${y} wanted`);
  }
}

function largestOf(tensor: HostTensor): number {
  let largest = 0;
  for (let i = 0; i < tensor.data.length; i++) {
    const value = Math.abs(getElement(tensor, i));
    if (value > largest && value < Infinity) largest = value;
  }
  return largest;
}
