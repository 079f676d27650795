// The table of ops: a file in records/ and a line in records.ts for each.

import { UnsupportedError } from "../errors.ts";
import type { Node } from "../graph/graph.ts";
import type { OpRecord } from "./op.ts";
import * as records from "./records.ts";

/** Every op by name. */
export const ops: ReadonlyMap<string, OpRecord> = new Map(
  Object.values(records).map((op) => [op.name, op]),
);

/**
 * The op of a name.
 *
 * @throws {UnsupportedError} If there is none.
 */
export function getOp(name: string): OpRecord {
  const op = ops.get(name);
  if (op) return op;
  throw new UnsupportedError(`Cannot use op "${name}": this build does not have it`, {
    remedy: `Known ops are ${[...ops.keys()].join(", ")}`,
  });
}

/** Whether a node changes a state, so that it happens as often as it is written. */
export function changesState({ op, attributes }: Pick<Node, "op" | "attributes">): boolean {
  const { view, inPlace } = getOp(op);
  return !view && Object.keys(inPlace?.(attributes) ?? {}).length > 0;
}
