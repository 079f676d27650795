// reduce: sums, means, extremes, products and norms along axes. Truth values reduce as 0 and 1.

import { choice, flag, integers } from "../attributes.ts";
import { isInteger, isNumber, isWide, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { DataType } from "../../graph/graph.ts";
import { axisOf, type Numbers, numbersOf, storeNumbers, stridesOf } from "../host_numbers.ts";
import { elementCount, type HostTensor } from "../host_tensor.ts";
import type { CaseInput, OpRecord } from "../op.ts";
import type { CaseRandom } from "../op_case.ts";
import { REDUCE_NAMES, type ReduceName, reductions, wholeReductions } from "../reduce_kinds.ts";
import { checkInputCount } from "../shape_rules.ts";
import { elementsOf, walk } from "../strided.ts";

/** (x T[…]) → T[… without the axes, or with size 1 there]. */
export const reduce: OpRecord = defineOp({
  name: "reduce",
  summary: "sums, means, extremes, products and norms along axes",
  attributes: { kind: choice(REDUCE_NAMES), axes: integers(), keep: flag(true) },
  infer(inputs, { axes, keep }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" }, {
      accepts: (dtype) => isNumber(dtype) || dtype === "bool",
      expected: "of numbers or truth values",
    });
    const reduced = axisSet(axes, x.shape.length);
    const shape = keep
      ? x.shape.map((dim, axis) => reduced.has(axis) ? 1 : dim)
      : x.shape.filter((_, axis) => !reduced.has(axis));
    return [{ dtype: x.dtype, shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind, axes } }) {
    const { shape } = x!;
    const reduced = axisSet(axes, shape.length);
    const kept = stridesOf(shape.map((size, axis) => reduced.has(axis) ? 1 : size));
    // Strides of the result under the shape of x.
    const strides = kept.map((stride, axis) => reduced.has(axis) ? 0 : stride);
    const count = elementCount(shape.filter((_, axis) => reduced.has(axis)));
    if (isInteger(x!.dtype) && wholeReductions[kind] && count > 0) {
      reduceWhole(x!, out!, strides, { kind, count });
      return;
    }
    const lines: Lines = { values: numbersOf(x!), shape, strides, results: out!.data.length };
    const totals = kind === "log_sum_exp" ? logSumExp(lines) : reduceLines(lines, { kind, count });
    storeNumbers(out!, totals.map((total) => storable(total, out!.dtype)));
  },
  cases: (random) => [
    ...(["sum", "max", "min", "prod", "sum_square"] as const).map((kind) => ({
      inputs: [{ ...random.indices([1, 2, -3, 4, 5, 6]), shape: [2, 3] } as CaseInput],
      attributes: { kind, axes: [kind === "sum" ? 0 : 1] },
    })),
    ...REDUCE_NAMES.map((kind) => ({
      inputs: [{ ...random.typed("f64", [0.1, 3, 1e-30, 7, 5, 6]), shape: [2, 3] } as CaseInput],
      attributes: { kind, axes: [1] },
    })),
    ...REDUCE_NAMES.flatMap((kind) =>
      (kind === "sum" ? AXES : AXES.slice(0, 2)).map((axes, i) => ({
        inputs: [positive(random, [2, 5, 33])],
        attributes: { kind, axes, keep: i % 2 === 0 },
      }))
    ),
  ],
});

// Around 1, so that logarithms and products stay finite.
function positive(random: CaseRandom, shape: readonly number[]): CaseInput {
  const data = random.normal(elementCount(shape), 0.3).map((value) => Math.exp(value));
  return { role: "input", dtype: "f32", shape, data };
}

const AXES: readonly (readonly number[])[] = [[1], [-1], [0], [1, 2], [0, 2], [0, 1, 2]];

/** The axes counted from the front. */
function axisSet(axes: readonly number[], rank: number): Set<number> {
  const set = new Set(axes.map((axis) => axisOf(axis, rank)));
  if (set.size < axes.length) throw new RangeError(`axes [${axes}] name one twice`);
  return set;
}

interface Lines {
  readonly values: Numbers;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly results: number;
}

interface Reducing {
  readonly kind: ReduceName;
  /** Elements of each line. */
  readonly count: number;
}

function reduceLines(
  { values, shape, strides, results }: Lines,
  { kind, count }: Reducing,
): Float64Array {
  const { start, join, end } = reductions[kind as keyof typeof reductions];
  const totals = new Float64Array(results).fill(start);
  walk(shape, {
    strides: [strides],
    visit: (index, offsets) => {
      const at = offsets[0]!;
      totals[at] = join(totals[at]!, values[index]!);
    },
  });
  return end ? totals.map((total) => end(total, count)) : totals;
}

// Shifted by the largest element, so that no exponential overflows.
function logSumExp(lines: Lines): Float64Array {
  const largest = reduceLines(lines, { kind: "max", count: 0 });
  const shifts = largest.map((value) => Number.isFinite(value) ? value : 0);
  const totals = new Float64Array(lines.results);
  walk(lines.shape, {
    strides: [lines.strides],
    visit: (index, offsets) => {
      const at = offsets[0]!;
      totals[at]! += Math.exp(lines.values[index]! - shifts[at]!);
    },
  });
  return totals.map((total, at) => Math.log(total) + shifts[at]!);
}

// Exactly; what is too large wraps when it is stored.
function reduceWhole(
  x: HostTensor,
  out: HostTensor,
  strides: readonly number[],
  { kind, count }: Reducing,
): void {
  const { start, join } = wholeReductions[kind]!;
  const to = elementsOf(out), wide = isWide(x.dtype);
  const totals = new Array<bigint | undefined>(out.data.length).fill(start);
  walk(x.shape, {
    strides: [strides],
    visit: (index, offsets) => {
      const at = offsets[0]!, total = totals[at], value = BigInt(x.data[index]!);
      totals[at] = total === undefined ? value : join(total, value);
    },
  });
  totals.forEach((total, at) => {
    const result = kind === "mean" ? total! / BigInt(count) : total!;
    to[at] = wide ? result : Number(BigInt.asIntN(32, result));
  });
}

// Nothing's largest element is the least of the type (NumPy's `initial`), and so on.
function storable(total: number, dtype: DataType): number {
  if (Number.isFinite(total) || !(isInteger(dtype) || dtype === "bool")) return total;
  if (dtype === "bool" || Number.isNaN(total)) return total > 0 ? 1 : 0;
  const bits = Number(dtype.slice(1)), signed = dtype.startsWith("i");
  if (total > 0) return 2 ** (signed ? bits - 1 : bits) - 1;
  return signed ? -(2 ** (bits - 1)) : 0;
}
