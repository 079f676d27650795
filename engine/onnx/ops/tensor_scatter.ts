// TensorScatter: writes new entries into a cache at a position of each batch line, around the end if the
// cache is circular.

import { type Dim, equal, formatDim } from "../../graph/dim/mod.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { int, text } from "../derivation/attributes.ts";
import { applyBinary } from "../derivation/elementwise.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";

/** Cache updates. */
export const tensorScatterOps: readonly OnnxOp[] = [
  onnxOp("TensorScatter", {
    versions: [24],
    attributes: { axis: int(-2), mode: text("linear", { choices: ["linear", "circular"] }) },
    build(call) {
      const cache = call.input(0), update = call.input(1);
      const rank = cache.type.shape.length;
      const axis = axisOf(call.attributes.axis, rank);
      if (axis === 0) throw new RangeError("axis 0 is the batch: must be another");
      const only = (at: number, size: Dim) =>
        cache.type.shape.map((_, i): Dim => i === at ? size : 1);
      const count = update.type.shape[axis]!;
      const steps = call.one("range", [call.scalar("i64", 0), call.scalar("i64", 1)], {
        size: count,
      });
      const along = call.one("reshape", [steps], { shape: only(axis, count) });
      const starts = call.inputs[2];
      const places = starts
        ? applyBinary(call, {
          kind: "add",
          a: along,
          b: call.one("reshape", [starts], { shape: only(0, starts.type.shape[0]!) }),
        })
        : along;
      const wrapped = call.attributes.mode === "linear" ? places : applyBinary(call, {
        kind: "mod",
        a: places,
        b: call.fromDims([cache.type.shape[axis]!], "i64", []),
      });
      const indices = call.one("expand", [wrapped], { shape: update.type.shape });
      cache.type.shape.forEach((dim, i) => {
        if (i === axis || equal(dim, update.type.shape[i]!)) return;
        throw new RangeError(`dim ${i} of the update must be ${formatDim(dim)}`);
      });
      return call.op("scatter_elements", [cache, indices, update], { axis });
    },
  }),
];
