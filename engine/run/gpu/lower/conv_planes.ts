// Convolutions over planes whose sizes are known, up-sampled in front or not.

import { repeatedShape } from "../../../ops/records/conv.ts";
import type { Node } from "../../../graph/graph.ts";
import { type Convolution, convolutionOver, hasBranch } from "../../wasm/lower/conv.ts";
import { isStatic } from "../../wasm/lower/lower.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";

/** Sizes of such a convolution. */
export interface KnownPlanes {
  readonly conv: Convolution;
  readonly images: number;
  /** Elements of x along each side of the plane that is seen, for one of x's. */
  readonly repeats: readonly [number, number];
  /** Of x as it is seen, and of y. */
  readonly source: readonly [height: number, width: number];
  readonly result: readonly [height: number, width: number];
}

/** Of a node of float32 over planes of known sizes; else undefined. */
export function planesOfConv(node: Node): KnownPlanes | undefined {
  const { inputs: [x, w], outputs: [y] } = node;
  if (hasBranch(node) || !areFloat32([x, w]) || x!.shape.length !== 4) return undefined;
  const [rows = 1, columns = 1] = node.attributes.repeats as readonly number[];
  const repeats = [rows, columns] as const, seen = repeatedShape(x!.shape, repeats);
  const conv = convolutionOver(node, seen.slice(2));
  if (!conv || ![...x!.shape, ...y!.shape].every(isStatic)) return undefined;
  const [images, , ...source] = seen as [number, number, number, number];
  return { conv, images, repeats, source, result: y!.shape.slice(2) as [number, number] };
}
