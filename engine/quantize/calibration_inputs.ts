// What a graph is given for a window of a text: tokens, their places, and whatever else a model's kind asks for
// of each row.

import { UnsupportedError } from "../errors.ts";
import type { PreparedPlan } from "../run/backend.ts";

/**
 * Writes the inputs of a step whose rows are a part of one window, in one slot, each of them wanted.
 *
 * @param start Position of the first token.
 */
export function writeInputs(
  executable: PreparedPlan,
  tokens: readonly number[],
  slot: number,
  start = 0,
): void {
  const count = tokens.length;
  for (const { name } of executable.plan.graph.inputs) {
    const data = executable.input(name) as Int32Array;
    const fill = INPUTS[name];
    if (!fill) {
      throw new UnsupportedError(
        `its graph has an input "${name}" that a text alone does not give`,
        {
          file: executable.plan.graph.name,
          remedy: "Quantise it without a text",
        },
      );
    }
    for (let row = 0; row < count; row++) data[row] = fill({ tokens, row, count, slot, start });
  }
}

interface RowFacts {
  readonly tokens: readonly number[];
  readonly row: number;
  readonly count: number;
  readonly slot: number;
  readonly start: number;
}

const INPUTS: Readonly<Record<string, (facts: RowFacts) => number>> = {
  tokens: ({ tokens, row }) => tokens[row]!,
  positions: ({ row, start }) => start + row,
  slots: ({ slot }) => slot,
  logit_rows: ({ row }) => row,
  spans: ({ count }) => count,
  starts: () => 0,
  ends: ({ count }) => count,
  types: () => 0,
};
