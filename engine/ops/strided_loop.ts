// Loops with strides over symbolic sizes. Dims of size 1 go, and neighbours that every operand walks as one
// become one, so that most shapes fit the few dims of a kernel and inner runs are long.

import { type Dim, equal, mul } from "../graph/dim/mod.ts";
import type { Node } from "../graph/graph.ts";

/** A loop over dims, and for each operand its strides. */
export interface Loop {
  readonly sizes: readonly Dim[];
  /** By operand, in elements. */
  readonly strides: readonly (readonly Dim[])[];
}

/** Row-major strides of a shape, in elements. */
export function denseStrides(shape: readonly Dim[]): Dim[] {
  const strides: Dim[] = [];
  let stride: Dim = 1;
  for (const size of shape.toReversed()) {
    strides.unshift(stride);
    stride = mul(stride, size);
  }
  return strides;
}

/** Strides by which a shape is read under the shape `out`; dims that repeat have 0. */
export function repeatingStrides(shape: readonly Dim[], out: readonly Dim[]): Dim[] {
  const lead = out.length - shape.length;
  const strides = denseStrides(shape);
  return out.map((size, axis) => {
    const own = shape[axis - lead];
    return own === undefined || (equal(own, 1) && !equal(size, 1)) ? 0 : strides[axis - lead]!;
  });
}

/** The same loop with as few dims as possible. */
export function mergedLoop({ sizes, strides }: Loop): Loop {
  const merged: { size: Dim; steps: Dim[] }[] = [];
  sizes.forEach((size, axis) => {
    if (equal(size, 1)) return;
    const steps = strides.map((operand) => operand[axis]!);
    const last = merged.at(-1);
    const joins = last?.steps.every((step, i) => equal(step, mul(size, steps[i]!)));
    if (joins) merged[merged.length - 1] = { size: mul(last!.size, size), steps };
    else merged.push({ size, steps });
  });
  return {
    sizes: merged.map(({ size }) => size),
    strides: strides.map((_, i) => merged.map(({ steps }) => steps[i]!)),
  };
}

/** The loop over an output, with the strides of the inputs. */
export function broadcastLoop({ inputs, outputs: [y] }: Pick<Node, "inputs" | "outputs">): Loop {
  return mergedLoop({
    sizes: y!.shape,
    strides: inputs.map((input) => repeatingStrides(input!.shape, y!.shape)),
  });
}

/** Whether a loop walks an output and its inputs element by element. */
export function isFlat({ strides }: Loop): boolean {
  return strides.every((steps) => steps.length === 0 || steps.length === 1 && steps[0] === 1);
}
