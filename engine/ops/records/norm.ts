// norm: (x - mean) / sqrt(mean((x - mean)²) + epsilon) · (base + weight) + bias over the last dim: the layer norm, whose
// variance is the biased one. Of rows that are not centred the mean is taken for 0: the RMS norm. Gemma stores weights
// around 0 and sets base to 1. The result may be 8-bit rows, so that it is never stored as floats.

import { flag, number } from "../attributes.ts";
import { CASE_WIDTHS, elementwiseCases, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { Node, TensorType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import { Q8_STEP, q8Sizes, quantizeGroups, RESULT_TYPE, resultOf } from "../q8_rows.ts";
import { rowByRow } from "../row_cut.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (x f32[…, D], weight [D]?, bias [D]?) → f32 or q8[…, D]. */
export const norm: OpRecord = defineOp({
  name: "norm",
  summary: "rows over their root mean square, centred or not, times a weight, plus a bias",
  attributes: { centred: flag(false), epsilon: number(), base: number(0), to: RESULT_TYPE },
  byRows: true,
  infer(inputs, { to }) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, { index: 0, name: "x", minRank: 1 });
    checkVector(x, {
      vector: optionalInput(inputs, { index: 1, name: "weight", rank: 1 }),
      name: "weight",
    });
    checkVector(x, {
      vector: optionalInput(inputs, { index: 2, name: "bias", rank: 1 }),
      name: "bias",
    });
    return [resultOf(x, to)];
  },
  rowwise: rowByRow,
  reference({ inputs: [x, weight, bias], outputs: [out], attributes }) {
    normRows(x!, out!, { ...attributes, weight, bias });
    if (attributes.to === "q8") quantizeGroups(out!, out!);
  },
  cases: normCases,
});

/** Whether a node is an RMS norm without a bias, with such a result; kernels are made for that, */
export function isRmsNorm({ inputs, attributes }: Node, to: "f32" | "q8"): boolean {
  return !attributes.centred && !inputs[2] && attributes.to === to;
}

/** or a layer norm of floats with nothing but its weight and bias. */
export function isLayerNorm({ attributes }: Node): boolean {
  return attributes.centred === true && attributes.base === 0 && attributes.to === "f32";
}

/** Checks a weight or bias of a norm of `x`. */
export function checkVector(
  x: TensorType,
  { vector, name }: { readonly vector: TensorType | undefined; readonly name: string },
): void {
  if (vector) {
    requireEqual(lastDim(x), { b: vector.shape[0]!, what: `the last dim of x and the ${name}` });
  }
}

/** What rows are normed with. */
export interface NormOptions {
  readonly weight?: HostTensor | undefined;
  readonly bias?: HostTensor | undefined;
  readonly centred?: boolean;
  readonly epsilon: number;
  readonly base: number;
}

/** The definition, for the ops too that norm their input; `x` and `out` may be one tensor. */
export function normRows(
  x: HostTensor,
  out: HostTensor,
  { weight, bias, centred = false, epsilon, base }: NormOptions,
): void {
  const width = x.shape.at(-1)!;
  for (let row = 0; row + width <= x.data.length && width > 0; row += width) {
    let sum = 0;
    for (let i = 0; centred && i < width; i++) sum += getElement(x, row + i);
    const mean = sum / width;
    let squares = 0;
    for (let i = 0; i < width; i++) squares += (getElement(x, row + i) - mean) ** 2;
    const factor = 1 / Math.sqrt(squares / width + epsilon);
    for (let i = 0; i < width; i++) {
      const normal = (getElement(x, row + i) - mean) * factor;
      const gain = weight ? base + getElement(weight, i) : 1;
      setElement(out, { index: row + i, value: normal * gain + (bias ? getElement(bias, i) : 0) });
    }
  }
}

function normCases(random: CaseRandom): OpCase[] {
  const centred = { centred: true, epsilon: 1e-5 };
  return [
    ...elementwiseCases(random, { inputs: 1, attributes: [{ epsilon: 1e-5 }] }),
    ...CASE_WIDTHS.map((width) => ({
      name: `width ${width}, weight, base ${width % 2}`,
      inputs: [random.input([2, 3, width]), random.weight("F32", [width])],
      attributes: { epsilon: 1e-6, base: width % 2 },
    })),
    ...q8Sizes.map(({ rows, width }) => ({
      name: `[${rows}, ${width}]${width === 64 ? "" : ", weight"}, in 8 bit`,
      inputs: [
        random.input([ROWS, width], { M: rows }),
        width === 64 ? undefined : random.weight("F32", [width]),
      ],
      attributes: { epsilon: 1e-5, base: width === 96 ? 1 : 0, to: "q8" },
      bindings: { M: rows },
      tolerance: Q8_STEP,
    })),
    ...elementwiseCases(random, { inputs: 1, attributes: [centred] })
      .map((one) => ({ ...one, name: `${one.name}, centred` })),
    ...CASE_WIDTHS.map((width) => ({
      name: `width ${width}, centred, weight${width % 2 ? ", bias" : ""}`,
      inputs: [
        random.input([3, width]),
        random.weight("F32", [width]),
        width % 2 ? random.weight("F16", [width]) : undefined,
      ],
      attributes: centred,
    })),
  ];
}
