// expand: a tensor repeated along dims of size 1, or along new ones in front, up to a shape.

import { dims } from "../attributes.ts";
import { requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { equal, formatDim } from "../../graph/dim/mod.ts";
import type { Node } from "../../graph/graph.ts";
import { type Moves, readMoves } from "../moves.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { broadcastStrides, copyStrided } from "../strided.ts";
import { repeatingStrides } from "../strided_loop.ts";

/** (x T[…]) → T[shape]; a dim of x is 1 or that of the shape. */
export const expand: OpRecord = defineOp({
  name: "expand",
  summary: "dims of size 1 repeated up to a shape",
  attributes: { shape: dims() },
  movedInputs: [0],
  moves: expandMoves,
  infer(inputs, attributes) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const shape = [...attributes.shape];
    const lead = shape.length - x.shape.length;
    const fits = lead >= 0 &&
      x.shape.every((dim, i) => equal(dim, 1) || equal(dim, shape[lead + i]!));
    if (!fits) throw new RangeError(`cannot expand x to [${shape.map(formatDim).join(", ")}]`);
    return [{ dtype: x.dtype, shape }];
  },
  reference({ inputs: [x], outputs: [out] }) {
    copyStrided(out!, { source: x!, strides: broadcastStrides(x!.shape, out!.shape) });
  },
  cases: (random) =>
    [[[1], [4, 5]], [[5], [4, 5]], [[4, 1], [4, 5]], [[], [3]], [[2, 1, 7], [2, 3, 7]]].map(
      ([from, to]) => ({ inputs: [random.input(from!)], attributes: { shape: to! } }),
    ),
  tolerance: { ofLargest: 0, reason: "a copy" },
});

function expandMoves(node: Node): Moves {
  return readMoves(node, {
    strides: repeatingStrides(node.inputs[0]!.shape, node.outputs[0]!.shape),
  });
}
