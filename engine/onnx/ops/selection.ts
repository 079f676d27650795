// Ops that order, count or mark elements.

import type { Dim } from "../../graph/dim/mod.ts";
import { stridesOf } from "../../ops/host_numbers.ts";
import { getElement } from "../../ops/host_tensor.ts";
import { flag, int } from "../derivation/attributes.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";

function cumulative(name: string, kind: "sum" | "prod", versions: readonly number[]): OnnxOp {
  return onnxOp(name, {
    versions,
    attributes: { exclusive: flag(false), reverse: flag(false) },
    build(call) {
      const axis = call.numbers(1)[0]!;
      return call.op("cumulative", [call.input(0)], { kind, axis, ...call.attributes });
    },
  });
}

// The depth may be of a float type.
function depthOf(call: OnnxCall<unknown>): Dim {
  const { dtype } = call.input(1).type;
  if (dtype.startsWith("i") || dtype.startsWith("u")) return call.dims(1)[0]!;
  return Math.trunc(getElement(call.contents(1), 0));
}

/** Ops that select. */
export const selectionOps: readonly OnnxOp[] = [
  cumulative("CumProd", "prod", [26]),
  cumulative("CumSum", "sum", [11]),
  onnxOp("Det", {
    versions: [11],
    build: (call) => call.op("det", [call.input(0)]),
  }),
  /** NonZero: the number of results is known only when they are. */
  onnxOp("NonZero", {
    versions: [9],
    evaluate(call) {
      const x = call.tensor(0);
      const strides = stridesOf(x.shape);
      const found: number[] = [];
      for (let i = 0; i < x.data.length; i++) if (getElement(x, i) !== 0) found.push(i);
      const data = new BigInt64Array(x.shape.length * found.length);
      x.shape.forEach((size, axis) =>
        found.forEach((index, i) => {
          data[axis * found.length + i] = BigInt(Math.floor(index / strides[axis]!) % size);
        })
      );
      return [{ dtype: "i64", shape: [x.shape.length, found.length], data }];
    },
  }),
  onnxOp("OneHot", {
    versions: [9, 11],
    attributes: { axis: int(-1) },
    build(call) {
      const inputs = [call.input(0), call.input(2)];
      return call.op("one_hot", inputs, { depth: depthOf(call), axis: call.attributes.axis });
    },
  }),
  onnxOp("ReverseSequence", {
    versions: [10],
    attributes: { batch_axis: int(1), time_axis: int(0) },
    build: (call) => call.op("reverse_sequence", [call.input(0), call.input(1)], call.attributes),
  }),
  /** TopK: `k` was an attribute in version 1; order and direction came with 11. */
  onnxOp("TopK", {
    versions: [1, 10, 11],
    attributes: {
      axis: int(-1),
      k: int(undefined, { until: 1 }),
      largest: flag(true, { since: 11 }),
      // Unsorted results may come in any order: sorted ones do.
      sorted: int(1, { since: 11 }),
    },
    build(call) {
      const { axis, largest, k: given } = call.attributes;
      const k = call.version < 10 ? given : call.dims(1)[0];
      if (k === undefined) throw new TypeError("k is missing");
      return call.op("top_k", [call.input(0)], { axis, k, largest });
    },
  }),
  onnxOp("Trilu", {
    versions: [14],
    attributes: { upper: flag(true) },
    build(call) {
      const k = call.inputs[1] ? call.numbers(1)[0]! : 0;
      return call.op("trilu", [call.input(0)], { ...call.attributes, k });
    },
  }),
];
