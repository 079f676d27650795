// recv: a value that another device made (send.ts) arrives. Nothing is computed; who cuts a graph (run/parts/) lets a
// part begin here.

import { integer } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { OpRecord } from "../op.ts";
import { inferTransfer } from "../shape_rules.ts";

/** (x T[…]) → T[…]. */
export const recv: OpRecord = defineOp({
  name: "recv",
  summary: "x, as another device made it",
  // The device that gets it.
  attributes: { at: integer(-1) },
  movedInputs: [0],
  infer: inferTransfer,
  reference() {},
  inPlace: () => ({ 0: 0 }),
  view: true,
});
