// Ops on codes of com.microsoft. Sums of products of 8-bit codes are exact; sums of codes with scales
// of their own are formed of what they stand for.

import { type Dim, equal, mul } from "../../dim.ts";
import { axisOf } from "../../host_numbers.ts";
import { float, int } from "../attributes.ts";
import { applyBinary, castTo } from "../elementwise.ts";
import { defineOnnxOp, type OnnxCall, type OnnxOp } from "../op.ts";
import type { Tensor } from "../tensor.ts";
import { requantize } from "./requantize.ts";

const domain = "com.microsoft";

type Building = Pick<OnnxCall, "one" | "scalar">;

/** Numbers of codes with a scale, and a zero point if they have one. */
function numbersOfCodes(
  call: Building,
  codes: Tensor,
  scale: Tensor,
  zero: Tensor | undefined,
): Tensor {
  return call.one("dequantize_linear", [codes, scale, zero], { to: "f32" });
}

const qLinearAdd = defineOnnxOp({
  name: "QLinearAdd",
  domain,
  versions: [1],
  build: (call) => [onNumbers(call, "add")],
});

const qLinearMul = defineOnnxOp({
  name: "QLinearMul",
  domain,
  versions: [1],
  build: (call) => [onNumbers(call, "mul")],
});

function onNumbers(call: OnnxCall<unknown>, kind: "add" | "mul"): Tensor {
  const a = numbersOfCodes(call, call.input(0), call.input(1), call.inputs[2]);
  const b = numbersOfCodes(call, call.input(3), call.input(4), call.inputs[5]);
  const result = applyBinary(call, kind, a, b);
  const to = call.input(0).type.dtype;
  return call.one("quantize_linear", [result, call.input(6), call.inputs[7]], { to });
}

const qLinearGlobalAveragePool = defineOnnxOp({
  name: "QLinearGlobalAveragePool",
  domain,
  versions: [1],
  attributes: { channels_last: int(0) },
  build(call) {
    const x = call.input(0), rank = x.type.shape.length;
    const first = call.attributes.channels_last ? 1 : 2;
    const axes = Array.from({ length: rank - 2 }, (_, i) => first + i);
    const values = numbersOfCodes(call, x, call.input(1), call.input(2));
    const mean = call.one("reduce", [values], { kind: "mean", axes, keep: true });
    const to = x.type.dtype;
    return call.op("quantize_linear", [mean, call.input(3), call.input(4)], { to });
  },
});

const qGemm = defineOnnxOp({
  name: "QGemm",
  domain,
  versions: [1],
  attributes: { alpha: float(1), transA: int(0), transB: int(0) },
  build(call) {
    const { alpha, transA, transB } = call.attributes;
    const turned = (x: Tensor, turn: number) =>
      turn ? call.one("transpose", [x], { perm: [1, 0] }) : x;
    const a = turned(call.input(0), transA), b = turned(call.input(3), transB);
    let sums = call.one("matmul_integer", [a, b, call.inputs[2], call.inputs[5]]);
    const added = call.inputs[6];
    if (added) sums = applyBinary(call, "add", sums, added);
    let scale = applyBinary(call, "mul", call.input(1), call.input(4));
    if (alpha !== 1) scale = applyBinary(call, "mul", scale, call.scalar("f32", alpha));
    const step = call.inputs[7];
    if (!step) return [applyBinary(call, "mul", castTo(call, sums, "f32"), scale)];
    return [requantize(call, sums, scale, step, call.input(8))];
  },
});

/** a · b of codes as numbers: sums times both scales, plus a bias. */
export function integerProduct(
  call: Building,
  a: { readonly codes: Tensor; readonly scale: Tensor; readonly zero: Tensor | undefined },
  b: { readonly codes: Tensor; readonly scale: Tensor; readonly zero: Tensor | undefined },
  bias: Tensor | undefined,
): Tensor {
  const sums = call.one("matmul_integer", [a.codes, b.codes, a.zero, b.zero]);
  const scale = applyBinary(
    call,
    "mul",
    castTo(call, a.scale, "f32"),
    castTo(call, b.scale, "f32"),
  );
  const product = applyBinary(call, "mul", castTo(call, sums, "f32"), scale);
  return bias ? applyBinary(call, "add", product, bias) : product;
}

