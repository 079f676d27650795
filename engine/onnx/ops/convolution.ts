// Convolutions.

import { int, ints, type OnnxAttributesOf, text } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, castTo } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { requantize } from "./quantization.ts";
import { sliced } from "./slicing.ts";
import { convAttributes, convOf, plainConvAttributes } from "./window_attributes.ts";

/** Refuses a kernel_shape that contradicts the weight. */
function checkKernel(kernel: readonly number[] | undefined, w: Tensor): void {
  const extents = w.type.shape.slice(2);
  if (kernel && (kernel.length !== extents.length || kernel.some((k, i) => k !== extents[i]))) {
    throw new RangeError(`kernel_shape is ${kernel}: the weight has ${extents.join(", ")}`);
  }
}

// [C] as [C, 1, …], to broadcast over [N, C, …].
function perChannel(call: Pick<OnnxCall, "one">, vector: Tensor, x: Tensor): Tensor {
  const { shape } = vector.type;
  if (shape.length !== 1 || shape[0] === 1) return vector;
  return call.one("reshape", [vector], {
    shape: [shape[0]!, ...x.type.shape.slice(2).map(() => 1)],
  });
}

const transposeAttributes = {
  ...convAttributes,
  ...{ output_padding: ints([]), output_shape: ints() },
} as const;

// Pads that give the asked output, where one is asked for; what is missing is added at the ends.
function padsForOutput(
  call: OnnxCall<OnnxAttributesOf<typeof transposeAttributes>>,
  sizes: readonly Dim[],
  kernel: readonly Dim[],
) {
  const { auto_pad, dilations, strides, output_padding, output_shape } = call.attributes;
  const same = auto_pad.startsWith("SAME");
  const padded = output_padding.some((count) => count > 0);
  if (!output_shape && !(same && padded)) return {};
  const begins: number[] = [], ends: number[] = [], extra: number[] = [];
  sizes.forEach((size, axis) => {
    const extent = kernel[axis]!, stride = strides[axis] ?? 1;
    if (typeof size !== "number" || typeof extent !== "number") {
      throw new RangeError("pads for an output shape need a known input shape");
    }
    const spread = (extent - 1) * (dilations[axis] ?? 1) + 1;
    const wanted = output_shape?.at(axis - sizes.length) ?? size * stride;
    const total = stride * (size - 1) + (output_padding[axis] ?? 0) + spread - wanted;
    const small = Math.floor(Math.max(total, 0) / 2), large = Math.max(total, 0) - small;
    begins.push(auto_pad === "SAME_UPPER" ? small : large);
    ends.push(auto_pad === "SAME_UPPER" ? large : small);
    extra.push((output_padding[axis] ?? 0) + Math.max(-total, 0));
  });
  return { padding: "explicit", pads: [...begins, ...ends], output_padding: extra };
}

/** Convolutions. */
export const convolutionOps: readonly OnnxOp[] = [
  /** Depthwise over what came before and what is new; the state is the end of both. */
  onnxOp("CausalConvWithState", {
    versions: [27],
    attributes: { activation: text("none", { choices: ["none", "silu", "swish"] }) },
    build(call) {
      const x = call.input(0), w = call.input(1), past = call.inputs[3];
      const [, channels, length] = x.type.shape as [Dim, Dim, Dim];
      const taps = w.type.shape[2]!;
      if (typeof channels !== "number" || typeof taps !== "number") {
        throw new RangeError("channels and taps must be known numbers");
      }
      const whole = past
        ? call.one("concat", [past, x], { axis: 2 })
        : call.one("pad", [x, undefined], { before: [0, 0, taps - 1], after: [0, 0, 0] });
      const y = call.one("conv", [whole, w, call.inputs[2]], { groups: channels });
      const active = call.attributes.activation === "none" ? y : castTo(call, {
        x: applyUnary(call, { kind: "silu", x: castTo(call, { x: y, to: "f32" }) }),
        to: y.type.dtype,
      });
      const end = { start: length, size: taps - 1, step: 1 };
      return [
        active,
        call.wanted[1] ? sliced(call, { x: whole, cuts: new Map([[2, end]]) }) : undefined,
      ];
    },
  }),
  onnxOp("Conv", {
    versions: [1, 11],
    attributes: convAttributes,
    build(call) {
      checkKernel(call.attributes.kernel_shape, call.input(1));
      return call.op("conv", call.take(2, 1), convOf(call.attributes));
    },
  }),
  onnxOp("ConvInteger", {
    versions: [10],
    attributes: convAttributes,
    build: (call) => call.op("conv_integer", call.take(2, 2), convOf(call.attributes)),
  }),
  onnxOp("ConvTranspose", {
    versions: [1, 11],
    attributes: transposeAttributes,
    build(call) {
      const { kernel_shape, output_padding } = call.attributes;
      const x = call.input(0), w = call.input(1);
      checkKernel(kernel_shape, w);
      return call.op("conv_transpose", [x, w, call.inputs[2]], {
        output_padding,
        ...convOf(call.attributes),
        ...padsForOutput(call, x.type.shape.slice(2), w.type.shape.slice(2)),
      });
    },
  }),
  onnxOp("DeformConv", {
    versions: [19],
    attributes: { ...plainConvAttributes, offset_group: int(1) },
    build(call) {
      const { offset_group: offset_groups, kernel_shape } = call.attributes;
      checkKernel(kernel_shape, call.input(1));
      return call.op("deform_conv", call.take(3, 2), { ...convOf(call.attributes), offset_groups });
    },
  }),
  onnxOp("QLinearConv", {
    versions: [10],
    attributes: convAttributes,
    build(call) {
      const x = call.input(0), w = call.input(3), bias = call.inputs[8];
      const inputs = [x, w, call.inputs[2], call.inputs[5]];
      let sums = call.one("conv_integer", inputs, convOf(call.attributes));
      if (bias) sums = applyBinary(call, { kind: "add", a: sums, b: perChannel(call, bias, x) });
      const scale = applyBinary(call, {
        kind: "mul",
        a: call.input(1),
        b: perChannel(call, call.input(4), x),
      });
      return [requantize(call, { sums, scale, outScale: call.input(6), outZero: call.input(7) })];
    },
  }),
];
