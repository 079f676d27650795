// Lowering of convolutions of 8-bit codes: the weights become 16-bit differences first.

import type { WasmKernel } from "../kernel.ts";
import { knownConvolution, planeOperands, windowOperands } from "./conv.ts";
import { countOf, emit, inputAddress, outputAddress } from "./lower.ts";

/** Bytes of packed taps, corners of windows and a ragged edge: wasm/assembly/network/conv_integer.ts. */
const SCRATCH_BYTES = 4 * 128 * 32 + 32 * 12 + 4 * 32;

/** One zero point for x, one or one a filter for w. */
export const convIntegerKernel: WasmKernel = {
  name: "conv_integer",
  when({ node }) {
    const { inputs: [, , xZero, wZero] } = node, found = knownConvolution(node);
    const zeros = wZero ? countOf(wZero) : 0;
    return found !== undefined && (!xZero || countOf(xZero) === 1) &&
      (zeros === 0 || zeros === 1 || zeros === found.filters);
  },
  lower(lowering) {
    const { inputs: [x, w, , wZero], outputs: [y] } = lowering.node;
    const { window, ...sizes } = knownConvolution(lowering.node)!;
    const taps = (countOf(w!) as number) / sizes.filters;
    const differences = lowering.sharedScratch(sizes.filters * Math.ceil(taps / 2) * 4);
    emit(lowering, {
      name: "conv_integer_weights",
      operands: {
        w: inputAddress(lowering, 1),
        zero: inputAddress(lowering, 3),
        zeros: wZero ? countOf(wZero) : 0,
        signed: w!.dtype === "i8" ? 1 : 0,
        ...{ filters: sizes.filters, taps, y: differences },
      },
    });
    emit(lowering, {
      name: "conv_integer",
      operands: {
        x: inputAddress(lowering, 0),
        w: differences,
        x_zero: inputAddress(lowering, 2),
        y: outputAddress(lowering),
        batch: x!.shape[0]!,
        ...sizes,
        ...planeOperands(x!, y!),
        ...windowOperands(window),
        scratch: lowering.scratch(SCRATCH_BYTES),
        x_signed: x!.dtype === "i8" ? 1 : 0,
      },
    });
  },
};
