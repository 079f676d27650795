// send: a value that is wanted on other devices leaves the one that made it. Nothing is computed; who cuts a graph
// (run/parts/) lets a part end here.

import { integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { inferTransfer } from "../shape_rules.ts";

/** (x T[…]) → T[…]. */
export const send: OpRecord = defineOp({
  name: "send",
  summary: "x, for other devices",
  // The device that has it.
  attributes: { from: integer(-1) },
  movedInputs: [0],
  infer: inferTransfer,
  reference() {},
  inPlace: () => ({ 0: 0 }),
  view: true,
});
