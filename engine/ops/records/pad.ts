// pad: a tensor with a margin on every side. A negative margin cuts off.

import { choice, dims } from "../attributes.ts";
import { requireSameType, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { add, type Dim, evaluate, max, mul, sub } from "../../graph/dim/mod.ts";
import type { Node } from "../../graph/graph.ts";
import { stridesOf } from "../host_numbers.ts";
import { type Moves, startOf } from "../moves.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount } from "../shape_rules.ts";
import { elementsOf, walk } from "../strided.ts";
import { denseStrides } from "../strided_loop.ts";

/** What a margin is filled with: a value, or the tensor mirrored, its border, or the tensor again. */
const MODES = ["constant", "reflect", "edge", "wrap"] as const;

/** (x T[d…], value T[]?) → T[before + d + after]; without a value a constant margin is 0. */
export const pad: OpRecord = defineOp({
  name: "pad",
  summary: "a margin on every side",
  attributes: { before: dims(), after: dims(), mode: choice(MODES, "constant") },
  movedInputs: [0, 1],
  moves: padMoves,
  infer(inputs, { before, after }) {
    checkInputCount(inputs, 2);
    const x = requireTyped(inputs, { index: 0, name: "x" });
    if (inputs[1]) requireSameType(x, { b: inputs[1], what: "x and value" });
    if (before.length !== x.shape.length || after.length !== x.shape.length) {
      throw new RangeError("before and after must have one entry a dim of x");
    }
    return [{
      dtype: x.dtype,
      shape: x.shape.map((dim, i) => add(add(before[i]!, dim), after[i]!)),
    }];
  },
  reference({ inputs: [x, value], outputs: [out], attributes, env }) {
    const before = attributes.before.map((margin) => evaluate(margin, env));
    const strides = stridesOf(x!.shape);
    const from = elementsOf(x!), to = elementsOf(out!);
    const margin = value ? elementsOf(value)[0] : undefined;
    // Offset in x of each index of the result along each dim; NaN in a constant margin.
    const offsets = out!.shape.map((size, axis) =>
      Float64Array.from({ length: size }, (_, i) => {
        return sourceAt(i - before[axis]!, x!.shape[axis]!, attributes.mode) * strides[axis]!;
      })
    );
    const ownStrides = stridesOf(out!.shape);
    walk(out!.shape, {
      strides: [],
      visit: (index) => {
        let at = 0;
        for (let axis = 0; axis < offsets.length; axis++) {
          at += offsets[axis]![Math.floor(index / ownStrides[axis]!) % out!.shape[axis]!]!;
        }
        if (!Number.isNaN(at)) to[index] = from[at];
        else if (margin !== undefined) to[index] = margin;
      },
    });
  },
  cases: (random) =>
    MODES.flatMap((mode) => [
      { inputs: [random.input([3, 5])], attributes: { before: [1, 2], after: [2, 0], mode } },
      {
        inputs: [random.input([4, 5]), mode === "constant" ? random.input([]) : undefined],
        attributes: { before: [-1, 1], after: [0, -2], mode },
      },
      {
        inputs: [random.input([2, 1, 3, 2, 2, 3])],
        attributes: { before: [0, 0, 5, 0, 0, 7], after: [0, 0, 4, 0, 0, 2], mode },
      },
    ]),
  tolerance: { ofLargest: 0, reason: "a copy" },
});

/** Index in a dim of `size` elements that index `at`, which may be outside, is taken from. */
function sourceAt(at: number, size: number, mode: typeof MODES[number]): number {
  if (at >= 0 && at < size) return at;
  if (mode === "constant") return NaN;
  if (size === 0) throw new RangeError(`Cannot pad an empty dim by ${mode}: it has no elements`);
  if (mode === "edge") return at < 0 ? 0 : size - 1;
  if (mode === "wrap") return ((at % size) + size) % size;
  const period = 2 * size - 2;
  if (period === 0) return 0;
  const phase = ((at % period) + period) % period;
  return phase < size ? phase : period - phase;
}

// A constant margin: all of it, then what is left of x in the middle.
function padMoves({ inputs: [x, value], outputs: [y], attributes }: Node): Moves | undefined {
  if (attributes.mode !== "constant") return undefined;
  const before = attributes.before as Dim[], after = attributes.after as Dim[];
  const cut = (margin: Dim) => max(mul(margin, -1), 0);
  const from = denseStrides(x!.shape), to = denseStrides(y!.shape);
  const sizes = x!.shape.map((size, axis) =>
    max(sub(sub(size, cut(before[axis]!)), cut(after[axis]!)), 0)
  );
  return {
    fill: value ? { input: 1 } : {},
    moves: [{
      input: 0,
      sizes,
      from: { start: startOf(before.map(cut), from), strides: from },
      to: { start: startOf(before.map((margin) => max(margin, 0)), to), strides: to },
    }],
  };
}
