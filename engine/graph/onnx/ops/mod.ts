// The table of ONNX ops: families are files beside this one, and each op has one line here, in
// alphabetical order of its name, other domains after ai.onnx.

import type { OnnxOp } from "../op.ts";
import { add } from "./arithmetic.ts";
import { reshape } from "./reshape.ts";

const all: readonly OnnxOp[] = [
  add,
  reshape,
];

/** Every op by `domain::name`. */
export const onnxOps: ReadonlyMap<string, OnnxOp> = new Map(
  all.map((op) => [onnxOpKey(op.domain ?? "", op.name), op]),
);

/** Key of an op in the table. */
export function onnxOpKey(domain: string, name: string): string {
  return `${domain}::${name}`;
}
