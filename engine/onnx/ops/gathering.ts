// Ops that read or write elements by index.

import { product } from "../../graph/dim/mod.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import { SCATTER_REDUCTIONS } from "../../ops/reductions.ts";
import { int, text } from "../derivation/attributes.ts";
import { applyOnHost, withShape } from "../derivation/host_tensors.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";

function scatterElements(name: string, versions: readonly number[]): OnnxOp {
  return onnxOp(name, {
    versions,
    attributes: {
      axis: int(0),
      reduction: text("none", { choices: SCATTER_REDUCTIONS, range: { since: 16 } }),
    },
    build: (call) => call.op("scatter_elements", call.take(3), call.attributes),
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
      const x = call.tensor(0), { axis } = call.attributes;
      const lines = axis === undefined ? withShape(x, [x.data.length]) : x;
      const picks = wherePositive(call.tensor(1)), last = (picks.data as BigInt64Array).at(-1);
      const size = lines.shape.at(axis ?? 0)!;
      if (last !== undefined && last >= size) {
        throw new RangeError(`Cannot take element ${last} of ${size}`);
      }
      return [applyOnHost("gather", { inputs: [lines, picks], given: { axis: axis ?? 0 } })];
    },
  }),
  onnxOp("Gather", {
    versions: [1, 11],
    moves: true,
    attributes: { axis: int(0) },
    build: (call) => call.op("gather", call.take(2), call.attributes),
  }),
  onnxOp("GatherElements", {
    versions: [11],
    moves: true,
    attributes: { axis: int(0) },
    build: (call) => call.op("gather_elements", call.take(2), call.attributes),
  }),
  onnxOp("GatherND", {
    versions: [11, 12],
    moves: true,
    attributes: { batch_dims: int(0, { since: 12 }) },
    build: (call) => call.op("gather_nd", call.take(2), call.attributes),
  }),
  scatterElements("Scatter", [9]),
  scatterElements("ScatterElements", [11, 16]),
  onnxOp("ScatterND", {
    versions: [11, 16],
    attributes: { reduction: text("none", { choices: SCATTER_REDUCTIONS, range: { since: 16 } }) },
    build: (call) => call.op("scatter_nd", call.take(3), call.attributes),
  }),
];
