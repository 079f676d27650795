// quantize_lf8: rows to LF8 (quant/lf8_products.ts), as bytes: a float32 scale, then 256 signed codes. What
// precision "strict" makes of the activations that meet LF8 weights.

import { lf8RowBytes, quantizeLf8Row } from "../../../quant/lf8_products.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, lastDim, requireInput, requireStatic } from "../shape_rules.ts";

/** (x f32[…, K]) → u8[…, 260 · K / 256], K a multiple of 256. */
export const quantizeLf8: OpRecord = defineOp({
  name: "quantize_lf8",
  summary: "rows to signed 8 bit with a float32 scale per 256, as LlamaF has them",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, 0, "x", { minRank: 1 });
    const width = lf8RowBytes(requireStatic(lastDim(x), "the last dim of x"));
    return [{ dtype: "u8", shape: [...x.shape.slice(0, -1), width] }];
  },
  reference({ inputs: [x], outputs: [out] }) {
    const columns = x!.shape.at(-1)!, bytes = lf8RowBytes(columns);
    const values = x!.data as Float32Array, target = out!.data as Uint8Array;
    for (let row = 0; row * columns < values.length; row++) {
      quantizeLf8Row(
        values.subarray(row * columns, (row + 1) * columns),
        target.subarray(row * bytes, (row + 1) * bytes),
      );
    }
  },
  cases: (random) =>
    ([[0, 256], [1, 256], [3, 768], [7, 512]] as const).map(([rows, width]) => ({
      name: `[${rows}, ${width}]`,
      inputs: [random.input([ROWS, width], { M: rows })],
      bindings: { M: rows },
    })),
});
