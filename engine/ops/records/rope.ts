// rope: rotates pairs of channels of every head by the angles of a rope_table. `half` pairs channel i
// with i + d/2 (Hugging Face order), `interleaved` pairs 2i with 2i + 1 (Llama and GPT-J order).
// Channels from d on pass through (partial rotary).

import { choice } from "../attributes.ts";
import { CASE_ROWS, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { compare } from "../../graph/dim/mod.ts";
import { getElement, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { rowsOfHeads } from "../row_cut.ts";
import { checkInputCount, lastDim, requireEqual, requireInput } from "../shape_rules.ts";

/** (x f32[M, H, D], table f32[M, d]) → f32[M, H, D], d ≤ D. */
export const rope: OpRecord = defineOp({
  name: "rope",
  summary: "rotates pairs of channels by the angles of a rope_table",
  attributes: { style: choice(["half", "interleaved"]) },
  infer(inputs) {
    checkInputCount(inputs, 2);
    const x = requireInput(inputs, 0, "x", { rank: 3 });
    const table = requireInput(inputs, 1, "table", { rank: 2 });
    requireEqual(x.shape[0]!, table.shape[0]!, "the rows of x and of the table");
    if (![">", ">=", "=="].includes(compare(lastDim(x), lastDim(table)))) {
      throw new RangeError("the table must not be wider than a head");
    }
    return [{ dtype: "f32", shape: x.shape }];
  },
  rowwise: ({ inputs: [x] }) => rowsOfHeads(x!, [0]),
  reference({ inputs: [x, table], outputs: [out], attributes: { style } }) {
    rotateHeads(x!, table!, out!, style);
  },
  cases: (random) =>
    (["half", "interleaved"] as const).flatMap((style) =>
      [[2, 2], [8, 8], [10, 10], [16, 6], [64, 64], [20, 16]].flatMap(([width, rotated]) =>
        CASE_ROWS.map((rows) => ({
          name: `${style}, ${rotated} of ${width} channels, ${rows} rows`,
          inputs: [
            random.input([ROWS, 3, width!], { M: rows }),
            random.input([ROWS, rotated!], { M: rows }),
          ],
          attributes: { style },
          bindings: { M: rows },
        }))
      )
    ),
});

/** The definition, for the fused form too; `x` and `out` may be one tensor. */
export function rotateHeads(
  x: HostTensor,
  table: HostTensor,
  out: HostTensor,
  style: "half" | "interleaved",
): void {
  const [rows, heads, width] = x.shape as [number, number, number];
  const rotated = table.shape[1]!, half = rotated / 2;
  for (let head = 0; head < rows * heads; head++) {
    const angles = Math.floor(head / heads) * rotated;
    const at = head * width;
    for (let i = 0; i < half; i++) {
      const first = at + (style === "half" ? i : 2 * i);
      const second = style === "half" ? first + half : first + 1;
      const cos = getElement(table, angles + i), sin = getElement(table, angles + half + i);
      const a = getElement(x, first), b = getElement(x, second);
      setElement(out, first, a * cos - b * sin);
      setElement(out, second, b * cos + a * sin);
    }
    for (let i = rotated; i < width; i++) setElement(out, at + i, getElement(x, at + i));
  }
}