const matMulIntegerToFloat = defineOnnxOp({
  name: "MatMulIntegerToFloat",
  domain,
  versions: [1],
  build: (call) => [
    integerProduct(
      call,
      { codes: call.input(0), scale: call.input(2), zero: call.inputs[4] },
      { codes: call.input(1), scale: call.input(3), zero: call.inputs[5] },
      call.inputs[6],
    ),
  ],
});

const dynamicQuantizeMatMul = defineOnnxOp({
  name: "DynamicQuantizeMatMul",
  domain,
  versions: [1],
  build(call) {
    const [codes, scale, zero] = call.op("dynamic_quantize", [call.input(0)]) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const b = { codes: call.input(1), scale: call.input(2), zero: call.inputs[3] };
    return [integerProduct(call, { codes, scale, zero }, b, call.inputs[4])];
  },
});

const gatherBlockQuantized = defineOnnxOp({
  name: "GatherBlockQuantized",
  domain,
  versions: [1],
  attributes: { bits: int(4), block_size: int(128), gather_axis: int(0), quantize_axis: int(1) },
  build(call) {
    const { bits, block_size: block, gather_axis, quantize_axis } = call.attributes;
    const data = call.input(0), indices = call.input(1), scales = call.input(2);
    const rank = data.type.shape.length;
    const from = axisOf(gather_axis, rank), along = axisOf(quantize_axis, rank);
    const rows = (x: Tensor) => call.one("gather", [x, indices], { axis: from });
    const packed = data.type.dtype === "u8" && bits < 8;
    const unpacked = (x: Tensor) => packed ? call.one("unpack_bits", [x], { bits: `${bits}` }) : x;
    const codes = unpacked(rows(data)), steps = rows(scales);
    // Indices of any rank stand where the gathered axis stood.
    const axis = along > from ? along + indices.type.shape.length - 1 : along;
    const given = call.inputs[3] &&
      fitted(call, unpacked(rows(call.inputs[3])), steps.type.shape);
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
});

/** The last dim cut to what a shape has: packed zero points may end in the middle of a byte. */
function fitted(call: Building, x: Tensor, shape: readonly Dim[]): Tensor {
  if (equal(x.type.shape.at(-1)!, shape.at(-1)!)) return x;
  return call.one("slice", [x], {
    starts: shape.map(() => 0),
    sizes: [...x.type.shape.slice(0, -1), shape.at(-1)!],
    steps: shape.map(() => 1),
  });
}

/** (x · W of blocks of codes): the codes unpacked, scaled and cut to K columns. */
export function unpackBlocks(
  call: Building,
  { bits, block, rows, columns }: {
    readonly bits: number;
    readonly block: number;
    readonly rows: number;
    readonly columns: number;
  },
  codes: Tensor,
  scales: Tensor,
  zeros: Tensor | undefined,
): Tensor {
  const blocks = Math.ceil(columns / block);
  const all = call.one("unpack_bits", [codes], { bits: `${bits}` });
  const flat = call.one("reshape", [all], { shape: [rows, mul(blocks, block)] });
  const steps = call.one("reshape", [scales], { shape: [rows, blocks] });
  const centre = call.one("expand", [call.scalar("u8", 2 ** (bits - 1))], {
    shape: [rows, blocks],
  });
  const zero = zeros ? zeroPoints(call, zeros, bits, rows, blocks) : centre;
  const attributes = { to: "f32", axis: 1, block } as const;
  const f32 = castTo(call, steps, "f32");
  const numbers = call.one("dequantize_linear", [flat, f32, zero], attributes);
  return fitted(call, numbers, [rows, columns]);
}

function zeroPoints(
  call: Building,
  zeros: Tensor,
  bits: number,
  rows: number,
  blocks: number,
): Tensor {
  const bytes = Math.ceil(blocks * bits / 8);
  const packed = call.one("reshape", [zeros], { shape: [rows, bytes] });
  return fitted(call, call.one("unpack_bits", [packed], { bits: `${bits}` }), [rows, blocks]);
}

/** Ops on codes of com.microsoft. */
export const contribQuantizedOps: readonly OnnxOp[] = [
  dynamicQuantizeMatMul,
  gatherBlockQuantized,
  matMulIntegerToFloat,
  qGemm,
  qLinearAdd,
  qLinearGlobalAveragePool,
  qLinearMul,
];
