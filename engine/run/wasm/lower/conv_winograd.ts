// Lowering of float32 convolutions of 3 × 3 windows without strides by Winograd's minimal filtering, see
// wasm/assembly/network/conv_winograd.ts. Few channels or filters do not pay for the transforms, nor do small
// planes for those of the weights.

import type { WasmKernel } from "../kernel.ts";
import type { Node } from "../../../graph/graph.ts";
import { activationOf, knownConvolution, threeDims } from "./conv.ts";
import { emit, inputAddress, outputAddress } from "./lower.ts";

const LEAST_CHANNELS = 32;
const LEAST_FILTERS = 16;
/** Elements of a weight, whose transform takes 64 bytes each. */
const MOST_WEIGHTS = 2 ** 18;
/** Places in a row of the output. */
const LEAST_WIDTH = 14;

/**
 * Most tiles of two by two places in a piece; filters in a pass; bytes of 16 points of a run of channels: where all channels
 * are in one, points are made once and not for every pass, which is worth more than their being near.
 */
const TILES = 40;
const PASS = 24;
const RUN_BYTES = 512 * 1024;
/** Bytes between the weights of two points. */
const POINT_APART = 192;

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
  lower(lowering) {
    const { node } = lowering, { inputs: [x], outputs: [y] } = node;
    const { window, channels, filters } = knownConvolution(node)!;
    const [, height, width] = threeDims(x!), [, out_height, out_width] = threeDims(y!);
    const w = lowering.sharedScratch(16 * (4 * channels * filters + POINT_APART));
    emit(lowering, {
      name: "conv_winograd_weights",
      operands: {
        ...{ w: inputAddress(lowering, 1), y: w, filters, channels },
      },
    });
    const tiles = typeof out_width === "number" ? tilesOf(out_width) : TILES;
    const runs = Math.ceil(channels * 16 * 4 * tiles / RUN_BYTES);
    const run = Math.ceil(channels / runs), pass = Math.min(PASS, filters);
    const points = 16 * 4 * tiles * (pass + run), lines = 4 * 4 * (2 * tiles + 8);
    const bytes = Math.ceil((points + lines + 16) / 4096) * 4096;
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
        ...{ tiles, run, pass, scratch: lowering.scratch(bytes), scratch_bytes: bytes },
        activation: activationOf(node),
      },
    });
  },
};

/** Tiles of a piece, in eights: as few more than a row of the output has as can be. */
function tilesOf(width: number): number {
  const eights = Math.ceil(width / 16);
  return 8 * Math.ceil(eights / Math.ceil(8 * eights / TILES));
}

/** Whether a plane has fewer places than a weight's transform is worth. */
function isSmall({ outputs: [y] }: Node): boolean {
  const [, height, width] = threeDims(y!);
  return typeof height === "number" && typeof width === "number" && height * width < 196;
}
