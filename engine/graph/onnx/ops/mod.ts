// The table of ONNX ops: families are files beside this one, and each has one line here, in alphabetical
// order.

import type { OnnxOp } from "../op.ts";
import { binaryOps } from "./binary.ts";
import { castOps } from "./casts.ts";
import { gatheringOps } from "./gathering.ts";
import { layoutOps } from "./layout.ts";
import { reductionOps } from "./reductions.ts";
import { reshape } from "./reshape.ts";
import { selectionOps } from "./selection.ts";
import { shapeOps } from "./shapes.ts";
import { slicingOps } from "./slicing.ts";
import { softmaxOps } from "./softmax.ts";
import { unaryOps } from "./unary.ts";

const all: readonly OnnxOp[] = [
  ...binaryOps,
  ...castOps,
  ...gatheringOps,
  ...layoutOps,
  ...reductionOps,
  reshape,
  ...selectionOps,
  ...shapeOps,
  ...slicingOps,
  ...softmaxOps,
  ...unaryOps,
];

/** Every op by `domain::name`. */
export const onnxOps: ReadonlyMap<string, OnnxOp> = new Map(
  all.map((op) => [onnxOpKey(op.domain ?? "", op.name), op]),
);

/** Key of an op in the table. */
export function onnxOpKey(domain: string, name: string): string {
  return `${domain}::${name}`;
}
