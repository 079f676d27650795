// reshape: the same elements under another shape. A view: the output is the input's memory, nothing
// runs. The target is given as text, e.g. ["M", "9", "64"]; its symbols are those of the input.

import { strings } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { type Dim, equal, formatDim, parseDim, product, symbolDim, symbolsOf } from "../dim.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

/** (x …[…]) → …[shape], equal number of elements. */
export const reshape: OpRecord = defineOp({
  name: "reshape",
  summary: "the same elements under another shape, without a copy",
  attributes: { shape: strings() },
  infer(inputs, attributes) {
    checkInputCount(inputs, 1);
    // q8 is left out: its bytes are laid out by rows.
    const x = requireInput(inputs, 0, "x", { dtype: ["f32", "f16", "i32"] });
    const known: Record<string, Dim> = {};
    for (const dim of x.shape) {
      for (const [name, atom] of symbolsOf(dim)) known[name] = symbolDim(atom);
    }
    const shape = attributes.shape.map((text) => parseDim(text, known));
    for (const name of shape.flatMap((dim) => [...symbolsOf(dim).keys()])) {
      if (!Object.hasOwn(known, name)) throw new RangeError(`x has no dim named "${name}"`);
    }
    const before = product(x.shape), after = product(shape);
    if (!equal(before, after)) {
      throw new RangeError(
        `cannot view ${formatDim(before)} elements as ${formatDim(after)}`,
      );
    }
    return [{ dtype: x.dtype, shape }];
  },
  reference() {},
  inPlace: { 0: 0 },
  view: true,
  kernels: { wasm: [], gpu: [] },
});
