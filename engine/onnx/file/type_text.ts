// Declared types as messages and listings write them.

import type { OnnxType } from "./model.ts";

/** `f32[batch, 3, 224, 224]`; `?` for what is not declared. */
export function describeType(type: OnnxType | undefined): string {
  if (!type) return "of no declared type";
  if (type.kind === "tensor") {
    return type.dtype + (type.shape ? `[${type.shape.map((dim) => dim ?? "?").join(", ")}]` : "");
  }
  if (type.kind === "map") return `map of ${type.key} to ${describeType(type.value)}`;
  return "element" in type ? `${type.kind} of ${describeType(type.element)}` : type.kind;
}
