// Ops that read or write elements by index.

import { product } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { elementCount, hostArray, type HostTensor } from "../../ops/host_tensor.ts";
import { SCATTER_REDUCTIONS } from "../../ops/reductions.ts";
import { aroundAxis } from "../../ops/strided.ts";
import { int, text } from "../derivation/attributes.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";

function scatterElements(name: string, versions: readonly number[]): OnnxOp {
  return onnxOp(name, {
    versions,
    attributes: { axis: int(0), reduction: text("none", SCATTER_REDUCTIONS, { since: 16 }) },
    build(call) {
      const inputs = [call.input(0), call.input(1), call.input(2)];
      return call.op("scatter_elements", inputs, call.attributes);
    },
  });
}

// Indices of what holds.
function wherePositive({ data }: HostTensor): HostTensor {
  const indices = Array.from(data as Uint8Array).flatMap((holds, i) => holds ? [BigInt(i)] : []);
  return { dtype: "i64", shape: [indices.length], data: BigInt64Array.from(indices) };
}

/** Ops that use indices. */
export const gatheringOps: readonly OnnxOp[] = [
  /** Compress: a gather where the condition is known, else the size is known only on the host. */
  onnxOp("Compress", {
    versions: [9, 11],
    attributes: { axis: int() },
    build(call) {
      const condition = call.input(1).known;
      if (!condition) return call.onHost();
      const { axis } = call.attributes;
      const x = call.input(0);
      const lines = axis === undefined
        ? call.one("reshape", [x], { shape: [product(x.type.shape)] })
        : x;
      const indices = call.constant(wherePositive(condition));
      return call.op("gather", [lines, indices], { axis: axis ?? 0 });
    },
    evaluate(call) {
      const x = call.tensor(0);
      const { axis: given } = call.attributes;
      const shape = given === undefined ? [x.data.length] : x.shape;
      const axis = axisOf(given ?? 0, shape.length);
      const { outer, size, inner } = aroundAxis(shape, axis);
      const picks = wherePositive(call.tensor(1)).data as BigInt64Array;
      if (picks.length > 0 && Number(picks.at(-1)) >= size) {
        throw new RangeError(`Cannot take element ${picks.at(-1)} of ${size}`);
      }
      const outShape = shape.with(axis, picks.length);
      const data = hostArray(x.dtype, elementCount(outShape));
      const from = x.data as Uint8Array, to = data as Uint8Array;
      for (let i = 0, at = 0; i < outer; i++) {
        for (const pick of picks) {
          const start = (i * size + Number(pick)) * inner;
          to.set(from.subarray(start, start + inner), at);
          at += inner;
        }
      }
      return [{ dtype: x.dtype, shape: outShape, data }];
    },
  }),
  onnxOp("Gather", {
    versions: [1, 11],
    attributes: { axis: int(0) },
    build: (call) => call.op("gather", [call.input(0), call.input(1)], { ...call.attributes }),
  }),
  onnxOp("GatherElements", {
    versions: [11],
    attributes: { axis: int(0) },
    build: (call) => call.op("gather_elements", [call.input(0), call.input(1)], call.attributes),
  }),
  onnxOp("GatherND", {
    versions: [11, 12],
    attributes: { batch_dims: int(0, { since: 12 }) },
    build: (call) => call.op("gather_nd", [call.input(0), call.input(1)], call.attributes),
  }),
  scatterElements("Scatter", [9]),
  scatterElements("ScatterElements", [11, 16]),
  onnxOp("ScatterND", {
    versions: [11, 16],
    attributes: { reduction: text("none", SCATTER_REDUCTIONS, { since: 16 }) },
    build(call) {
      const inputs = [call.input(0), call.input(1), call.input(2)];
      return call.op("scatter_nd", inputs, call.attributes);
    },
  }),
];
