// bit_cast: the same bits read as another element type of the same size.

import { choice } from "../attributes.ts";
import { DATA_TYPES, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { DataType, Node } from "../../graph/graph.ts";
import { hostElementBytes } from "../host_tensor.ts";
import { type Moves, readMoves } from "../moves.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { denseStrides } from "../strided_loop.ts";

/** (x T[…]) → to[…]; both types must have the same number of bits. */
export const bitCast: OpRecord = defineOp({
  name: "bit_cast",
  summary: "the same bits as another element type",
  attributes: { to: choice(DATA_TYPES) },
  moves: copyMoves,
  infer(inputs, { to }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    if (bitsOf(x.dtype) !== bitsOf(to)) {
      throw new TypeError(`cannot read bits of ${x.dtype} as ${to}: they differ in size`);
    }
    return [{ dtype: to, shape: x.shape }];
  },
  reference({ inputs: [x], outputs: [out] }) {
    const { data: from, dtype } = x!, { data: to } = out!;
    const mask = bitsOf(dtype) < 8 ? (1 << bitsOf(dtype)) - 1 : 255;
    const source = new Uint8Array(from.buffer, from.byteOffset, from.byteLength);
    const target = new Uint8Array(to.buffer, to.byteOffset, to.byteLength);
    // Types of less than a byte keep their sign in the storage: extended again for the new type.
    const sign = ["i4", "i2"].includes(out!.dtype) ? (mask + 1) >> 1 : 0;
    for (let i = 0; i < source.length; i++) {
      const bits = source[i]! & mask;
      target[i] = bits & sign ? bits - (mask + 1) : bits;
    }
  },
  cases: (random) => [
    { name: "f32 to i32", inputs: [random.input([7])], attributes: { to: "i32" } },
    {
      name: "i32 to f32",
      inputs: [random.indices([0, 0x3f800000, 0x40490fdb])],
      attributes: { to: "f32" },
    },
    // Every pair of types of one size, there and back.
    ...BITS.flatMap(([from, to]) =>
      [[from, to], [to, from]].map(([from, to]) => ({
        inputs: [random.typed(from!, [0, 1])],
        attributes: { to: to! },
      }))
    ),
  ],
  tolerance: { ofLargest: 0, reason: "a copy" },
});

const BITS: readonly (readonly [DataType, DataType])[] = [
  ...[["f64", "i64"], ["u32", "f32"], ["f64", "u64"], ["f16", "i16"], ["bf16", "u16"]] as const,
  ...[["f8e4m3fn", "i8"], ["f8e4m3fnuz", "u8"], ["f8e5m2", "u8"], ["f8e5m2fnuz", "i8"]] as const,
  ...[["f8e8m0", "u8"], ["bool", "u8"], ["f4e2m1", "u4"], ["i4", "u4"], ["i2", "u2"]] as const,
];

function bitsOf(dtype: DataType): number {
  if (dtype === "i2" || dtype === "u2") return 2;
  if (dtype === "i4" || dtype === "u4" || dtype === "f4e2m1") return 4;
  return 8 * hostElementBytes(dtype);
}

// A copy, but of elements that are smaller than their storage.
function copyMoves(node: Node): Moves | undefined {
  const isWhole = [...node.inputs, ...node.outputs].every((value) => bitsOf(value!.dtype) >= 8);
  return isWhole ? readMoves(node, { strides: denseStrides(node.outputs[0]!.shape) }) : undefined;
}
