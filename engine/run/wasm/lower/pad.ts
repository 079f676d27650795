// Lowering of margins that repeat the tensor; a constant margin is a fill and a move (ops/records/pad.ts).

import type { WasmKernel } from "../kernel.ts";
import { type Dim, equal, mul } from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import { movableBytes } from "./strided.ts";
import { emit, inputAddress, outputAddress } from "./lower.ts";

/** Modes in the order of their numbers in wasm/assembly/tensor/pad.ts. */
const MODES: readonly unknown[] = ["reflect", "edge", "wrap"];
const RANK = 5;

interface Axis {
  readonly size: Dim;
  readonly before: Dim;
  readonly out: Dim;
}

/** Axes of a node, at least one; neighbours without margins are one. */
export function padAxes({ inputs: [x], outputs: [y], attributes }: Node): Axis[] {
  const before = attributes.before as readonly Dim[], after = attributes.after as readonly Dim[];
  const axes: Axis[] = [];
  let mayJoin = false;
  x!.shape.forEach((size, i) => {
    const isPlain = equal(before[i]!, 0) && equal(after[i]!, 0);
    const axis = { size, before: before[i]!, out: y!.shape[i]! };
    const last = axes.at(-1);
    if (mayJoin && isPlain) {
      axes[axes.length - 1] = { size: mul(last!.size, size), before: 0, out: mul(last!.out, size) };
    } else axes.push(axis);
    mayJoin = isPlain;
  });
  return axes.length > 0 ? axes : [{ size: 1, before: 0, out: 1 }];
}

/** Margins that are mirrored, the border, or the tensor again. */
export const padKernel: WasmKernel = {
  name: "pad",
  when({ node }) {
    const [x] = node.inputs;
    // An empty dim has nothing to repeat: the reference says so.
    return MODES.includes(node.attributes.mode) && movableBytes(x!) !== undefined &&
      x!.shape.every((size) => size !== 0) && padAxes(node).length <= RANK;
  },
  lower(lowering) {
    const { node } = lowering, axes = padAxes(node);
    const filled = [
      ...Array<Axis>(RANK - axes.length).fill({ size: 1, before: 0, out: 1 }),
      ...axes,
    ];
    const [a, b, c, d, e] = filled as [Axis, Axis, Axis, Axis, Axis];
    emit(lowering, {
      name: "pad",
      operands: {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        bytes: movableBytes(node.inputs[0]!)!,
        mode: MODES.indexOf(node.attributes.mode),
        ...{ n0: a.size, n1: b.size, n2: c.size, n3: d.size, n4: e.size },
        ...{ before0: a.before, before1: b.before, before2: c.before, before3: d.before },
        before4: e.before,
        ...{ out0: a.out, out1: b.out, out2: c.out, out3: d.out, out4: e.out },
      },
    });
  },
};
