// slice: a box of a tensor, with a step along each dim. Starts and sizes are dims, already counted from the front and within the tensor: whoever builds the node clamps, because only there the
// bounds of symbols are known.

import { dims, integers } from "../attributes.ts";
import { requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { type Dim, evaluate, mul } from "../../graph/dim/mod.ts";
import type { Node } from "../../graph/graph.ts";
import { stridesOf } from "../host_numbers.ts";
import { type Moves, readMoves, startOf } from "../moves.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { copyStrided } from "../strided.ts";
import { denseStrides } from "../strided_loop.ts";

/** (x T[…]) → T[sizes]: element `i` along a dim is element `start + i * step` of x. */
export const slice: OpRecord = defineOp({
  name: "slice",
  summary: "a box of a tensor, with a step along each dim",
  attributes: { starts: dims(), sizes: dims(), steps: integers() },
  movedInputs: [0],
  moves: sliceMoves,
  infer(inputs, { starts, sizes, steps }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    if ([starts, sizes, steps].some(({ length }) => length !== x.shape.length)) {
      throw new RangeError(`starts, sizes and steps must have one entry a dim of x`);
    }
    if (steps.includes(0)) throw new RangeError("a step is 0: must not be");
    x.shape.forEach((dim, axis) => {
      const [start, size] = [starts[axis]!, sizes[axis]!];
      if (typeof start !== "number" || typeof size !== "number" || typeof dim !== "number") return;
      checkWithin(start, size, { axis, dim, step: steps[axis]! });
    });
    return [{ dtype: x.dtype, shape: [...sizes] }];
  },
  reference({ inputs: [x], outputs: [out], attributes, env }) {
    const starts = attributes.starts.map((start) => evaluate(start, env));
    const strides = stridesOf(x!.shape);
    out!.shape.forEach((size, axis) => {
      const step = attributes.steps[axis]!;
      checkWithin(starts[axis]!, size, { axis, dim: x!.shape[axis]!, step });
    });
    const start = starts.reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
    copyStrided(out!, {
      source: x!,
      strides: strides.map((stride, axis) => stride * attributes.steps[axis]!),
      start,
    });
  },
  cases: (random) =>
    [
      { starts: [0, 0, 0], sizes: [3, 5, 8], steps: [1, 1, 1] },
      { starts: [1, 2, 3], sizes: [2, 3, 4], steps: [1, 1, 1] },
      { starts: [2, 4, 7], sizes: [3, 5, 8], steps: [-1, -1, -1] },
      { starts: [0, 1, 0], sizes: [2, 2, 3], steps: [2, 2, 3] },
      { starts: [0, 0, 0], sizes: [0, 5, 8], steps: [1, 1, 1] },
      { starts: [0, 4, 1], sizes: [3, 1, 7], steps: [1, 1, 1] },
    ].map((attributes) => ({ inputs: [random.input([3, 5, 8])], attributes })),
  tolerance: { ofLargest: 0, reason: "a copy" },
});

function checkWithin(
  first: number,
  size: number,
  { axis, dim, step }: { readonly axis: number; readonly dim: number; readonly step: number },
): void {
  const last = first + (size - 1) * step;
  if (size === 0 || Math.min(first, last) >= 0 && Math.max(first, last) < dim) return;
  throw new RangeError(`Cannot slice ${first}..${last} of dim ${axis}: it has ${dim} elements`);
}

function sliceMoves(node: Node): Moves {
  const starts = node.attributes.starts as Dim[], steps = node.attributes.steps as number[];
  const strides = denseStrides(node.inputs[0]!.shape);
  const stepped = strides.map((stride, axis) => mul(stride, steps[axis]!));
  return readMoves(node, { strides: stepped, start: startOf(starts, strides) });
}
