// concat: tensors one behind the other along an axis.

import { integer } from "../attributes.ts";
import { requireSameType, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { add, type Dim, mul } from "../../graph/dim/mod.ts";
import type { Node } from "../../graph/graph.ts";
import { axisOf } from "../host_numbers.ts";
import type { Moves } from "../moves.ts";
import type { OpRecord } from "../op.ts";
import { requireEqual } from "../shape_rules.ts";
import { aroundAxis } from "../strided.ts";
import { denseStrides } from "../strided_loop.ts";

/** (T[…, A, …], T[…, B, …], …) → T[…, A + B + …, …]. */
export const concat: OpRecord = defineOp({
  name: "concat",
  summary: "tensors one behind the other along an axis",
  attributes: { axis: integer(-(2 ** 31)) },
  movedInputs: "all",
  moves: concatMoves,
  infer(inputs, attributes) {
    const first = requireTyped(inputs, { index: 0, name: "first" });
    const rank = first.shape.length, axis = axisOf(attributes.axis, rank);
    const shape = [...first.shape];
    for (let i = 1; i < inputs.length; i++) {
      const next = requireTyped(inputs, { index: i, name: `part ${i}` });
      requireSameType(first, { b: next, what: "all inputs" });
      if (next.shape.length !== rank) {
        throw new RangeError(`input ${i} has ${next.shape.length} dims, the first has ${rank}`);
      }
      next.shape.forEach((dim, at) => {
        if (at === axis) shape[at] = add(shape[at]!, dim);
        else requireEqual(dim, { b: shape[at]!, what: `dim ${at} of all inputs` });
      });
    }
    return [{ dtype: first.dtype, shape }];
  },
  reference({ inputs, outputs: [out], attributes }) {
    const axis = axisOf(attributes.axis, out!.shape.length);
    const { outer, size, inner } = aroundAxis(out!.shape, axis);
    const to = out!.data as Uint8Array;
    let at = 0;
    for (const input of inputs) {
      const from = input!.data as Uint8Array, run = input!.shape[axis]! * inner;
      for (let i = 0; i < outer; i++) {
        to.set(from.subarray(i * run, (i + 1) * run), i * size * inner + at);
      }
      at += run;
    }
  },
  cases: (random) =>
    [0, 1, 2, -1].map((axis) => ({
      inputs: [3, 1, 0, 5].map((size) => random.input([2, 4, 7].with(axis, size))),
      attributes: { axis },
    })),
  tolerance: { ofLargest: 0, reason: "a copy" },
});

function concatMoves({ inputs, outputs: [y], attributes }: Node): Moves {
  const axis = axisOf(attributes.axis as number, y!.shape.length);
  const strides = denseStrides(y!.shape);
  let at: Dim = 0;
  const moves = inputs.map((input, i) => {
    const { shape } = input!;
    const start = mul(at, strides[axis]!);
    at = add(at, shape[axis]!);
    const from = { start: 0, strides: denseStrides(shape) };
    return { input: i, sizes: shape, from, to: { start, strides } };
  });
  return { moves };
}
