// transpose: the dims in another order.

import { integers } from "../attributes.ts";
import { requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { Node } from "../../graph/graph.ts";
import { stridesOf } from "../host_numbers.ts";
import { type Moves, readMoves } from "../moves.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { copyStrided } from "../strided.ts";
import { denseStrides } from "../strided_loop.ts";

/** (x T[…]) → T[…]: dim `d` of the result is dim `perm[d]` of x. */
export const transpose: OpRecord = defineOp({
  name: "transpose",
  summary: "dims in another order",
  attributes: { perm: integers() },
  movedInputs: [0],
  moves: transposeMoves,
  infer(inputs, { perm }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    const sorted = perm.toSorted((a, b) => a - b);
    if (perm.length !== x.shape.length || sorted.some((axis, i) => axis !== i)) {
      throw new RangeError(`perm [${perm}] must name each of the ${x.shape.length} dims once`);
    }
    return [{ dtype: x.dtype, shape: perm.map((axis) => x.shape[axis]!) }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { perm } }) {
    const strides = stridesOf(x!.shape);
    copyStrided(out!, { source: x!, strides: perm.map((axis) => strides[axis]!) });
  },
  cases: (random) =>
    [[0], [1, 0], [0, 2, 1], [2, 1, 0], [1, 0, 2], [0, 2, 1, 3], [3, 1, 0, 2], [0, 2, 3, 1]].map(
      (perm) => ({
        inputs: [random.input([5, 7, 3, 4].slice(0, perm.length))],
        attributes: { perm },
      }),
    ),
  tolerance: { ofLargest: 0, reason: "a copy" },
});

function transposeMoves(node: Node): Moves {
  const strides = denseStrides(node.inputs[0]!.shape);
  return readMoves(node, {
    strides: (node.attributes.perm as number[]).map((axis) => strides[axis]!),
  });
}
