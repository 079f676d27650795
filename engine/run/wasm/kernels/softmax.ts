// WASM kernels of `softmax`, best first.

import { product } from "../../../graph/dim/mod.ts";
import { emit, inputAddress, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `softmax`. */
export const softmaxKernels: readonly WasmKernel[] = [
  {
    name: "softmax_f32",
    when: ({ node: { inputs: [x], attributes } }) => x!.shape.at(attributes.axis as number) !== 0,
    lower(lowering) {
      const { inputs: [x], attributes } = lowering.node;
      const axis = attributes.axis as number;
      const at = axis < 0 ? axis + x!.shape.length : axis;
      emit(lowering, "softmax", {
        x: inputAddress(lowering, 0),
        y: outputAddress(lowering),
        outer: product(x!.shape.slice(0, at)),
        length: x!.shape[at]!,
        inner: product(x!.shape.slice(at + 1)),
      });
    },
  },
];
