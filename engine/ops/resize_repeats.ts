// What `resize` nodes only do to planes: whether both dims alone change, and whether elements only stand several times, as where
// features are brought to the size of finer ones.

import { equal, mul } from "../graph/dim/mod.ts";
import type { Node } from "../graph/graph.ts";

type ResizeNode = Pick<Node, "inputs" | "outputs" | "attributes">;

/** Float32 planes that are resized, and nothing else. */
export function arePlanes({ inputs: [x], outputs: [y], attributes }: ResizeNode): boolean {
  const scales = attributes.scales as readonly number[];
  return x!.dtype === "f32" && x!.shape.length >= 2 &&
    attributes.coordinates !== "crop_and_resize" &&
    x!.shape.slice(0, -2).every((size, axis) => equal(size, y!.shape[axis]!)) &&
    scales.slice(0, -2).every((scale) => scale === 1);
}

/** How elements of an axis are told when each stands several times: coordinates, and roundings that find them. */
const REPEATING: Readonly<Record<string, (rounding: string) => boolean>> = {
  asymmetric: (rounding) => rounding === "floor",
  // A place in the middle of its element's is never half way between two.
  half_pixel: (rounding) => rounding.startsWith("round_"),
  half_pixel_symmetric: (rounding) => rounding.startsWith("round_"),
  pytorch_half_pixel: (rounding) => rounding.startsWith("round_"),
};

/** More is no up-sampling of a network, and would be looked for in vain. */
const MOST_REPEATS = 16;

/** How often each row and each column of the planes stands; undefined where that is not all that is done. */
export function repeatsOf(node: ResizeNode): readonly [number, number] | undefined {
  const { inputs: [x], outputs: [y], attributes } = node;
  const isRepeating = REPEATING[attributes.coordinates as string]?.(attributes.rounding as string);
  if (!isRepeating || attributes.mode !== "nearest" || !arePlanes(node)) return undefined;
  const scales = attributes.scales as readonly number[];
  const [rows, columns] = [-2, -1].map((axis) => {
    const from = x!.shape.at(axis)!, to = y!.shape.at(axis)!;
    const given = scales.at(axis);
    for (let times = 1; times <= MOST_REPEATS; times++) {
      if ((given ?? times) === times && equal(mul(from, times), to)) return times;
    }
  });
  return rows && columns ? [rows, columns] : undefined;
}
