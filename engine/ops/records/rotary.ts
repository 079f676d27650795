// rotary: pairs of a head's elements turned by an angle that depends on the row's position, taken from
// tables of cosines and sines. Pairs are neighbours (`interleaved`) or lie half a head apart; elements
// beyond the width of the tables stay.
//
// Su et al. 2021, "RoFormer", section 3.2.2.

import { flag, integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { mul, product } from "../../graph/dim/mod.ts";
import { FLOATS, numbersOf } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { heads, type Layout } from "../attention_rows.ts";
import { checkInputCount, optionalInput, refuseMisfit, requireInput } from "../shape_rules.ts";

/**
 * (x [B, heads, S, D] or [B, S, heads · D], cos, sin, positions i32|i64[B, S] or [1]?) → like x.
 *
 * With positions the tables are [positions, D' / 2], where one position is that of row 0; without, they
 * are [B, S, D' / 2].
 */
export const rotary: OpRecord = defineOp({
  name: "rotary",
  summary: "pairs of a head's elements turned by tables of angles",
  attributes: { heads: integer(1), interleaved: flag(false) },
  infer(inputs, attributes) {
    checkInputCount(inputs, 4);
    const x = requireInput(inputs, 0, "x", { dtype: FLOATS, minRank: 3 });
    const cos = requireInput(inputs, 1, "cos", { dtype: FLOATS, minRank: 2 });
    const sin = requireInput(inputs, 2, "sin", { dtype: FLOATS, minRank: 2 });
    const positions = optionalInput(inputs, 3, "positions", { dtype: ["i32", "i64"] });
    if (x.shape.length > 4) throw new RangeError("x must have 3 or 4 dims");
    refuseMisfit(product(sin.shape), [product(cos.shape)], "the size of sin");
    const { batch, rows } = heads(x.shape, attributes.heads);
    if (positions) {
      refuseMisfit(product(positions.shape), [1, mul(batch, rows)], "the number of positions");
    }
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x, cos, sin, positions], outputs: [out], attributes }) {
    const layout = heads(x!.shape, attributes.heads) as Layout<number>;
    const { batch, rows, width, joined } = layout;
    const cosines = numbersOf(cos!), sines = numbersOf(sin!);
    const half = cos!.shape.at(-1)!, table = cosines.length / half;
    if (2 * half > width) throw new RangeError(`tables of ${half} angles: a head has ${width / 2}`);
    function turnRow(b: number, row: number, head: number): void {
      const at = joined
        ? ((b * rows + row) * attributes.heads + head) * width
        : ((b * attributes.heads + head) * rows + row) * width;
      const first = !positions || positions.data.length > 1 ? 0 : row;
      const entry = positions
        ? first + getElement(positions, positions.data.length === 1 ? 0 : b * rows + row)
        : (b * rows + row) % table;
      if (entry < 0 || entry >= table) {
        throw new RangeError(`Cannot turn by position ${entry}: the tables hold ${table}`);
      }
      for (let i = 0; i < half; i++) {
        const a = attributes.interleaved ? 2 * i : i;
        const b2 = attributes.interleaved ? 2 * i + 1 : i + half;
        const c = cosines[entry * half + i]!, s = sines[entry * half + i]!;
        const left = getElement(x!, at + a), right = getElement(x!, at + b2);
        setElement(out!, at + a, left * c - right * s);
        setElement(out!, at + b2, left * s + right * c);
      }
      for (let i = 2 * half; i < width; i++) setElement(out!, at + i, getElement(x!, at + i));
    }
    for (let b = 0; b < batch; b++) {
      for (let row = 0; row < rows; row++) {
        for (let head = 0; head < attributes.heads; head++) turnRow(b, row, head);
      }
    }
  },
  cases: (random) =>
    [false, true].flatMap((interleaved) =>
      [[2, 3, 5, 16], [2, 5, 48], [1, 3, 4, 20]].map((shape) => ({
        name: `[${shape}]${interleaved ? ", interleaved" : ""}`,
        inputs: [random.input(shape), random.input([9, 8]), random.input([9, 8]), {
          role: "input" as const,
          dtype: "i32" as const,
          shape: [shape[0]!, shape.length === 4 ? shape[2]! : shape[1]!],
          data: Int32Array.from(
            { length: shape[0]! * (shape.length === 4 ? shape[2]! : shape[1]!) },
            () => random.integer(0, 8),
          ),
        }],
        attributes: { heads: 3, interleaved },
      }))
    ),
});
