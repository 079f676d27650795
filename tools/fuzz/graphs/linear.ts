// A linear layer as exporters write it: MatMul, and Add where it has a bias.

import { like } from "./block.ts";
import { fixedSize } from "./sizes.ts";
import type { Value, Writer } from "./writer.ts";

/** Columns of layers: whole vectors, and what is left of them. */
export const WIDTHS: readonly number[] = [1, 2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 33];

/** x · W, plus a bias now and then. */
export function linear(g: Writer, x: Value, columns: number, biased = g.chance(0.7)): Value {
  const inner = fixedSize(x.shape.at(-1)!)!;
  const size = 1 / Math.sqrt(Math.max(1, inner));
  const shape = [...x.shape.slice(0, -1), g.fixed(columns)];
  const weight = g.random(g.float, [inner, columns], -size, size);
  const made = { ...like(x, x.scale), shape };
  const product = g.one("MatMul", [x, weight], made);
  if (!biased) return product;
  const bias = g.random(g.float, g.chance(0.9) ? [columns] : [1], -1, 1);
  return g.one("Add", g.chance(0.7) ? [product, bias] : [bias, product], {
    ...made,
    scale: made.scale + 1,
  });
}
