// Lowering of float32 convolutions. Kernels take windows as numbers and sizes as dims, so one plan
// serves every image size; pads that follow from the size (`same_…`) are numbers only where the size
// is.

import type { OtherLayout, WasmKernel, WasmLowering } from "../kernel.ts";
import { convSetup, depthwiseSetup, type LoweredWindow } from "./conv_setup.ts";
import { type Dim, equal, product } from "../../../graph/dim/mod.ts";
import { EPILOGUE_NAMES } from "../../../../functions/unary.ts";
import type { Node, Value } from "../../../graph/graph.ts";
import { emit, inputAddress, isStatic, outputAddress } from "./lower.ts";
import { completeWindow, three, type WindowAttributes, windowPads } from "../../../ops/windows.ts";

/** The window of a node, undefined if its pads are not known yet. */
export function loweredWindow(
  node: Node,
  { kernel, spatial }: { readonly kernel: readonly number[]; readonly spatial: readonly Dim[] },
): LoweredWindow | undefined {
  const given = node.attributes as unknown as WindowAttributes;
  const window = completeWindow({ ...given, kernel });
  const known = spatial.every((size) => typeof size === "number");
  if (window.padding !== "explicit" && !known) return undefined;
  const sizes = spatial.map((size) => typeof size === "number" ? size : 0);
  const begins = windowPads(sizes, window).map(({ begin }) => begin);
  return {
    kernel: three(window.kernel, 1),
    stride: three(window.strides, 1),
    dilation: three(window.dilations, 1),
    begin: three(begins, 0),
  };
}

/** Three spatial dims of [N, C, …], filled up in front. */
export function threeDims(value: Value): [Dim, Dim, Dim] {
  const spatial = value.shape.slice(2);
  return [...new Array<Dim>(3 - spatial.length).fill(1), ...spatial] as [Dim, Dim, Dim];
}

/** Operands of a window. */
export function windowOperands({ kernel, stride, dilation, begin }: LoweredWindow) {
  return {
    ...{ kernel_d: kernel[0], kernel_h: kernel[1], kernel_w: kernel[2] },
    ...{ stride_d: stride[0], stride_h: stride[1], stride_w: stride[2] },
    ...{ dilation_d: dilation[0], dilation_h: dilation[1], dilation_w: dilation[2] },
    ...{ begin_d: begin[0], begin_h: begin[1], begin_w: begin[2] },
  };
}

/** Sizes of a window that looks at single places: all of them are one row, whatever their dims. */
function flatOperands(x: Value) {
  const width = product(x.shape.slice(2));
  return { depth: 1, height: 1, width, out_depth: 1, out_height: 1, out_width: width };
}

/** Whether each place of the output is made of the same place of the input. */
function isPointwise({ kernel, stride, begin }: LoweredWindow, x: Value, y: Value): boolean {
  return [...kernel, ...stride].every((size) => size === 1) && begin.every((pad) => pad === 0) &&
    x.shape.slice(2).every((size, axis) => equal(size, y.shape[2 + axis]!));
}

/** Operands of the spatial sizes of input and output. */
export function planeOperands(x: Value, y: Value) {
  const [depth, height, width] = threeDims(x);
  const [out_depth, out_height, out_width] = threeDims(y);
  return { depth, height, width, out_depth, out_height, out_width };
}

/** A convolution with its window. */
export interface Convolution {
  readonly window: LoweredWindow;
  readonly filters: number;
  readonly channels: number;
  readonly groups: number;
}

/** A convolution of x as it is, of which everything but batch and image is known; else undefined. */
export function knownConvolution(node: Node): Convolution | undefined {
  const repeats = node.attributes.repeats as readonly number[] | undefined;
  return repeats?.length || hasBranch(node)
    ? undefined
    : convolutionOver(node, node.inputs[0]!.shape.slice(2));
}

/** Whether something is added to the sums. */
export function hasBranch({ op, inputs }: Node): boolean {
  return op === "conv" && inputs[3] !== undefined;
}

/** The same over planes of other sizes than those of x. */
export function convolutionOver(node: Node, spatial: readonly Dim[]): Convolution | undefined {
  const [x, w] = node.inputs;
  const channels = x!.shape[1]!, filters = w!.shape[0]!;
  if (!isStatic(channels) || !w!.shape.every(isStatic)) return undefined;
  const window = loweredWindow(node, {
    kernel: w!.shape.slice(2) as number[],
    spatial,
  });
  if (!window) return undefined;
  return {
    window,
    channels,
    filters: filters as number,
    groups: node.attributes.groups as number,
  };
}

function convolutionOf(node: Node): Convolution | undefined {
  const [x, w] = node.inputs;
  return x!.dtype === "f32" && w!.dtype === "f32" ? knownConvolution(node) : undefined;
}

/** Number of a node's activation in kernels. */
export function activationOf({ attributes }: Node): number {
  return (EPILOGUE_NAMES as readonly unknown[]).indexOf(attributes.activation);
}

