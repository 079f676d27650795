// Reshape: the sizes come from an input, whose contents are dims.

import { type Dim, equal, exactDiv, floorDiv, product } from "../../dim.ts";
import { int } from "../attributes.ts";
import { defineOnnxOp, type OnnxOp } from "../op.ts";

/** Reshape. 0 keeps a size unless `allowzero`; one -1 is what is left over. */
export const reshape: OnnxOp = defineOnnxOp({
  name: "Reshape",
  versions: [5, 13, 14, 19, 21, 23, 24, 25],
  attributes: { allowzero: int(0, { since: 14 }) },
  build(call) {
    const x = call.input(0);
    const sizes = call.dims(1).map((size, axis): Dim => {
      if (size !== 0 || call.attributes.allowzero) return size;
      const kept = x.type.shape[axis];
      if (kept === undefined) throw new RangeError(`size 0 at ${axis} keeps a dim that x lacks`);
      return kept;
    });
    return [call.one("reshape", [x], { shape: resolve(x.type.shape, sizes) })];
  },
});

function resolve(before: readonly Dim[], sizes: readonly Dim[]): Dim[] {
  const open = sizes.flatMap((size, axis) => equal(size, -1) ? [axis] : []);
  if (open.length === 0) return [...sizes];
  if (open.length > 1) throw new RangeError("more than one size is -1");
  const total = product(before), rest = product(sizes.filter((_, axis) => axis !== open[0]));
  if (equal(rest, 0)) throw new RangeError("a size of -1 cannot be found beside a size of 0");
  const found = exactDiv(total, rest) ?? floorDiv(total, rest);
  return sizes.map((size, axis) => axis === open[0] ? found : size);
}
