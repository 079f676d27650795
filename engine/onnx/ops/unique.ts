// Unique: how many different elements there are is known only when they are, so the host computes it.

import { axisOf } from "../../ops/host_numbers.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import { aroundAxis, comparableOf, compareElements } from "../../ops/strided.ts";
import { int } from "../derivation/attributes.ts";
import { applyOnHost, withShape } from "../derivation/host_tensors.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";

// NaN comes last. Among single elements all of them are one, among lines each is its own, as NumPy has it.
function compareElementsOf(x: HostTensor): (a: number, b: number) => number {
  const values = comparableOf(x);
  return (a, b) => compareElements(values[a]!, values[b]!);
}

// Lexicographic.
function compareLines(
  x: HostTensor,
  shape: readonly number[],
  axis: number,
): (a: number, b: number) => number {
  const { outer, size, inner } = aroundAxis(shape, axis);
  const values = comparableOf(x);
  return (a, b) => {
    for (let i = 0; i < outer; i++) {
      for (let j = 0; j < inner; j++) {
        const p = values[(i * size + a) * inner + j]!, q = values[(i * size + b) * inner + j]!;
        if (p < q) return -1;
        if (p > q) return 1;
        if (p !== q) return Number.isNaN(p) ? (Number.isNaN(q) ? a - b : 1) : -1;
      }
    }
    return 0;
  };
}

function indexVector(values: readonly number[]): HostTensor {
  return { dtype: "i64", shape: [values.length], data: BigInt64Array.from(values.map(BigInt)) };
}

/** Unique. */
export const uniqueOps: readonly OnnxOp[] = [
  /** Unique: the different lines along an axis (or elements), sorted or in order of appearance. */
  onnxOp("Unique", {
    versions: [11],
    attributes: { axis: int(), sorted: int(1) },
    evaluate(call) {
      const x = call.tensor(0);
      const { axis: given, sorted } = call.attributes;
      const shape = given === undefined ? [x.data.length] : x.shape;
      const axis = axisOf(given ?? 0, shape.length);
      const order = given === undefined ? compareElementsOf(x) : compareLines(x, shape, axis);
      const lines = Array.from({ length: shape[axis]! }, (_, i) => i);
      const groups: number[][] = [];
      for (const line of lines.toSorted((a, b) => order(a, b) || a - b)) {
        const last = groups.at(-1);
        if (last && order(last[0]!, line) === 0) last.push(line);
        else groups.push([line]);
      }
      if (!sorted) groups.sort((a, b) => a[0]! - b[0]!);
      const inverse: number[] = [];
      groups.forEach((group, at) => group.forEach((line) => inverse[line] = at));
      const first = indexVector(groups.map((group) => group[0]!));
      return [
        applyOnHost("gather", { inputs: [withShape(x, shape), first], given: { axis } }),
        first,
        indexVector(inverse),
        indexVector(groups.map(({ length }) => length)),
      ];
    },
  }),
];
