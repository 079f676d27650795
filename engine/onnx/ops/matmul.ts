// Matrix products. One with a constant matrix goes to `matmul`, which reads packed weights row by row
// and adds up in float32, also what is of half precision; others go to `matmul_nd`.

import { flag, float, int } from "../derivation/attributes.ts";
import { applyBinary, castTo } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import { isConstant, type Tensor } from "../derivation/tensor.ts";
import { widenedConstant } from "../derivation/constants.ts";
import { requantize } from "./quantization.ts";

type Building = Pick<OnnxCall, "one" | "scalar">;

/** a · b, or a · bᵀ, plus a constant bias of b's columns; the weight is laid out as `matmul` wants it. */
export function multiplyMatrices(
  call: Building,
  { a, b }: { readonly a: Tensor; readonly b: Tensor },
  { transposed = false, bias }: { readonly transposed?: boolean; readonly bias?: Tensor } = {},
): Tensor {
  const { dtype } = a.type;
  const packs = isConstant(b) && b.type.shape.length === 2 && b.type.dtype === dtype &&
    ["f32", "f16", "bf16"].includes(dtype);
  if (packs) {
    const rows = transposed ? b : call.one("transpose", [b], { perm: [1, 0] });
    const wide = [
      castTo(call, { x: a, to: "f32" }),
      widenedConstant(rows),
      bias && widenedConstant(bias),
    ];
    return castTo(call, { x: call.one("matmul", wide), to: dtype });
  }
  const product = call.one("matmul_nd", [a, b], { transpose_b: transposed });
  return bias ? applyBinary(call, { kind: "add", a: product, b: bias }) : product;
}

function scaled(call: Building, x: Tensor, factor: number): Tensor {
  if (factor === 1) return x;
  return applyBinary(call, { kind: "mul", a: x, b: call.scalar(x.type.dtype, factor) });
}

// Scales of rows: [M] stands for [M, 1].
function asColumn(call: Building, scale: Tensor): Tensor {
  const { shape } = scale.type;
  if (shape.length !== 1 || shape[0] === 1) return scale;
  return call.one("reshape", [scale], { shape: [shape[0]!, 1] });
}

/** Matrix products. */
export const matmulOps: readonly OnnxOp[] = [
  onnxOp("Gemm", {
    versions: [1, 7],
    attributes: {
      alpha: float(1),
      beta: float(1),
      broadcast: int(0, { until: 6 }),
      transA: flag(false),
      transB: flag(false),
    },
    build(call) {
      const { alpha, beta, transA, transB } = call.attributes;
      const a = call.input(0), b = call.input(1), { dtype } = a.type;
      // Of a beta of 0 nothing is added, even of what is not finite.
      const added = call.inputs[2] && beta !== 0 ? scaled(call, call.inputs[2], beta) : undefined;
      if (alpha === 1 && !transA) {
        const perColumn = added && isConstant(added) && added.type.shape.length === 1 &&
          added.type.shape[0] !== 1;
        const options = { transposed: transB, ...perColumn && { bias: added } };
        const product = multiplyMatrices(call, { a, b }, options);
        return [
          added && !perColumn ? applyBinary(call, { kind: "add", a: product, b: added }) : product,
        ];
      }
      // Whole numbers are scaled after the product; alpha is 1 in practice.
      const whole = !["f32", "f16", "bf16", "f64"].includes(dtype);
      const product = call.one("matmul_nd", [a, b], {
        transpose_a: transA,
        transpose_b: transB,
        alpha: whole ? 1 : alpha,
      });
      const multiple = whole ? scaled(call, product, alpha) : product;
      return [added ? applyBinary(call, { kind: "add", a: multiple, b: added }) : multiple];
    },
  }),
  onnxOp("MatMul", {
    versions: [1, 9],
    build: (call) => [multiplyMatrices(call, { a: call.input(0), b: call.input(1) })],
  }),
  onnxOp("MatMulInteger", {
    versions: [10],
    build: (call) => call.op("matmul_integer", call.take(2, 2)),
  }),
  onnxOp("QLinearMatMul", {
    versions: [10, 21],
    build(call) {
      const inputs = [call.input(0), call.input(3), call.inputs[2], call.inputs[5]];
      const product = call.one("matmul_integer", inputs);
      const aScale = castTo(call, { x: asColumn(call, call.input(1)), to: "f32" });
      const bScale = castTo(call, { x: call.input(4), to: "f32" });
      const scale = applyBinary(call, { kind: "mul", a: aScale, b: bScale });
      return [
        requantize(call, { sums: product, scale, outScale: call.input(6), outZero: call.input(7) }),
      ];
    },
  }),
];
