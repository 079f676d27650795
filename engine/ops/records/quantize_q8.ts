// quantize_q8: rows to signed 8 bit in groups of 32 (spec LF-3, MD-11). A group's scale is its largest
// magnitude / 127 in float32; q = x / scale rounded to nearest, ties to even, within ±127. The bytes in
// memory are a backend's business (quant/q8_activation.ts); here a q8 value is the numbers it stands for.

import { ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { rowByRow } from "../row_cut.ts";
import { checkInputCount, lastDim, requireInput, requireStatic } from "../shape_rules.ts";

const GROUP = 32;

/** (x f32[…, K]) → q8[…, K], K a multiple of 32. */
export const quantizeQ8: OpRecord = defineOp({
  name: "quantize_q8",
  summary: "rows to signed 8 bit with a float32 scale per 32",
  attributes: {},
  infer(inputs) {
    checkInputCount(inputs, 1);
    return [inferQ8(requireInput(inputs, 0, "x", { minRank: 1 }))];
  },
  rowwise: rowByRow,
  reference({ inputs: [x], outputs: [out] }) {
    quantizeGroups(x!, out!);
  },
  cases: (random) =>
    q8Sizes.map(({ rows, width }) => ({
      name: `[${rows}, ${width}]`,
      inputs: [random.input([ROWS, width], { M: rows })],
      bindings: { M: rows },
    })),
  tolerance: {
    ofLargest: 1 / 126,
    reason: "one 8-bit step where a rounding tie falls the other way",
  },
});

/**
 * The quantised type of a float type.
 *
 * @throws {RangeError} If rows are not a known multiple of 32 long.
 */
export function inferQ8(x: TensorType): TensorType {
  const width = requireStatic(lastDim(x), "the last dim of x");
  if (width === 0 || width % GROUP !== 0) {
    throw new RangeError(`the last dim of x must be a multiple of ${GROUP}: it is ${width}`);
  }
  return { dtype: "q8", shape: x.shape };
}

/** The definition, for the fused forms too; `x` and `out` may be one tensor. */
export function quantizeGroups(x: HostTensor, out: HostTensor): void {
  for (let group = 0; group < x.data.length; group += GROUP) {
    let largest = 0;
    for (let i = 0; i < GROUP; i++) {
      largest = Math.max(largest, Math.abs(getElement(x, group + i)));
    }
    const scale = Math.fround(largest / 127);
    for (let i = 0; i < GROUP; i++) {
      const ratio = scale === 0 ? 0 : Math.fround(getElement(x, group + i) / scale);
      const quantized = Math.min(127, Math.max(-127, roundToEven(ratio)));
      setElement(out, group + i, quantized * scale);
    }
  }
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const above = value - floor;
  if (above !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** Sizes of the cases of ops that quantise. */
export const q8Sizes: readonly { readonly rows: number; readonly width: number }[] = [
  ...[0, 1, 2, 7].map((rows) => ({ rows, width: 64 })),
  ...[32, 96, 128, 576].map((width) => ({ rows: 3, width })),
];
