// What a graph does with the positions it is given: from which tables it takes rows by them, and whether it
// compares them. A table says for how many positions the model was exported. A comparison builds a causal mask
// of positions against indices of keys, which agree only where the past is fed as long as it is.

import type { Graph, Value } from "../../graph/graph.ts";
import { axisOf } from "../../ops/host_numbers.ts";
import { getOp } from "../../ops/mod.ts";

/** How positions are used. */
export interface PositionUse {
  /** Rows of the shortest table; undefined if there is none. */
  readonly limit: number | undefined;
  readonly isCompared: boolean;
}

/** Ops whose results are still positions, moved or computed with. */
const CARRIERS: ReadonlySet<string> = new Set([
  ...["binary", "cast", "concat", "expand", "slice", "transpose", "unary", "where"],
]);

/** Looks at a graph before passes that fuse. */
export function positionUse({ nodes, inputs }: Graph, positions: string | undefined): PositionUse {
  const carried = new Set<Value>(inputs.filter(({ name }) => name === positions));
  let limit: number | undefined, isCompared = false;
  for (const { op, inputs: given, outputs, attributes } of nodes) {
    const [first, second] = given;
    if (given.some((value) => value && carried.has(value))) {
      const isMoved = op === "gather" && first && carried.has(first);
      if (isMoved || CARRIERS.has(op) || getOp(op).view) {
        outputs.forEach((value) => carried.add(value));
      }
      if (op === "binary" && outputs[0]!.dtype === "bool") isCompared = true;
    }
    const table = op === "gather" && second && carried.has(second)
      ? first!.shape[axisOf(attributes.axis as number, first!.shape.length)]
      : op === "embed" && first && carried.has(first)
      ? second!.shape[0]
      : op === "rope" && given[3] // rows are taken by position, whoever counts it
      ? second!.shape[0]
      : undefined;
    if (typeof table === "number") limit = Math.min(limit ?? table, table);
  }
  return { limit, isCompared };
}
