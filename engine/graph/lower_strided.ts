// Loops with strides for WASM kernels. Sizes and strides are reduced before lowering: dims of size 1 go,
// and neighbours that every operand walks as one become one, so that most shapes fit the six dims of a
// kernel and inner runs are long.

import { type Dim, equal, mul } from "./dim.ts";
import type { DataType, Value } from "./graph.ts";
import { hostElementBytes } from "./host_tensor.ts";

/** A loop over dims, and for each operand its strides. */
export interface Loop {
  readonly sizes: readonly Dim[];
  /** By operand, in elements. */
  readonly strides: readonly (readonly Dim[])[];
}

/** Row-major strides of a shape, in elements. */
export function denseStrides(shape: readonly Dim[]): Dim[] {
  const strides: Dim[] = [];
  let stride: Dim = 1;
  for (const size of shape.toReversed()) {
    strides.unshift(stride);
    stride = mul(stride, size);
  }
  return strides;
}

/** Strides by which a shape is read under the shape `out`; dims that repeat have 0. */
export function repeatingStrides(shape: readonly Dim[], out: readonly Dim[]): Dim[] {
  const lead = out.length - shape.length;
  const strides = denseStrides(shape);
  return out.map((size, axis) => {
    const own = shape[axis - lead];
    return own === undefined || (equal(own, 1) && !equal(size, 1)) ? 0 : strides[axis - lead]!;
  });
}

/** The same loop with as few dims as possible. */
export function mergedLoop({ sizes, strides }: Loop): Loop {
  const merged: { size: Dim; steps: Dim[] }[] = [];
  sizes.forEach((size, axis) => {
    if (equal(size, 1)) return;
    const steps = strides.map((operand) => operand[axis]!);
    const last = merged.at(-1);
    const joins = last?.steps.every((step, i) => equal(step, mul(size, steps[i]!)));
    if (joins) merged[merged.length - 1] = { size: mul(last!.size, size), steps };
    else merged.push({ size, steps });
  });
  return {
    sizes: merged.map(({ size }) => size),
    strides: strides.map((_, i) => merged.map(({ steps }) => steps[i]!)),
  };
}

/** Operands `<prefix>0`, `<prefix>1`, … of an instruction: `values`, with `missing` in front. */
export function numbered<Prefix extends string>(
  prefix: Prefix,
  values: readonly Dim[],
  { rank, missing }: { readonly rank: number; readonly missing: Dim },
): Record<`${Prefix}${0 | 1 | 2 | 3 | 4 | 5}`, Dim> {
  const padded = [...Array<Dim>(rank - values.length).fill(missing), ...values];
  return Object.fromEntries(padded.map((value, i) => [`${prefix}${i}`, value])) as ReturnType<
    typeof numbered<Prefix>
  >;
}

/** Strides in bytes. */
export function inBytes(strides: readonly Dim[], bytes: number): Dim[] {
  return strides.map((stride) => mul(stride, bytes));
}

/** Bytes of an element where kernels can move it whole. */
export function movableBytes({ dtype }: { readonly dtype: DataType }): number | undefined {
  return dtype === "q8" ? undefined : hostElementBytes(dtype);
}

/** Whether values are all float32. */
export function areFloat32(values: readonly (Value | undefined)[]): boolean {
  return values.every((value) => value?.dtype === "f32");
}
