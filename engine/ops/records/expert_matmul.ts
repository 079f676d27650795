// expert_matmul: rows times matrices that are chosen row by row: expert e of a stack [E, N, K]. Without a
// choice, item i of a row goes to matrix i, which multiplies each head by a matrix of its own. Matrices that no row
// chose are not read. Rows are floats or 8-bit rows (ops/q8_rows.ts).

import { getFormat } from "../../../quant/mod.ts";
import { OTHER_FORMATS, rowsOfBlocks, WEIGHT_FORMATS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { equal, mul } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { numbersOf } from "../host_numbers.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { HostTensor, OpRecord } from "../op.ts";
import { quantized } from "../matmul_cases.ts";
import type { CaseInput, CaseRandom, OpCase } from "../op_case.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/**
 * (x f32 or q8[M, k or 1, K], weights [E, N, K], chosen i32[M, k]?, bias [E · N]?) → f32[M, k, N]. With one row for
 * all k of them, x is shared. Without `chosen`, k = E.
 */
export const expertMatmul: OpRecord = defineOp({
  name: "expert_matmul",
  summary: "rows times matrices chosen row by row",
  attributes: {},
  packedInput: 1,
  infer: inferExpertMatmul,
  reference: ({ inputs, outputs: [out] }) => expertRows(inputs, out!),
  cases: (random) => [
    ...expertCases(random),
    ...expertCases(random).filter(({ inputs: [, weights] }) =>
      weights?.role === "weight" && getFormat(weights.format).blockSize >= 32
    ).map((one) => quantized(one)),
  ],
});

function inferExpertMatmul(inputs: readonly (TensorType | undefined)[]): TensorType[] {
  checkInputCount(inputs, 4);
  const x = requireInput(inputs, { index: 0, name: "x", dtype: ["f32", "q8"], rank: 3 });
  const weights = requireInput(inputs, { index: 1, name: "weights", rank: 3 });
  const chosen = optionalInput(inputs, { index: 2, name: "chosen", dtype: "i32", rank: 2 });
  const bias = optionalInput(inputs, { index: 3, name: "bias", rank: 1 });
  const [experts, outputs] = weights.shape;
  if (experts === 0) throw new RangeError("weights of no matrix: must be one at least");
  requireEqual(lastDim(x), { b: lastDim(weights), what: "the columns of x and of the weights" });
  if (bias) {
    requireEqual(mul(experts!, outputs!), { b: bias.shape[0]!, what: "all outputs and the bias" });
  }
  if (chosen) {
    requireEqual(x.shape[0]!, { b: chosen.shape[0]!, what: "the rows of x and of the choice" });
  }
  const count = chosen ? chosen.shape[1]! : experts!;
  if (!equal(x.shape[1]!, 1)) {
    requireEqual(x.shape[1]!, { b: count, what: "the items of a row of x" });
  }
  return [{ dtype: "f32", shape: [x.shape[0]!, count, outputs!] }];
}

function expertRows(
  [x, weights, chosen, bias]: readonly (HostTensor | undefined)[],
  out: HostTensor,
): void {
  const [, outputs, columns] = weights!.shape as [number, number, number];
  const [rows, count] = out.shape as [number, number, number];
  const items = x!.shape[1]!, numbers = numbersOf(x!), weight = numbersOf(weights!);
  for (let pair = 0; pair < rows * count; pair++) {
    const expert = chosen ? getElement(chosen, pair) : pair % count;
    const from = (items === 1 ? Math.floor(pair / count) : pair) * columns;
    for (let n = 0; n < outputs; n++) {
      const line = expert * outputs + n;
      let sum = bias ? getElement(bias, line) : 0;
      for (let i = 0; i < columns; i++) {
        sum += numbers[from + i]! * weight[line * columns + i]!;
      }
      setElement(out, { index: pair * outputs + n, value: sum });
    }
  }
}

// [rows, chosen of experts (0: by position), outputs, whether x is shared]
const SIZES = [
  [0, 2, 8, true],
  [1, 2, 8, true],
  [1, 1, 24, false],
  [3, 2, 16, false],
  [7, 3, 8, true],
  [2, 0, 8, false],
] as const;
const EXPERTS = 5;

/** Cases over every number format. */
function expertCases(random: CaseRandom): OpCase[] {
  const usual = WEIGHT_FORMATS.flatMap((format) =>
    SIZES.map(([rows, count, outputs, shared], i) => {
      const { blockSize } = getFormat(format);
      const columns = blockSize === 1 ? [5, 32, 33, 64, 300, 7][i]! : 2 * blockSize;
      const items = count || EXPERTS;
      return {
        name: `${format}, ${rows} rows, ${items} of ${EXPERTS}, [${outputs}, ${columns}]`,
        inputs: [
          random.input([rows, shared ? 1 : items, columns]),
          random.weight(format, [EXPERTS, outputs, columns]),
          count ? choiceOf(random, rows, count) : undefined,
          i % 2 ? random.weight("F32", [EXPERTS * outputs]) : undefined,
        ],
      };
    })
  );
  const others = OTHER_FORMATS.map((name) => {
    const { format, columns } = rowsOfBlocks(name, 1);
    return {
      name: `${format}, 2 rows, 1 of ${EXPERTS}, [8, ${columns}]`,
      inputs: [
        random.input([2, 1, columns]),
        random.weight(format, [EXPERTS, 8, columns]),
        choiceOf(random, 2, 1),
        undefined,
      ],
    };
  });
  return [...usual, ...others];
}

function choiceOf(random: CaseRandom, rows: number, count: number): CaseInput {
  const data = Int32Array.from({ length: rows * count }, () => random.integer(0, EXPERTS - 1));
  return { role: "input", dtype: "i32", shape: [rows, count], data };
}
