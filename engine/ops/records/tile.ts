// tile: a tensor repeated as a whole along each dim.

import { dims } from "../attributes.ts";
import { requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { type Dim, mul } from "../../graph/dim/mod.ts";
import type { Node } from "../../graph/graph.ts";
import { stridesOf } from "../host_numbers.ts";
import type { Moves } from "../moves.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { copyStrided } from "../strided.ts";
import { denseStrides } from "../strided_loop.ts";

/** (x T[d…]) → T[d · repeats]. */
export const tile: OpRecord = defineOp({
  name: "tile",
  summary: "a tensor repeated along each dim",
  attributes: { repeats: dims() },
  movedInputs: [0],
  moves: tileMoves,
  infer(inputs, { repeats }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    if (repeats.length !== x.shape.length) {
      throw new RangeError(`there are ${repeats.length} repeats for ${x.shape.length} dims`);
    }
    return [{ dtype: x.dtype, shape: x.shape.map((dim, i) => mul(dim, repeats[i]!)) }];
  },
  reference({ inputs: [x], outputs: [out] }) {
    if (out!.data.length === 0) return;
    // Each dim is walked as [repeat, index within x]; a repeat does not move in x.
    const shape = x!.shape.flatMap((size, i) => [out!.shape[i]! / size, size]);
    const strides = stridesOf(x!.shape).flatMap((stride) => [0, stride]);
    copyStrided({ ...out!, shape }, { source: x!, strides });
  },
  cases: (random) =>
    [[1, 1], [2, 1], [1, 3], [2, 3], [0, 2]].map((repeats) => ({
      inputs: [random.input([3, 5])],
      attributes: { repeats },
    })),
  tolerance: { ofLargest: 0, reason: "a copy" },
});

// Each dim is walked as [repeat, index within x], on both sides.
function tileMoves({ inputs: [x], outputs: [y], attributes }: Node): Moves {
  const repeats = attributes.repeats as Dim[];
  const sizes = x!.shape.flatMap((size, axis) => [repeats[axis]!, size]);
  const from = denseStrides(x!.shape).flatMap((stride) => [0, stride]);
  const to = denseStrides(y!.shape).flatMap((stride, axis) => [
    mul(stride, x!.shape[axis]!),
    stride,
  ]);
  return {
    moves: [{ input: 0, sizes, from: { start: 0, strides: from }, to: { start: 0, strides: to } }],
  };
}
