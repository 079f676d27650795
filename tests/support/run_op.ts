// Runs the reference of an op on given numbers, outside any graph, and compares with numbers from elsewhere.

import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import {
  elementCount,
  getElement,
  hostArray,
  type HostTensor,
  setElement,
} from "../../engine/ops/host_tensor.ts";
import type { Attributes, DataType } from "../../engine/graph/graph.ts";
import { getOp } from "../../engine/ops/mod.ts";

/** Element type, shape and elements. */
export type Vector = readonly [DataType, readonly number[], readonly (number | bigint)[]];

/** A vector as host tensor. */
export function hostTensor([dtype, shape, values]: Vector): HostTensor {
  const tensor = { dtype, shape, data: hostArray(dtype, { count: elementCount(shape) }) };
  if (values.length !== tensor.data.length) {
    throw new TypeError(`${values.length} values for [${shape}]`);
  }
  values.forEach((value, i) => {
    if (typeof value === "bigint") (tensor.data as BigInt64Array)[i] = value;
    else setElement(tensor, { index: i, value });
  });
  return tensor;
}

/** Outputs of an op without states. */
export function runOp(
  name: string,
  inputs: readonly (HostTensor | undefined)[],
  given: Attributes = {},
): HostTensor[] {
  const op = getOp(name);
  const attributes = op.attributes(given);
  const outputs = op.infer(inputs, attributes).map(({ dtype, shape }) => {
    const sizes = shape as readonly number[];
    return { dtype, shape: sizes, data: hostArray(dtype, { count: elementCount(sizes) }) };
  });
  op.reference({
    inputs,
    outputs,
    attributes,
    env: {},
    stateOf: () => {
      throw new TypeError(`${name} asks for a state`);
    },
  });
  return outputs;
}

/** What an op must give, and the name of the test. */
export interface Expectation {
  readonly op: string;
  readonly what: string;
  readonly inputs: readonly Vector[];
  readonly attributes: Attributes;
  readonly expected: readonly Vector[];
}

/** One test an expectation: types, shapes and elements, 64-bit integers exactly. */
export function testOps(expectations: readonly Expectation[]): void {
  for (const { op, what, inputs, attributes, expected } of expectations) {
    Deno.test(`${op}: ${what}`, () => {
      const outputs = runOp(op, inputs.map(hostTensor), attributes);
      assertEquals(outputs.length, expected.length);
      expected.map(hostTensor).forEach((wanted, i) => assertSame(outputs[i]!, wanted));
    });
  }
}

function assertSame(actual: HostTensor, expected: HostTensor): void {
  assertEquals([actual.dtype, actual.shape], [expected.dtype, expected.shape]);
  for (let i = 0; i < expected.data.length; i++) {
    if (typeof expected.data[i] === "bigint") assertEquals(actual.data[i], expected.data[i]);
    else assertNear(getElement(actual, i), getElement(expected, i), `element ${i}`);
  }
}

function assertNear(actual: number, expected: number, place: string): void {
  if (Number.isFinite(expected)) {
    assertAlmostEquals(actual, expected, 1e-6 * Math.max(1, Math.abs(expected)), place);
  } else assert(Object.is(actual, expected), `${place} is ${actual}, expected ${expected}`);
}
