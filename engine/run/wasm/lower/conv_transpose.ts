// Lowering of float32 transposed convolutions: as a product where windows neither overlap nor leave gaps,
// else place by place of the output.

import type { OtherLayout, WasmKernel } from "../kernel.ts";
import type { Node } from "../../../graph/graph.ts";
import { elementCount } from "../../../ops/host_tensor.ts";
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

/** Places of a piece. */
const PLACES = 128;
/** Bytes of an edge and of biases, see wasm/assembly/network/conv_patches.ts. */
const HEAD_BYTES = 256;

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
  laysOut: patchLayout,
  lower(lowering) {
    const { node } = lowering, [x] = node.inputs;
    const { window: { kernel: [, kernel_h, kernel_w] }, ...sizes } = transposedOf(node)!;
    const { channels, filters, groups } = sizes, taps = kernel_h * kernel_w;
    const w = lowering.prepared(node.inputs[1]!, {
      ...patchLayout(node),
      emit: (w, y) =>
        emit(lowering, {
          name: "conv_patches_weights",
          operands: { w, y, channels, filters, groups, taps },
        }),
    });
    const floats = PLACES * (taps + channels / groups + 1);
    const bytes = Math.ceil((HEAD_BYTES + 4 * floats) / 4096) * 4096;
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
        places: PLACES,
        ...{ scratch: lowering.scratch(bytes), scratch_bytes: bytes },
        activation: activationOf(node),
      },
    });
  },
};

/** As many numbers as the weight has. */
function patchLayout({ inputs: [, w] }: Node): OtherLayout {
  return { bytes: 4 * elementCount(w!.shape as readonly number[]) };
}

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
