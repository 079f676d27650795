// rms_norm_q8: rms_norm and quantize_q8 in one, so that the normalised row is never stored as floats.
// Made by a pass (engine/plan/passes.ts).

import { number } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { q8RowBytes } from "../../../quant/q8_activation.ts";
import { defineOp } from "../define_op.ts";
import { gpuRmsNormQ8Kernels } from "../lower_gpu_quantize.ts";
import { emit, inputAddress, outputAddress, rowsOf, rowsOfChunk } from "../lower_wasm.ts";
import type { OpRecord } from "../op.ts";
import { rowByRow } from "../row_cut.ts";
import { lastDim } from "../shape_rules.ts";
import { inferQ8, q8Sizes, quantizeGroups } from "./quantize_q8.ts";
import { rmsNormInput, rmsNormRows } from "./rms_norm.ts";

/** (x f32[…, K], weight [K]?) → q8[…, K]. */
export const rmsNormQ8: OpRecord = defineOp({
  name: "rms_norm_q8",
  summary: "quantize_q8(rms_norm(x, weight))",
  attributes: { epsilon: number(), base: number(0) },
  infer(inputs) {
    return [inferQ8(rmsNormInput(inputs))];
  },
  rowwise: rowByRow,
  reference({ inputs: [x, weight], outputs: [out], attributes }) {
    rmsNormRows(x!, weight, out!, attributes);
    quantizeGroups(out!, out!);
  },
  cases: (random) =>
    q8Sizes.map(({ rows, width }) => ({
      name: `[${rows}, ${width}]${width === 64 ? "" : ", weight"}`,
      inputs: [
        random.input([ROWS, width], { M: rows }),
        width === 64 ? undefined : random.weight("F32", [width]),
      ],
      attributes: { epsilon: 1e-5, base: width === 96 ? 1 : 0 },
      bindings: { M: rows },
    })),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
  kernels: {
    wasm: [
      {
        name: "rms_norm_q8",
        inRowChunks: true,
        when: () => true,
        lower(lowering) {
          const { inputs: [x], attributes: { epsilon, base } } = lowering.node;
          const columns = lastDim(x!) as number;
          emit(lowering, "rms_norm_q8", {
            x: inputAddress(lowering, 0),
            w: inputAddress(lowering, 1),
            y: outputAddress(lowering),
            rows: rowsOf(x!),
            columns,
            group: rowsOfChunk(x!),
            row_bytes: q8RowBytes(columns),
            epsilon: epsilon as number,
            base: base as number,
            // A multiple of 64, because columns are one of 32.
            scratch: lowering.scratch(4 * columns),
            scratch_bytes: 4 * columns,
          });
        },
      },
    ],
    gpu: gpuRmsNormQ8Kernels,
  },
});