/** A convolution, or one of single places with a branch, for which there is no better kernel. */
function directConvolution(node: Node): Convolution | undefined {
  if (!hasBranch(node)) return convolutionOf(node);
  const plain = { ...node, inputs: node.inputs.slice(0, 3) }, found = convolutionOf(plain);
  const isPoint = found?.groups === 1 && found.window.kernel.every((size) => size === 1);
  return isPoint && !isOfFewPlaces(plain) ? found : undefined;
}

/** Any float32 convolution. */
export const convKernel: WasmKernel = {
  name: "conv_f32",
  when: ({ node }) => directConvolution(node) !== undefined,
  laysOut: blockedLayout,
  lower(lowering) {
    const found = directConvolution(lowering.node)!, w = blockedWeights(lowering, found);
    const sizes = convOperands(lowering, found), { window, channels, groups } = found;
    const setup = convSetup(lowering, {
      ...{ window, channels: channels / groups },
      ...{ width: sizes.out_width, isPlane: sizes.depth === 1 && sizes.out_depth === 1 },
    });
    const operands = { ...sizes, w, setup };
    emit(lowering, { name: "conv", operands });
  },
};

/** Weights in blocks, see wasm/assembly/network/conv_blocks.ts. */
function blockedLayout(node: Node): OtherLayout {
  return { bytes: 4 * (node.inputs[1]!.shape[0] as number) * tapsOf(node), inPlace: true };
}

/** Their address. */
function blockedWeights(lowering: WasmLowering, { filters, groups }: Convolution): number {
  const taps = tapsOf(lowering.node);
  return lowering.prepared(lowering.node.inputs[1]!, {
    ...blockedLayout(lowering.node),
    emit(w, y) {
      const scratch = lowering.scratch(MOST_ROWS * 4 * taps);
      const operands = { w, y, groups, filters: filters / groups, taps, scratch };
      emit(lowering, { name: "conv_weights", operands });
    },
  });
}

/** Filters of a block. */
const MOST_ROWS = 5;

/** Places and taps of what `conv_few` takes. */
const MOST_PLACES = 8;
const MOST_TAPS = 16_384;

function isOfFewPlaces(node: Node): boolean {
  const places = product(node.outputs[0]!.shape.slice(2));
  return isStatic(places) && places <= MOST_PLACES && tapsOf(node) <= MOST_TAPS;
}

/** At most eight places in an item. */
export const fewPlacesKernel: WasmKernel = {
  name: "conv_few_f32",
  when: ({ node }) => convolutionOf(node) !== undefined && isOfFewPlaces(node),
  lower(lowering) {
    const bytes = MOST_PLACES * 4 * Math.ceil(tapsOf(lowering.node) / 4) * 4;
    emit(lowering, {
      name: "conv_few",
      operands: {
        ...convOperands(lowering, convolutionOf(lowering.node)!),
        scratch: lowering.scratch(bytes),
      },
    });
  },
};

/** Elements of a weight's filter. */
function tapsOf({ inputs: [, w] }: Node): number {
  return product(w!.shape.slice(1)) as number;
}

/** Addresses of what every convolution reads and writes, and its batch. */
export function tensorOperands(lowering: WasmLowering) {
  return {
    x: inputAddress(lowering, 0),
    w: inputAddress(lowering, 1),
    b: inputAddress(lowering, 2),
    y: outputAddress(lowering),
    batch: lowering.node.inputs[0]!.shape[0]!,
  };
}

function convOperands(lowering: WasmLowering, { window, ...sizes }: Convolution) {
  const { inputs: [x], outputs: [y] } = lowering.node;
  return {
    ...tensorOperands(lowering),
    ...sizes,
    ...isPointwise(window, x!, y!) ? flatOperands(x!) : planeOperands(x!, y!),
    ...windowOperands(window),
    activation: activationOf(lowering.node),
  };
}

/** As many groups as channels, over rows and planes. */
export const depthwiseKernel: WasmKernel = {
  name: "conv_depthwise_f32",
  when({ node }) {
    const found = convolutionOf(node);
    return found !== undefined && found.channels > 1 && found.groups === found.channels &&
      found.window.kernel[0] === 1 &&
      node.inputs[0]!.shape.length <= 4;
  },
  lower(lowering) {
    const { inputs: [x], outputs: [y] } = lowering.node;
    const { window, channels, filters } = convolutionOf(lowering.node)!;
    const { kernel, stride, dilation, begin } = window;
    const [, height, width] = threeDims(x!), [, out_height, out_width] = threeDims(y!);
    emit(lowering, {
      name: "conv_depthwise",
      operands: {
        x: inputAddress(lowering, 0),
        w: inputAddress(lowering, 1),
        b: inputAddress(lowering, 2),
        y: outputAddress(lowering),
        batch: x!.shape[0]!,
        ...{ channels, filters, height, width, out_height, out_width },
        ...{ kernel_h: kernel[1], kernel_w: kernel[2], stride_h: stride[1], stride_w: stride[2] },
        ...{
          dilation_h: dilation[1],
          dilation_w: dilation[2],
          begin_h: begin[1],
          begin_w: begin[2],
        },
        setup: depthwiseSetup(lowering, window),
        activation: activationOf(lowering.node),
      },
    });
  },
};

/** Scratch memory is handed out in units of 64 bytes. */
export function roundUp64(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}
