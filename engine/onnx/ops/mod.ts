// The table of ONNX ops. Families are files beside this one, and each has a line in families.ts.

import type { OnnxOp } from "../derivation/op.ts";
import * as families from "./families.ts";

/** Every op by `domain::name`. */
export const onnxOps: ReadonlyMap<string, OnnxOp> = new Map(
  Object.values(families).flat().map((op) => [onnxOpKey(op.domain ?? "", op.name), op]),
);

/** Key of an op in the table. */
export function onnxOpKey(domain: string, name: string): string {
  return `${domain}::${name}`;
}
