// matmul: rows of x times the rows of a weight matrix, float activations and exactly the stored
// weights. The weight is [N, K] as files store it, so each output is a dot of two contiguous rows.

import { getFormat } from "../../../quant/mod.ts";
import { OTHER_FORMATS, ROWS, rowsOfBlocks, WEIGHT_FORMATS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** (x f32[…, K], weight [N, K], bias [N]?) → f32[…, N]. */
export const matmul: OpRecord = defineOp({
  name: "matmul",
  summary: "x · weightᵀ + bias with float32 activations",
  attributes: {},
  byRows: true,
  packedInput: 1,
  infer(inputs) {
    return inferMatmul(inputs, requireInput(inputs, 0, "x", { minRank: 1 }));
  },
  reference({ inputs: [x, weight, bias], outputs: [out] }) {
    matmulRows(x!, weight!, bias, out!);
  },
  cases: matmulCases,
});

/** Shape rule of both matmuls; `x` is input 0. */
export function inferMatmul(
  inputs: readonly (TensorType | undefined)[],
  x: TensorType,
): TensorType[] {
  checkInputCount(inputs, 3);
  const weight = requireInput(inputs, 1, "weight", { rank: 2 });
  const bias = optionalInput(inputs, 2, "bias", { rank: 1 });
  requireEqual(lastDim(x), weight.shape[1]!, "the columns of x and of the weight");
  const rows = weight.shape[0]!;
  if (bias) requireEqual(rows, bias.shape[0]!, "the rows of the weight and the bias");
  return [{ dtype: "f32", shape: [...x.shape.slice(0, -1), rows] }];
}

/** The definition, for both matmuls. */
export function matmulRows(
  x: HostTensor,
  weight: HostTensor,
  bias: HostTensor | undefined,
  out: HostTensor,
): void {
  const [height, width] = weight.shape as [number, number];
  const rows = height === 0 ? 0 : out.data.length / height;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < height; column++) {
      let sum = bias ? getElement(bias, column) : 0;
      for (let i = 0; i < width; i++) {
        sum += getElement(x, row * width + i) * getElement(weight, column * width + i);
      }
      setElement(out, row * height + column, sum);
    }
  }
}

// [rows, outputs, columns in blocks]: tails of every tile of rows and outputs, one and several blocks.
/** Rows, outputs and blocks of the cases of both matmuls. */
export const SIZES = [
  [0, 5, 1],
  [1, 1, 1],
  [1, 8, 2],
  [1, 33, 3],
  [2, 16, 1],
  [3, 9, 2],
  [5, 17, 1],
  [6, 24, 2],
  [7, 31, 1],
  [13, 40, 1],
] as const;

function matmulCases(random: CaseRandom): OpCase[] {
  const plain = [1, 3, 4, 5, 8, 31, 33, 64, 100, 7];
  const usual = WEIGHT_FORMATS.flatMap((format) =>
    SIZES.map(([rows, outputs, blocks], i) => {
      const { blockSize } = getFormat(format);
      const columns = blockSize === 1 ? plain[i]! : blocks * blockSize;
      return matmulCase(random, { format, rows, outputs, columns });
    })
  );
  return [...usual, ...otherMatmulCases(random)];
}

/** A case of every format that is not among the usual ones. */
export function otherMatmulCases(random: CaseRandom): OpCase[] {
  return OTHER_FORMATS.map((name, i) =>
    matmulCase(random, { ...rowsOfBlocks(name, 2), rows: 1 + 2 * (i % 2), outputs: 9 })
  );
}

/** One matmul case of any format and size; odd numbers of outputs get a bias. */
export function matmulCase(
  random: CaseRandom,
  size: {
    readonly format: string;
    readonly rows: number;
    readonly outputs: number;
    readonly columns: number;
  },
): OpCase {
  const { format, rows, outputs, columns } = size;
  return {
    name: `${format}, [${rows}, ${columns}] · [${outputs}, ${columns}]ᵀ`,
    inputs: [
      random.input([ROWS, columns], { M: rows }),
      random.weight(format, [outputs, columns]),
      outputs % 2 ? random.weight("F32", [outputs]) : undefined,
    ],
    bindings: { M: rows },
  };
}
