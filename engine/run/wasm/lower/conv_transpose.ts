// Lowering of float32 transposed convolutions: as a product where windows neither overlap nor leave gaps,
// else place by place of the output.

import type { WasmKernel } from "../kernel.ts";
import type { Node } from "../../../graph/graph.ts";
import {
  activationOf,
  type Convolution,
  loweredWindow,
  planeOperands,
  tensorOperands,
  windowOperands,
} from "./conv.ts";
import { emit, inputAddress, isStatic, outputAddress } from "./lower.ts";

/** Any float32 transposed convolution. */
export const convTransposeKernel: WasmKernel = {
  name: "conv_transpose_f32",
  when: ({ node }) => transposedOf(node) !== undefined,
  lower(lowering) {
    const { inputs: [x], outputs: [y] } = lowering.node;
    const { window, ...sizes } = transposedOf(lowering.node)!;
    emit(lowering, {
      name: "conv_transpose",
      operands: {
        ...tensorOperands(lowering),
        ...sizes,
        ...planeOperands(x!, y!),
        ...windowOperands(window),
        activation: activationOf(lowering.node),
      },
    });
  },
};

/** Places of a piece; floats between lines; bytes of lines packed at a time. */
const PLACES = 128;
const PITCH = PLACES + 16;
const RUN_BYTES = 24 * 1024;

/** Stride and extent are the same, and nothing is cut off. */
export const convPatchesKernel: WasmKernel = {
  name: "conv_patches_f32",
  when({ node }) {
    const { inputs: [x], attributes } = node, found = transposedOf(node);
    if (!found || x!.shape.length !== 4) return false;
    const { kernel, stride, dilation, begin } = found.window;
    const none = (list: unknown) => (list as readonly number[]).every((size) => size === 0);
    return kernel.every((size, axis) => size === stride[axis] && dilation[axis] === 1) &&
      begin.every((pad) => pad === 0) && none(attributes.pads) && none(attributes.output_padding);
  },
  lower(lowering) {
    const { node } = lowering, [x] = node.inputs;
    const { window: { kernel: [, kernel_h, kernel_w] }, ...sizes } = transposedOf(node)!;
    const { channels, filters, groups } = sizes, taps = kernel_h * kernel_w;
    const w = lowering.sharedScratch(4 * channels * filters / groups * taps);
    emit(lowering, {
      name: "conv_patches_weights",
      operands: {
        w: inputAddress(lowering, 1),
        y: w,
        groups,
        channels: channels / groups,
        columns: filters / groups * taps,
      },
    });
    const run = Math.min(channels / groups, Math.floor(RUN_BYTES / (4 * PITCH)));
    const bytes = Math.ceil(4 * (taps * PLACES + run * PITCH) / 4096 + 1) * 4096;
    emit(lowering, {
      name: "conv_patches",
      operands: {
        x: inputAddress(lowering, 0),
        w,
        b: inputAddress(lowering, 2),
        y: outputAddress(lowering),
        batch: x!.shape[0]!,
        ...sizes,
        ...{ height: x!.shape[2]!, width: x!.shape[3]!, kernel_h, kernel_w },
        ...{ places: PLACES, run, pitch: 4 * PITCH },
        ...{ scratch: lowering.scratch(bytes), scratch_bytes: bytes },
        activation: activationOf(node),
      },
    });
  },
};

/**
 * A transposed convolution of which everything but batch and image is known; else undefined. Pads are those of the
 * forward convolution, whose input is this one's output.
 */
export function transposedOf(node: Node): Convolution | undefined {
  const { inputs: [x, w], outputs: [y] } = node;
  if (x!.dtype !== "f32" || !w!.shape.every(isStatic)) return undefined;
  const window = loweredWindow(node, {
    kernel: w!.shape.slice(2) as number[],
    spatial: y!.shape.slice(2),
  });
  if (!window) return undefined;
  const channels = w!.shape[0] as number, groups = node.attributes.groups as number;
  return { window, channels, filters: (w!.shape[1] as number) * groups, groups };
}
