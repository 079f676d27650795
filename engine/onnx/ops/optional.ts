// Optionals: values that may be absent. Where a tensor is there for certain, nothing is left of them.

import { type } from "../derivation/attributes.ts";
import { scalarTensor } from "../derivation/host_tensors.ts";
import { type OnnxOp, onnxOp } from "../derivation/op.ts";

/** Ops on optionals. */
export const optionalOps: readonly OnnxOp[] = [
  /** Optional: a value, or none of a declared type. */
  onnxOp("Optional", {
    versions: [15],
    attributes: { type: type() },
    evaluate: ({ inputs: [value] }) => [{ dtype: "optional", ...value && { value } }],
  }),
  onnxOp("OptionalGetElement", {
    versions: [15, 18],
    build: (call) => [call.input(0)],
    evaluate({ inputs: [value], node }) {
      const found = value?.dtype === "optional" ? value.value : value;
      if (found) return [found];
      throw new TypeError(`Cannot take the element of ${node.name}: the optional is empty`);
    },
  }),
  onnxOp("OptionalHasElement", {
    versions: [15, 18],
    build: (call) => [call.scalar("bool", call.inputs[0] ? 1 : 0)],
    evaluate({ inputs: [value] }) {
      const isThere = value !== undefined &&
        (value.dtype !== "optional" || value.value !== undefined);
      return [scalarTensor("bool", Number(isThere))];
    },
  }),
];
