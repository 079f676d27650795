// Sums, differences, products and quotients of two tensors.

import { defineOnnxOp, type OnnxOp } from "../op.ts";

/** Add. */
export const add: OnnxOp = defineOnnxOp({
  name: "Add",
  versions: [7, 13, 14],
  build: (call) => call.op("add", [call.input(0), call.input(1)]),
});
