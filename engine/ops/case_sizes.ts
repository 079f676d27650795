// Sizes and shapes that most ops' cases share. A symbolic first dim makes the self-test plan for more
// rows than it runs, so that a kernel that works on the planned size is found out.

import { encodedNames, findFormat, formats } from "../../quant/mod.ts";
import { type Dim, symbol } from "../graph/dim/mod.ts";
import type { Attributes } from "../graph/graph.ts";
import type { CaseRandom, OpCase } from "./op_case.ts";

/** Widths around lanes (4), unrolled lanes (8, 16) and groups (32), and a prime. */
export const CASE_WIDTHS: readonly number[] = [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127];

/** Row counts: none, one, and counts that no number of threads or rows of a tile divides. */
export const CASE_ROWS: readonly number[] = [0, 1, 2, 7];

/** Number formats of weights that models come in. */
export const WEIGHT_FORMATS: readonly string[] = [
  ...["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"],
  ...["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "NB4"],
];

/**
 * Every other format of the table: a case of each will do, since they differ from the usual ones in how codes are
 * unpacked only. Those whose block is a row are named without its length.
 */
export const OTHER_FORMATS: readonly string[] = [
  ...new Set([...formats.keys(), ...encodedNames()]),
].filter((name) => !WEIGHT_FORMATS.includes(name) && formats.get(name)?.use !== "numbers");

/** A format by the name that it has for rows of so many blocks, and their length, 32 at least. */
export function rowsOfBlocks(
  name: string,
  blocks: number,
): { readonly format: string; readonly columns: number } {
  const { blockSize } = findFormat(name, 32);
  const columns = blocks * Math.max(32, blockSize);
  return { format: findFormat(name, columns).name, columns };
}

/** The symbol of a case's rows. */
export const ROWS: Dim = symbol("M");

/** Cases of an op that takes `inputs` f32 tensors of one shape [M, width]. */
export function elementwiseCases(
  random: CaseRandom,
  { inputs, attributes = [{}] }: {
    readonly inputs: number;
    readonly attributes?: readonly Attributes[] | undefined;
  },
): OpCase[] {
  const sizes = [
    ...CASE_WIDTHS.map((width) => ({ rows: 3, width })),
    ...CASE_ROWS.map((rows) => ({ rows, width: 40 })),
  ];
  return sizes.map(({ rows, width }, i) => {
    const given = attributes[i % attributes.length]!;
    return {
      name: `${given.kind ? `${given.kind} of ` : ""}[${rows}, ${width}]`,
      inputs: Array.from({ length: inputs }, () => random.input([ROWS, width], { M: rows })),
      attributes: given,
      bindings: { M: rows },
    };
  });
}

/** Pairs of shapes that NumPy broadcasting brings together. */
export const BROADCASTS: readonly (readonly [readonly number[], readonly number[]])[] = [
  [[5, 33], [33]],
  [[33], [5, 33]],
  [[5, 33], [1]],
  [[5, 1], [1, 33]],
  [[2, 3, 7], [3, 1]],
  [[2, 1, 7], [2, 3, 7]],
];
