// Lowering of float32 convolutions of 3 × 3 windows without strides by Winograd's minimal filtering, see
// wasm/assembly/network/conv_winograd.ts. Few channels or filters do not pay for the transforms, nor do small
// planes for the memory that points of weights take.

import type { OtherLayout, WasmKernel } from "../kernel.ts";
import type { Node } from "../../../graph/graph.ts";
import { activationOf, knownConvolution, threeDims } from "./conv.ts";
import { emit, inputAddress, outputAddress } from "./lower.ts";

const LEAST_CHANNELS = 32;
const LEAST_FILTERS = 16;
/** Filters times channels, whose points take 144 bytes each. */
const MOST_WEIGHTS = 2 ** 18;
/** Places in a row of the output. */
const LEAST_WIDTH = 14;

/** Of tiles of four by four places, see wasm/assembly/network/winograd_points.ts. */
const POINTS = 36;
/** Bytes of the points of all channels of a chunk's tiles: what fits the second cache. */
const POINT_BYTES = 600 * 1024;
const MOST_TILES = 128;
const FEWEST_TILES = 8;
/** Bytes between two passes of a transform, and floats of the six rows under so many tiles. */
const BETWEEN_BYTES = 640;
const lineFloats = (tiles: number) => 6 * (4 * tiles + 8);
/** Filters of a block, see wasm/assembly/network/conv_blocks.ts. */
const BLOCK = 5;

/** 3 × 3 windows of neighbours, one group. */
export const winogradKernel: WasmKernel = {
  name: "conv_winograd_f32",
  when({ node }) {
    const { inputs: [x, w], outputs: [y] } = node;
    if (x!.dtype !== "f32" || x!.shape.length !== 4) return false;
    const found = knownConvolution(node), width = y!.shape[3]!;
    if (!found || found.groups !== 1 || w!.dtype !== "f32") return false;
    const { window: { kernel, stride, dilation }, channels, filters } = found;
    return kernel[1] === 3 && kernel[2] === 3 && [...stride, ...dilation].every((n) => n === 1) &&
      channels >= LEAST_CHANNELS && filters >= LEAST_FILTERS &&
      channels * filters <= MOST_WEIGHTS && !(typeof width === "number" && width < LEAST_WIDTH) &&
      !isSmall(node);
  },
  laysOut: pointLayout,
  lower(lowering) {
    const { node } = lowering, { inputs: [x], outputs: [y] } = node;
    const { window, channels, filters } = knownConvolution(node)!;
    const [, height, width] = threeDims(x!), [, out_height, out_width] = threeDims(y!);
    const w = lowering.prepared(node.inputs[1]!, {
      ...pointLayout(node),
      emit: (w, y) =>
        emit(lowering, {
          name: "conv_winograd_weights",
          operands: { w, y, filters, channels },
        }),
    });
    const fitting = Math.floor(POINT_BYTES / (4 * POINTS * channels)) & ~7;
    const tiles = Math.max(FEWEST_TILES, Math.min(MOST_TILES, fitting));
    const floats = POINTS * tiles * (channels + 1 + BLOCK) + lineFloats(tiles);
    const bytes = Math.ceil((BETWEEN_BYTES + 4 * floats) / 4096) * 4096;
    emit(lowering, {
      name: "conv_winograd",
      operands: {
        x: inputAddress(lowering, 0),
        w,
        b: inputAddress(lowering, 2),
        y: outputAddress(lowering),
        batch: x!.shape[0]!,
        ...{ channels, filters, height, width, out_height, out_width },
        ...{ begin_h: window.begin[1], begin_w: window.begin[2] },
        ...{ tiles, scratch: lowering.scratch(bytes), scratch_bytes: bytes },
        activation: activationOf(node),
      },
    });
  },
};

/** A number of each point for each filter and channel. */
function pointLayout({ inputs: [, w] }: Node): OtherLayout {
  const [filters, channels] = w!.shape as readonly number[];
  return { bytes: 4 * POINTS * channels! * filters! };
}

/** Whether a plane has fewer places than a weight's points, four times as many numbers, are worth. */
function isSmall({ outputs: [y] }: Node): boolean {
  const [, height, width] = threeDims(y!);
  return typeof height === "number" && typeof width === "number" && height * width < 196;
}
