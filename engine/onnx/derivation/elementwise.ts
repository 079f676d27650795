// What the translations of elementwise ops share: the engine op for a function of a type, and scalars of
// a tensor's type.

import type { BinaryName } from "../../../functions/binary.ts";
import type { UnaryName } from "../../../functions/unary.ts";
import type { DataType } from "../../graph/graph.ts";
import { hostArray, setElement } from "../../ops/host_tensor.ts";
import type { OnnxCall } from "./op.ts";
import type { Tensor } from "./tensor.ts";

/** The parts of a call that adding engine ops takes. */
export type Translating = Pick<OnnxCall, "one" | "scalar">;

/** A function of each element. */
export function applyUnary(
  call: Translating,
  { kind, x }: { readonly kind: UnaryName; readonly x: Tensor },
  parameters: { readonly alpha?: number; readonly beta?: number } = {},
): Tensor {
  const { alpha = 1, beta = 0 } = parameters;
  return call.one("unary", [x], { kind, alpha, beta });
}

/** A function of two elements, broadcasting. */
export function applyBinary(
  call: Translating,
  { kind, a, b }: { readonly kind: BinaryName; readonly a: Tensor; readonly b: Tensor },
): Tensor {
  return call.one("binary", [a, b], { kind });
}

/** The tensor in another element type; itself if it has that type. Not a rounding that the file asks for. */
export function castTo(
  call: Translating,
  { x, to }: { readonly x: Tensor; readonly to: DataType },
): Tensor {
  return x.type.dtype === to ? x : call.one("cast", [x], { to, rounds: false });
}

/** A constant vector. */
export function vectorOf(
  call: Pick<OnnxCall, "constant">,
  { dtype, values }: { readonly dtype: DataType; readonly values: readonly number[] },
): Tensor {
  const vector = {
    dtype,
    shape: [values.length],
    data: hostArray(dtype, { count: values.length }),
  };
  values.forEach((value, i) => setElement(vector, { index: i, value }));
  return call.constant(vector);
}

/** The only element of a tensor, if it is known. */
export function knownScalar(x: Tensor | undefined): number | undefined {
  const { known } = x ?? {};
  if (known?.data.length !== 1 || known.dtype === "f16" || known.dtype === "bf16") return undefined;
  return Number(known.data[0]);
}
