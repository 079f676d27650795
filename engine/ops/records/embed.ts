// embed: rows of a table by token id, with Gemma's scale as an option.

import { getFormat } from "../../../quant/mod.ts";
import { number } from "../attributes.ts";
import { OTHER_FORMATS, rowsOfBlocks, WEIGHT_FORMATS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, lastDim, requireInput } from "../shape_rules.ts";

/** (tokens i32[M], table [V, D]) → f32[M, D]; multiplied by float32 `scale` in float32. */
export const embed: OpRecord = defineOp({
  name: "embed",
  summary: "rows of a table by token id, times scale",
  attributes: { scale: number(1) },
  packedInput: 1,
  infer(inputs) {
    checkInputCount(inputs, 2);
    const tokens = requireInput(inputs, { index: 0, name: "tokens", dtype: "i32", rank: 1 });
    const table = requireInput(inputs, { index: 1, name: "table", rank: 2 });
    return [{ dtype: "f32", shape: [tokens.shape[0]!, lastDim(table)] }];
  },
  reference({ inputs: [tokens, table], outputs: [out], attributes }) {
    const [vocabulary, width] = table!.shape as [number, number];
    const scale = Math.fround(attributes.scale);
    for (let row = 0; row < tokens!.shape[0]!; row++) {
      const token = getElement(tokens!, row);
      if (token < 0 || token >= vocabulary) {
        throw new RangeError(`Cannot embed token ${token}: the vocabulary has ${vocabulary}`);
      }
      for (let i = 0; i < width; i++) {
        setElement(out!, {
          index: row * width + i,
          value: getElement(table!, token * width + i) * scale,
        });
      }
    }
  },
  cases(random) {
    const embedCase = (format: string, width: number, tokens: readonly number[]) => ({
      name: `${format}, tokens ${tokens.join(" ")}`,
      inputs: [random.indices(tokens), random.weight(format, [7, width])],
      attributes: { scale: tokens.length === 1 ? 25.298 : 1 },
    });
    const usual = WEIGHT_FORMATS.flatMap((format) => {
      const width = 2 * getFormat(format).blockSize + (getFormat(format).blockSize === 1 ? 35 : 0);
      return [[], [0], [6, 0, 3, 3, 5]].map((tokens) => embedCase(format, width, tokens));
    });
    const others = OTHER_FORMATS.map((name) => {
      const { format, columns } = rowsOfBlocks(name, 2);
      return embedCase(format, columns, [5, 2]);
    });
    return [...usual, ...others];
  },
  tolerance: {
    ofLargest: 1e-6,
    reason: "one product of float32 scale and code, then one by the scale",
  },
});
