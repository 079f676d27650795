// Weights in blocks of packed codes as float32, for what no kernel reads as it lies.

import { type Dim, equal, mul } from "../../graph/dim/mod.ts";
import { hostArray, setElement } from "../../ops/host_tensor.ts";
import { applyBinary, castTo } from "./elementwise.ts";
import type { OnnxCall } from "./op.ts";
import type { Tensor } from "./tensor.ts";

type Building = Pick<OnnxCall, "one" | "scalar" | "constant">;

/** What MatMulNBits says of its weight. */
export interface NBitsSizes {
  readonly bits: number;
  /** Columns that share a scale. */
  readonly block: number;
  readonly rows: number;
  readonly columns: number;
}

/** Codes of N rows, with a scale for each block of a row. */
export interface BlockCodes {
  /** u8, as many codes in a byte as fit, lowest bits first. */
  readonly codes: Tensor;
  /** N · blocks. */
  readonly scales: Tensor;
  /** Packed like the codes, each row in whole bytes, or N · blocks floats; absent: the middle code. */
  readonly zeros?: Tensor | undefined;
  /** Which block's scale and zero point a column has (`g_idx`); absent: that of the block it lies in. */
  readonly groups?: Tensor | undefined;
}

/** The matrix [rows, columns] that blocks of codes stand for. */
export function unpackBlocks(
  call: Building,
  { sizes, from }: { readonly sizes: NBitsSizes; readonly from: BlockCodes },
): Tensor {
  const { bits, block, rows, columns } = sizes;
  const blocks = Math.ceil(columns / block);
  const all = call.one("unpack_bits", [from.codes], { bits: `${bits}` });
  const flat = call.one("reshape", [all], { shape: [rows, mul(blocks, block)] });
  const scales = call.one("reshape", [from.scales], { shape: [rows, blocks] });
  const steps = castTo(call, { x: scales, to: "f32" });
  const zero = zerosOf(call, sizes, from.zeros);
  if (!from.groups && zero.type.dtype === "u8") {
    const attributes = { to: "f32", axis: 1, block } as const;
    return fitted(call, {
      x: call.one("dequantize_linear", [flat, steps, zero], attributes),
      shape: [rows, columns],
    });
  }
  const groups = from.groups ?? ownBlocks(call, sizes);
  const byColumn = (x: Tensor) =>
    call.one("gather", [castTo(call, { x, to: "f32" }), groups], { axis: 1 });
  const codes = castTo(call, { x: fitted(call, { x: flat, shape: [rows, columns] }), to: "f32" });
  return applyBinary(call, {
    kind: "mul",
    a: applyBinary(call, { kind: "sub", a: codes, b: byColumn(zero) }),
    b: byColumn(steps),
  });
}

/** Zero points [rows, blocks], codes or floats. */
function zerosOf(
  call: Building,
  { bits, block, rows, columns }: NBitsSizes,
  zeros: Tensor | undefined,
): Tensor {
  const shape = [rows, Math.ceil(columns / block)];
  if (!zeros) return call.one("expand", [call.scalar("u8", 2 ** (bits - 1))], { shape });
  if (zeros.type.dtype !== "u8") return call.one("reshape", [zeros], { shape });
  const bytes = Math.ceil(shape[1]! * bits / 8);
  const packed = call.one("reshape", [zeros], { shape: [rows, bytes] });
  return fitted(call, { x: call.one("unpack_bits", [packed], { bits: `${bits}` }), shape });
}

/** The block that each column lies in. */
function ownBlocks(call: Building, { block, columns }: NBitsSizes): Tensor {
  const indices = {
    dtype: "i32",
    shape: [columns],
    data: hostArray("i32", { count: columns }),
  } as const;
  for (let i = 0; i < columns; i++) setElement(indices, { index: i, value: Math.floor(i / block) });
  return call.constant(indices);
}

/** The last dim cut to what a shape has: packed codes may end in the middle of a byte. */
export function fitted(
  call: Pick<OnnxCall, "one">,
  { x, shape }: { readonly x: Tensor; readonly shape: readonly Dim[] },
): Tensor {
  if (equal(x.type.shape.at(-1)!, shape.at(-1)!)) return x;
  return call.one("slice", [x], {
    starts: shape.map(() => 0),
    sizes: [...x.type.shape.slice(0, -1), shape.at(-1)!],
    steps: shape.map(() => 1),
  });
}
