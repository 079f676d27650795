// Loops with strides for WASM kernels. Sizes and strides are reduced before lowering: dims of size 1 go,
// and neighbours that every operand walks as one become one, so that most shapes fit the six dims of a
// kernel and inner runs are long.

import { type Dim, mul } from "../../../graph/dim/mod.ts";
import type { DataType, Value } from "../../../graph/graph.ts";
import { hostElementBytes } from "../../../ops/host_tensor.ts";
import { isQ8 } from "../../../ops/q8_rows.ts";

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
  return isQ8(dtype) ? undefined : hostElementBytes(dtype);
}

/** Whether values are all float32. */
export function areFloat32(values: readonly (Value | undefined)[]): boolean {
  return values.every((value) => value?.dtype === "f32");
}
