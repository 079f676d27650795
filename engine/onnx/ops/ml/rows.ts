// Rows of features, as the models of ai.onnx.ml read them: [N, F], or [F] for one row.

import type { Dim } from "../../../graph/dim/mod.ts";
import { numbersOf } from "../../../ops/host_numbers.ts";
import type { HostCall, OnnxCall } from "../../derivation/op.ts";

/** A table of numbers, row-major. */
export interface Rows {
  readonly count: number;
  readonly width: number;
  readonly data: Float32Array | Float64Array;
}

/** How many features a row must have: just so many, or so many and more. */
export interface Width {
  readonly features: number;
  readonly orMore?: boolean;
}

/**
 * Input 0 of a node: float64 stays, everything else becomes float32, as onnxruntime computes.
 *
 * @throws {RangeError} If it is no table, or its rows are of another width.
 */
export function rowsOf(call: HostCall<unknown>, width: Width): Rows {
  const x = call.tensor(0);
  checkWidth(x.shape, width);
  const numbers = numbersOf(x);
  const data = numbers instanceof Float32Array || x.dtype === "f64"
    ? numbers as Rows["data"]
    : Float32Array.from(numbers);
  return { count: x.shape.length === 1 ? 1 : x.shape[0]!, width: x.shape.at(-1)!, data };
}

/** As `rowsOf`, in float32. */
export function narrowRowsOf(call: HostCall<unknown>, width: Width): Rows {
  const rows = rowsOf(call, width);
  return { ...rows, data: Float32Array.from(rows.data) };
}

/**
 * Leaves a node that reads rows to the host; rows of a wrong width, where that is known, are refused before.
 *
 * @throws {RangeError} As `rowsOf`.
 */
export function rowsOnHost(call: OnnxCall<unknown>, width: Width): never {
  checkWidth(call.input(0).type.shape, width);
  return call.onHost();
}

function checkWidth(shape: readonly Dim[], { features, orMore = false }: Width): void {
  const found = shape.at(-1);
  if (found === undefined || shape.length > 2) {
    throw new RangeError(`rows of features must be of one or two dims: they have ${shape.length}`);
  }
  if (typeof found !== "number" || found === features || orMore && found > features) return;
  throw new RangeError(
    `a row has ${found} features: it must have ${features}${orMore ? " or more" : ""}`,
  );
}
