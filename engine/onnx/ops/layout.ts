// Ops that put dims in another order.

import { type Dim, exactDiv, formatDim, mul } from "../../graph/dim/mod.ts";
import { int, ints, required, text } from "../derivation/attributes.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";

/** Dims in the order `perm`; a view where only dims of size 1 move. */
export function permuted(
  call: OnnxCall<unknown>,
  { x, perm }: { readonly x: Tensor; readonly perm: readonly number[] },
): Tensor {
  const { shape } = x.type;
  const moving = perm.filter((axis) => shape[axis] !== 1);
  const keepsOrder = perm.length === shape.length &&
    moving.every((axis, i) => i === 0 || axis > moving[i - 1]!);
  if (!keepsOrder) return call.one("transpose", [x], { perm });
  const isSame = perm.every((axis, i) => axis === i);
  return isSame ? x : call.one("reshape", [x], { shape: perm.map((axis) => shape[axis]!) });
}

/** Dims split in blocks, put in another order, and joined again. */
function regroup(
  call: OnnxCall<unknown>,
  { split, perm, joined }: {
    readonly split: readonly Dim[];
    readonly perm: readonly number[];
    readonly joined: readonly Dim[];
  },
): Tensor[] {
  const blocks = call.one("reshape", [call.input(0)], { shape: split });
  return call.op("reshape", [permuted(call, { x: blocks, perm })], { shape: joined });
}

function imageShape(call: OnnxCall<unknown>): [Dim, Dim, Dim, Dim] {
  const { shape } = call.input(0).type;
  if (shape.length !== 4) throw new RangeError(`the input has ${shape.length} dims: must have 4`);
  return shape as unknown as [Dim, Dim, Dim, Dim];
}

function divided(dim: Dim, by: number): Dim {
  const quotient = exactDiv(dim, by);
  if (quotient !== undefined) return quotient;
  throw new RangeError(`${formatDim(dim)} must be a multiple of ${by}`);
}

/** Ops that reorder dims. */
export const layoutOps: readonly OnnxOp[] = [
  onnxOp("DepthToSpace", {
    versions: [1, 11],
    attributes: {
      blocksize: required(int()),
      mode: text("DCR", { choices: ["DCR", "CRD"], range: { since: 11 } }),
    },
    build(call) {
      const [batch, channels, height, width] = imageShape(call);
      const { blocksize: block, mode } = call.attributes;
      const depth = divided(channels, block * block);
      const joined = [batch, depth, mul(height, block), mul(width, block)];
      return mode === "DCR"
        ? regroup(call, {
          split: [batch, block, block, depth, height, width],
          perm: [0, 3, 4, 1, 5, 2],
          joined,
        })
        : regroup(call, {
          split: [batch, depth, block, block, height, width],
          perm: [0, 1, 4, 2, 5, 3],
          joined,
        });
    },
  }),
  onnxOp("SpaceToDepth", {
    versions: [1],
    attributes: { blocksize: required(int()) },
    build(call) {
      const [batch, channels, height, width] = imageShape(call);
      const { blocksize: block } = call.attributes;
      const rows = divided(height, block), columns = divided(width, block);
      const split = [batch, channels, rows, block, columns, block];
      const joined = [batch, mul(channels, block * block), rows, columns];
      return regroup(call, { split, perm: [0, 3, 5, 1, 2, 4], joined });
    },
  }),
  onnxOp("Transpose", {
    versions: [1],
    moves: true,
    attributes: { perm: ints() },
    build(call) {
      const x = call.input(0);
      const reversed = x.type.shape.map((_, axis) => axis).reverse();
      return [permuted(call, { x, perm: call.attributes.perm ?? reversed })];
    },
  }),
];
