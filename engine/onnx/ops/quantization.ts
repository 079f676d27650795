// Codes and numbers: QuantizeLinear and its like.

import { isSmallFloat } from "../../../quant/small_floats.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { flag, int } from "../derivation/attributes.ts";
import { applyBinary, castTo, type Translating } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { elementType } from "./casts.ts";

/** The axis of scales; a scalar of one has none. */
function axisFor(x: Tensor, axis: number): number {
  const rank = x.type.shape.length;
  return rank === 0 ? 0 : axis >= rank ? 0 : axisOf(axis, rank);
}

function checkedAxis(
  call: OnnxCall<unknown>,
  { x, scale, axis }: { readonly x: Tensor; readonly scale: Tensor; readonly axis: number },
): number {
  if (call.version === 10 && scale.type.shape.length > 0 && scale.type.shape[0] !== 1) {
    call.unsupported("scales of an axis, which version 10 does not have");
  }
  return axisFor(x, axis);
}

/** Codes of `sums · scale` with the scale and zero point of a result. */
export function requantize(
  call: Translating,
  { sums, scale, outScale, outZero }: {
    readonly sums: Tensor;
    readonly scale: Tensor;
    readonly outScale: Tensor;
    readonly outZero: Tensor;
  },
): Tensor {
  const x = applyBinary(call, { kind: "mul", a: castTo(call, { x: sums, to: "f32" }), b: scale });
  const step = castTo(call, { x: outScale, to: "f32" });
  return call.one("quantize_linear", [x, step, outZero], { to: outZero.type.dtype });
}

/** Quantisation. */
export const quantizationOps: readonly OnnxOp[] = [
  onnxOp("DequantizeLinear", {
    versions: [10, 13, 19, 21, 23, 24, 25],
    attributes: {
      axis: int(1, { since: 13 }),
      block_size: int(0, { since: 21 }),
      output_dtype: int(0, { since: 23 }),
    },
    build(call) {
      const { axis, block_size: block, output_dtype } = call.attributes;
      const x = call.input(0), scale = call.input(1), zero = call.inputs[2];
      // A float code's zero point can only be 0.
      const used = isSmallFloat(x.type.dtype) ? undefined : zero;
      return call.op("dequantize_linear", [x, scale, used], {
        to: output_dtype ? elementType(call, output_dtype) : scale.type.dtype,
        axis: checkedAxis(call, { x, scale, axis }),
        block,
      });
    },
  }),
  onnxOp("DynamicQuantizeLinear", {
    versions: [11],
    build: (call) => call.op("dynamic_quantize", [call.input(0)]),
  }),
  onnxOp("QuantizeLinear", {
    versions: [10, 13, 19, 21, 23, 24, 25],
    attributes: {
      axis: int(1, { since: 13 }),
      block_size: int(0, { since: 21 }),
      output_dtype: int(0, { since: 21 }),
      precision: int(0, { since: 23 }),
      saturate: flag(true, { since: 19 }),
    },
    build(call) {
      const { axis, block_size: block, output_dtype, precision, saturate } = call.attributes;
      const x = call.input(0), scale = call.input(1), zero = call.inputs[2];
      const to = zero?.type.dtype ?? (output_dtype ? elementType(call, output_dtype) : "u8");
      return call.op("quantize_linear", [x, scale, zero], {
        to,
        axis: checkedAxis(call, { x, scale, axis }),
        block,
        saturate,
        precision: precision
          ? elementType(call, precision)
          : x.type.dtype === "f64" || x.type.dtype === "f16" && scale.type.dtype === "f16"
          ? x.type.dtype
          : "f32",
      });
    },
  }),
];
