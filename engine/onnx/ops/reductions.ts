// Reductions along axes. Axes were an attribute before they became an input (ReduceSum at 13, the others
// at 18); none means all, unless `noop_with_empty_axes` asks for nothing to be reduced.

import type { ReduceName } from "../../ops/reduce_kinds.ts";
import { flag, int, ints } from "../derivation/attributes.ts";
import { applyBinary, applyUnary } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

const kinds: readonly (readonly [name: string, kind: ReduceName])[] = [
  ["ReduceL1", "l1"],
  ["ReduceL2", "l2"],
  ["ReduceLogSum", "log_sum"],
  ["ReduceLogSumExp", "log_sum_exp"],
  ["ReduceMax", "max"],
  ["ReduceMean", "mean"],
  ["ReduceMin", "min"],
  ["ReduceProd", "prod"],
  ["ReduceSum", "sum"],
  ["ReduceSumSquare", "sum_square"],
];

function reduction(name: string, kind: ReduceName): OnnxOp {
  const inputSince = name === "ReduceSum" ? 13 : 18;
  return onnxOp(name, {
    versions: [1, 11, inputSince],
    attributes: {
      axes: ints(undefined, { until: inputSince - 1 }),
      keepdims: flag(true),
      noop_with_empty_axes: flag(false, { since: inputSince }),
    },
    build(call) {
      const x = call.input(0);
      const { keepdims, noop_with_empty_axes: noop } = call.attributes;
      const given = call.inputs[1] ? call.numbers(1) : call.attributes.axes ?? [];
      if (given.length === 0 && noop) return [ofSingles(call, kind, x)];
      const axes = given.length > 0 ? given : x.type.shape.map((_, axis) => axis);
      return [call.one("reduce", [x], { kind, axes, keep: keepdims })];
    },
  });
}

// With nothing to reduce, each element is a line of its own.
function ofSingles(call: OnnxCall<unknown>, kind: ReduceName, x: Tensor): Tensor {
  if (kind === "l1" || kind === "l2") return applyUnary(call, { kind: "abs", x });
  if (kind === "sum_square") return applyBinary(call, { kind: "mul", a: x, b: x });
  if (kind === "log_sum") return applyUnary(call, { kind: "log", x });
  return x;
}

function argOp(name: string, kind: "max" | "min"): OnnxOp {
  return onnxOp(name, {
    versions: [1, 11, 12],
    attributes: {
      axis: int(0),
      keepdims: flag(true),
      select_last_index: flag(false, { since: 12 }),
    },
    build(call) {
      const { axis, keepdims, select_last_index: last } = call.attributes;
      const attributes = { kind, axis, keep: keepdims, last };
      return [call.one("arg_reduce", [call.input(0)], attributes)];
    },
  });
}

/** Ops that make a line one element. */
export const reductionOps: readonly OnnxOp[] = [
  argOp("ArgMax", "max"),
  argOp("ArgMin", "min"),
  ...kinds.map(([name, kind]) => reduction(name, kind)),
];
