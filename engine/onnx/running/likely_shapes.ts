// Sizes to derive a graph at before anybody runs it, so that what is not supported shows while it loads.

import type { OnnxDim, OnnxType, OnnxValueInfo } from "../file/model.ts";
import { parseDim, substitute } from "../../graph/dim/mod.ts";
import type { InputShapes } from "../derivation/symbols.ts";

/**
 * Shapes that a run may have; undefined where an input declares none. Names grow in the order of their
 * declaration, so that differences like sumN - N are sizes.
 */
export function likelyShapes(inputs: readonly OnnxValueInfo[]): InputShapes | undefined {
  const values: Record<string, number> = {};
  const shapes = new Map<string, readonly number[]>();
  for (const { name, type } of inputs) {
    if (type?.kind !== "tensor" || type.dtype === "string" || !type.shape) return undefined;
    for (const dim of type.shape) {
      if (typeof dim !== "string" || !/^[A-Za-z_]\w*$/.test(dim)) continue;
      values[dim] ??= 2 ** Math.min(20, Object.keys(values).length + 1);
    }
    shapes.set(name, []);
  }
  for (const { name, type } of inputs) {
    const { shape = [] } = type as Extract<OnnxType, { readonly kind: "tensor" }>;
    shapes.set(name, shape.map((dim) => likelySize(dim, values)));
  }
  return shapes;
}

function likelySize(dim: OnnxDim, values: Readonly<Record<string, number>>): number {
  if (typeof dim === "number") return dim;
  if (dim === undefined) return 2;
  if (Object.hasOwn(values, dim)) return values[dim]!;
  const size = substitute(parseDim(dim), values);
  return typeof size === "number" && size >= 0 ? size : 2;
}
