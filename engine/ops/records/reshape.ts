// reshape: the same elements under another shape. A view: the output is the input's memory, nothing
// runs. The target is given as dims, or as text, e.g. ["M", "9", "64"], whose symbols are the input's.

import type { AttributeRule } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import {
  type Dim,
  equal,
  formatDim,
  parseDim,
  product,
  symbolDim,
  symbolsOf,
} from "../../graph/dim/mod.ts";
import type { DataType } from "../../graph/graph.ts";
import { valueRule } from "../../record.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";

type Sizes = readonly (Dim | string)[];

const sizes: AttributeRule<Sizes & readonly string[]> = valueRule(
  "a list of sizes: dims, or their text",
  Array.isArray,
);

// q8 is left out: its bytes are laid out by rows.
const TYPES: readonly DataType[] = [
  ...["f32", "f16", "bf16", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"] as const,
  ...["bool", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1"] as const,
  ...["i4", "u4", "i2", "u2"] as const,
];

/** (x …[…]) → …[shape], equal number of elements. */
export const reshape: OpRecord = defineOp({
  name: "reshape",
  summary: "the same elements under another shape, without a copy",
  attributes: { shape: sizes },
  movedInputs: [0],
  infer(inputs, attributes) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: TYPES });
    const known: Record<string, Dim> = {};
    for (const dim of x.shape) {
      for (const [name, atom] of symbolsOf(dim)) known[name] = symbolDim(atom);
    }
    const shape = (attributes.shape as Sizes).map((size) =>
      typeof size === "string" ? parseDim(size, known) : size
    );
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
  inPlace: () => ({ 0: 0 }),
  view: true,
});
