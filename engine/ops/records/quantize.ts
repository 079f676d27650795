// quantize: rows to signed 8 bit, after a function of their numbers where one is named, so that the widest row of a layer
// is not stored as floats a second time. As `q8` and `q8_low` see ops/q8_rows.ts; as `lf8` (quant/lf8_products.ts) bytes: a float32
// scale, then 256 codes, which is what precision "strict" makes of the activations that meet LF8 weights.

import { lf8RowBytes, quantizeLf8Row } from "../../../quant/lf8_products.ts";
import { ACTIVATION_NAMES, activations } from "../activations.ts";
import { choice } from "../attributes.ts";
import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, type HostTensor } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import { inferQ8, Q8_STEP, q8Sizes, roundGroups } from "../q8_rows.ts";
import { rowByRow } from "../row_cut.ts";
import { checkInputCount, lastDim, requireInput, requireStatic } from "../shape_rules.ts";

/** (x f32[…, K]) → q8[…, K], K a multiple of 32; or u8[…, 260 · K / 256], K a multiple of 256. */
export const quantize: OpRecord = defineOp({
  name: "quantize",
  summary: "rows to signed 8 bit with a float32 scale a group",
  attributes: {
    format: choice(["q8", "q8_low", "lf8"], "q8"),
    activation: choice(["none", ...ACTIVATION_NAMES], "none"),
  },
  infer(inputs, { format }) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", minRank: 1 });
    if (format !== "lf8") return [inferQ8(x, format)];
    const width = lf8RowBytes(requireStatic(lastDim(x), "the last dim of x"));
    return [{ dtype: "u8", shape: [...x.shape.slice(0, -1), width] }];
  },
  rowwise: (node) =>
    node.attributes.format !== "lf8" && node.attributes.activation === "none"
      ? rowByRow(node)
      : undefined,
  reference({ inputs: [x], outputs: [out], attributes: { format, activation } }) {
    const act = activation === "none" ? (value: number) => value : activations[activation];
    const length = x!.data.length;
    const data = Float32Array.from({ length }, (_, i) => act(getElement(x!, i)));
    if (format === "lf8") quantizeLf8Rows(data, x!.shape.at(-1)!, out!);
    else roundGroups({ ...x!, data }, { out: out!, most: 127, isLow: format === "q8_low" });
  },
  cases: quantizeCases,
  tolerance: Q8_STEP,
});

function quantizeLf8Rows(values: Float32Array, columns: number, out: HostTensor): void {
  const bytes = lf8RowBytes(columns), target = out.data as Uint8Array;
  for (let row = 0; row * columns < values.length; row++) {
    quantizeLf8Row(
      values.subarray(row * columns, (row + 1) * columns),
      target.subarray(row * bytes, (row + 1) * bytes),
    );
  }
}

function quantizeCases(random: CaseRandom): OpCase[] {
  const sized = (name: string, [rows, width]: readonly [number, number]): OpCase => ({
    name: `${name}, [${rows}, ${width}]`,
    inputs: [random.input([ROWS, width], { M: rows })],
    bindings: { M: rows },
  });
  const sizes = q8Sizes.map(({ rows, width }) => [rows, width] as const);
  return [
    ...sizes.map((size) => sized("q8", size)),
    ...sizes.flatMap((size) =>
      ACTIVATION_NAMES.map((activation) => ({
        ...sized(activation, size),
        attributes: { activation },
      }))
    ),
    ...([[0, 256], [1, 256], [3, 768], [7, 512]] as const).map((size) => ({
      ...sized("lf8", size),
      attributes: { format: "lf8" },
      tolerance: { ofLargest: 0, reason: "the order of operations is part of the format" },
    })),
    ...sizes.flatMap((size) =>
      (["none", "gelu"] as const).map((activation) => ({
        ...sized(`q8_low, ${activation}`, size),
        attributes: { format: "q8_low", activation },
      }))
    ),
  ];
}
