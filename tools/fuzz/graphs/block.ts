// What the tables of blocks share. A block takes a value of the graph, adds a node or a pattern of several, and
// gives the result; undefined where nothing fits it.

import type { Attribute } from "../../../tests/support/write_onnx.ts";
import { mostElements, type Shape } from "./sizes.ts";
import { type Made, MOST_EXACT, type Value, type Writer } from "./writer.ts";

/** A way to go on. */
export type Block = (g: Writer) => Value | undefined;

/** Most elements of a value: graphs stay quick, tails of vectors and rows still come up. */
export const MOST_ELEMENTS = 6000;

/** Whether a value of that shape is small enough. */
export function fits(shape: Shape): boolean {
  return shape.length <= 6 && mostElements(shape) <= MOST_ELEMENTS;
}

/** A float value of some rank, and no larger than `most`; a new input where there is none. */
export function floats(
  g: Writer,
  { ranks: [low, high] = [1, 5], exact = false, most = 16 }: {
    readonly ranks?: readonly [number, number];
    readonly exact?: boolean;
    readonly most?: number;
  } = {},
): Value {
  const found = g.pick(({ type, shape, exact: is }) =>
    type === g.float && shape.length >= low && shape.length <= high && (is || !exact)
  );
  if (found && (!exact || found.scale <= most)) return tame(g, found, most);
  const shape = newShape(g, low + g.below(Math.min(high, Math.max(low, 3)) - low + 1));
  return g.input({ type: g.float, shape, scale: Math.min(4, most), exact: exact || g.chance(0.3) });
}

/** A random shape of a rank that is small enough. */
export function newShape(g: Writer, rank: number): Shape {
  for (let tries = 0; tries < 20; tries++) {
    const shape = Array.from({ length: rank }, () => g.size());
    if (fits(shape)) return shape;
  }
  return Array.from({ length: rank }, () => g.fixed(2));
}

/** A value scaled down to a magnitude, by a power of two. */
export function tame(g: Writer, x: Value, most: number): Value {
  if (x.scale <= most) return x;
  const factor = 2 ** -Math.ceil(Math.log2(x.scale / most));
  const made = { ...like(x), scale: x.scale * factor, exact: false };
  return g.one("Mul", [x, g.scalar(factor)], made);
}

/** A float of a value's type and shape, not exact. */
export function like({ type, shape }: Value, scale = 1): Made {
  return { type, shape, scale, exact: false };
}

/** A result of exact inputs: exact as long as it is small. */
export function exactly(made: Made, ...inputs: readonly Value[]): Made {
  return { ...made, exact: inputs.every(({ exact }) => exact) && made.scale <= MOST_EXACT };
}

/** Attributes that are there more often than not. */
export function some(
  g: Writer,
  attributes: Readonly<Record<string, Attribute>>,
): Record<string, Attribute> {
  return Object.fromEntries(Object.entries(attributes).filter(() => g.chance(0.75)));
}

/** An axis from the front, or the same from the back. */
export function spelled(g: Writer, axis: number, rank: number): number {
  return g.chance(0.5) ? axis : axis - rank;
}

/** Axes where a version takes an attribute, or an input of int64 from `since` on. */
export function withAxes(
  g: Writer,
  axes: readonly number[] | undefined,
  since: number,
): { readonly inputs: readonly Value[]; readonly attributes: Record<string, Attribute> } {
  if (!axes) return { inputs: [], attributes: {} };
  return g.opset >= since
    ? { inputs: [g.longs(...axes)], attributes: {} }
    : { inputs: [], attributes: { axes: { ints: axes } } };
}
