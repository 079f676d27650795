// Reshape: the sizes come from an input, whose contents are dims.

import { type Dim, equal, exactDiv, floorDiv, product } from "../../graph/dim/mod.ts";
import { int, ints } from "../derivation/attributes.ts";
import { defineOnnxOp, type OnnxOp } from "../derivation/op.ts";

/**
 * Reshape. 0 keeps a size unless `allowzero`; one -1 is what is left over. Up to version 4 the sizes are an
 * attribute.
 */
export const reshape: OnnxOp = defineOnnxOp({
  name: "Reshape",
  versions: [1, 5, 14],
  attributes: {
    allowzero: int(0, { since: 14 }),
    consumed_inputs: ints(undefined, { until: 1 }),
    shape: ints(undefined, { until: 1 }),
  },
  build(call) {
    const x = call.input(0);
    const given = call.version < 5 ? call.attributes.shape : call.dims(1);
    if (!given) throw new TypeError("the new shape is missing");
    const sizes = given.map((size, axis): Dim => {
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
