// Products of codes, and rows of blocks of codes, of com.microsoft. Sums of products of 8-bit codes are exact.

import { axisOf } from "../../ops/host_numbers.ts";
import { float, int } from "../derivation/attributes.ts";
import { applyBinary, castTo } from "../derivation/elementwise.ts";
import { contribOp, type OnnxCall, type OnnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { fitted } from "../derivation/unpack_blocks.ts";
import { requantize } from "./quantization.ts";

type Building = Pick<OnnxCall, "one" | "scalar">;

interface Codes {
  readonly codes: Tensor;
  readonly scale: Tensor;
  readonly zero: Tensor | undefined;
}

/** a · b of codes as numbers: sums times both scales, plus a bias. */
export function integerProduct(
  call: Building,
  { a, b, bias }: { readonly a: Codes; readonly b: Codes; readonly bias: Tensor | undefined },
): Tensor {
  const sums = call.one("matmul_integer", [a.codes, b.codes, a.zero, b.zero]);
  const [aScale, bScale] = [a, b].map(({ scale }) => castTo(call, { x: scale, to: "f32" }));
  const scale = applyBinary(call, { kind: "mul", a: aScale!, b: bScale! });
  const product = applyBinary(call, {
    kind: "mul",
    a: castTo(call, { x: sums, to: "f32" }),
    b: scale,
  });
  return bias ? applyBinary(call, { kind: "add", a: product, b: bias }) : product;
}

/** Products and rows of codes of com.microsoft. */
export const contribQuantizedOps: readonly OnnxOp[] = [
  contribOp("DynamicQuantizeMatMul", {
    build(call) {
      const [codes, scale, zero] = call.op("dynamic_quantize", [call.input(0)]) as [
        Tensor,
        Tensor,
        Tensor,
      ];
      const b = { codes: call.input(1), scale: call.input(2), zero: call.inputs[3] };
      return [integerProduct(call, { a: { codes, scale, zero }, b, bias: call.inputs[4] })];
    },
  }),
  contribOp("GatherBlockQuantized", {
    attributes: { bits: int(4), block_size: int(128), gather_axis: int(0), quantize_axis: int(1) },
    build(call) {
      const { bits, block_size: block, gather_axis, quantize_axis } = call.attributes;
      const data = call.input(0), indices = call.input(1), scales = call.input(2);
      const rank = data.type.shape.length;
      const from = axisOf(gather_axis, rank), along = axisOf(quantize_axis, rank);
      const rows = (x: Tensor) => call.one("gather", [x, indices], { axis: from });
      const packed = data.type.dtype === "u8" && bits < 8;
      const unpacked = (x: Tensor) =>
        packed ? call.one("unpack_bits", [x], { bits: `${bits}` }) : x;
      const codes = unpacked(rows(data)), steps = rows(scales);
      // Indices of any rank stand where the gathered axis stood.
      const axis = along > from ? along + indices.type.shape.length - 1 : along;
      const given = call.inputs[3] &&
        fitted(call, { x: unpacked(rows(call.inputs[3])), shape: steps.type.shape });
      const centre = data.type.dtype === "u8" ? 2 ** (bits - 1) : 0;
      const zero = given ?? (centre === 0 ? undefined : call.one("expand", [
        call.scalar("u8", centre),
      ], { shape: steps.type.shape }));
      return call.op("dequantize_linear", [codes, steps, zero], {
        to: scales.type.dtype,
        axis,
        block: block === 0 ? 2 ** 30 : block,
      });
    },
  }),
  contribOp("MatMulIntegerToFloat", {
    build: (call) => [
      integerProduct(call, {
        a: { codes: call.input(0), scale: call.input(2), zero: call.inputs[4] },
        b: { codes: call.input(1), scale: call.input(3), zero: call.inputs[5] },
        bias: call.inputs[6],
      }),
    ],
  }),
  contribOp("QGemm", {
    attributes: { alpha: float(1), transA: int(0), transB: int(0) },
    build(call) {
      const { alpha, transA, transB } = call.attributes;
      const turned = (x: Tensor, turn: number) =>
        turn ? call.one("transpose", [x], { perm: [1, 0] }) : x;
      const a = turned(call.input(0), transA), b = turned(call.input(3), transB);
      let sums = call.one("matmul_integer", [a, b, call.inputs[2], call.inputs[5]]);
      const added = call.inputs[6];
      if (added) sums = applyBinary(call, { kind: "add", a: sums, b: added });
      let scale = applyBinary(call, { kind: "mul", a: call.input(1), b: call.input(4) });
      if (alpha !== 1) {
        scale = applyBinary(call, { kind: "mul", a: scale, b: call.scalar("f32", alpha) });
      }
      const step = call.inputs[7];
      if (!step) {
        return [
          applyBinary(call, { kind: "mul", a: castTo(call, { x: sums, to: "f32" }), b: scale }),
        ];
      }
      return [requantize(call, { sums, scale, outScale: step, outZero: call.input(8) })];
    },
  }),
];
