// WASM kernels of `gather`, best first.

import { mul } from "../../../graph/dim/mod.ts";
import { axisOf } from "../../../ops/host_numbers.ts";
import { aroundDims } from "../lower/move.ts";
import { movableBytes } from "../lower/strided.ts";
import { countOf, emit, outputAddress } from "../lower/lower.ts";
import type { WasmKernel } from "../kernel.ts";

/** Kernels of `gather`. */
export const gatherKernels: readonly WasmKernel[] = [{
  name: "gather_rows",
  when: ({ node }) => movableBytes(node.outputs[0]!) !== undefined,
  lower(lowering) {
    const { inputs: [x, indices], attributes } = lowering.node;
    const axis = axisOf(attributes.axis as number, x!.shape.length);
    const { outer, inner } = aroundDims(x!.shape, axis);
    emit(lowering, {
      name: "gather",
      operands: {
        x: lowering.address(x!),
        indices: lowering.address(indices!),
        y: outputAddress(lowering),
        outer,
        size: x!.shape[axis]!,
        count: countOf(indices!),
        bytes: mul(inner, movableBytes(x!)!),
        wide: indices!.dtype === "i64" ? 1 : 0,
      },
    });
  },
}];
