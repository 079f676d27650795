// WebGPU kernels of convolutions of float32, of either direction: products of tiles (implicit GEMM) on packed weights of a
// file or on plain ones, and one element of the result an invocation for what makes no tiles.

import {
  CONV_CHUNK,
  CONV_REDUCE,
  convGemmShader,
  convReduceShader,
  type ConvTile,
  GEMM_TAPS,
} from "../../../../gpu/kernels/conv/gemm.ts";
import type { GpuSlice, GpuWeight } from "../../../../gpu/kernel.ts";
import { convShader, convTransposeShader, WINDOW_BLOCK } from "../../../../gpu/kernels/windows.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import {
  ceilDiv,
  type Dim,
  equal,
  floorDiv,
  max,
  min,
  mul,
  product,
  sub,
} from "../../../graph/dim/mod.ts";
import type { Node } from "../../../graph/graph.ts";
import {
  type Convolution,
  knownConvolution,
  planeOperands,
  windowOperands,
} from "../../wasm/lower/conv.ts";
import type { LoweredWindow } from "../../wasm/lower/conv_setup.ts";
import { transposedOf } from "../../wasm/lower/conv_transpose.ts";
import { countOf } from "../../wasm/lower/lower.ts";
import { areFloat32 } from "../../wasm/lower/strided.ts";
import { groupsFor, inputSlice, optionalSlice, outputSlice } from "./lower.ts";
import { planesOf } from "./tiles.ts";

/** Uniforms of whatever slides over planes. */
export function windowUniforms(
  { inputs: [x], outputs: [y] }: Node,
  window: LoweredWindow,
): Record<string, Dim> {
  return { count: countOf(y!), ...planeOperands(x!, y!), ...windowOperands(window) };
}

/** A convolution of either direction, one dispatch. */
function emitConvolution(
  lowering: GpuLowering,
  { window, filters, channels, groups }: Convolution,
  shaderOf: typeof convShader,
): void {
  const { inputs: [, , bias], outputs: [y], attributes } = lowering.node;
  lowering.emit({
    shader: shaderOf({ hasBias: bias !== undefined, activation: attributes.activation as string }),
    storage: {
      x: inputSlice(lowering, 0),
      weight: inputSlice(lowering, 1),
      ...optionalSlice(lowering, { name: "bias", index: 2 }),
      y: outputSlice(lowering),
    },
    uniforms: {
      ...windowUniforms(lowering.node, window),
      ...{ filters, groups, group_filters: filters / groups, group_channels: channels / groups },
    },
    workgroups: groupsFor(countOf(y!), WINDOW_BLOCK),
  });
}

/** Channels times taps, and filters of a group, that are worth a tile. */
const LEAST_INNER = 16, LEAST_FILTERS = 8;

/** Tiles, for more and more filters. */
const TILES: readonly ConvTile[] = [
  { filters: 16, places: 128, block: [4, 4] },
  { filters: 32, places: 128, block: [4, 4] },
];
/** Of more filters: what windows see is fetched for fewer places, about which more has to be known. */
const WIDE: ConvTile = { filters: 128, places: 64, block: [8, 8] };
const PLAIN: ConvTile = { filters: 64, places: 128, block: [8, 8] };
const NARROW: ConvTile = { filters: 64, places: 64, block: [8, 4] };
/** Part of the filters of wide tiles that there may not be. */
const MOST_WASTE = 0.1;

/** Tiles that fill a device: where there are fewer, channels are split, into so many parts at most. */
const ENOUGH_TILES = 512, MOST_SPLITS = 16;
/** Fewest chunks of a part. */
const SPLIT_CHUNKS = 4;

/** The tile for so many filters. */
export function tileFor(filters: number, isPlain: boolean): ConvTile {
  const small = TILES.find((tile) => filters <= tile.filters);
  if (small || isPlain) return small ?? PLAIN;
  const made = WIDE.filters * Math.ceil(filters / WIDE.filters);
  return made - filters <= MOST_WASTE * filters ? WIDE : NARROW;
}

/** Whether a window is one place that moves by one, over planes of whole quads. */
function isPlainWindow({ kernel, stride, begin }: LoweredWindow): boolean {
  return [...kernel, ...stride].every((size) => size === 1) && begin.every((pad) => pad === 0);
}

/** Channels of a group times taps. */
function innerOf({ window: { kernel }, channels, groups }: Convolution): number {
  return channels / groups * tapsOf(kernel);
}

function tapsOf(kernel: readonly number[]): number {
  return kernel.reduce((a, b) => a * b, 1);
}

/** A convolution that makes tiles. */
function tiledConv({ node }: GpuKernelContext): Convolution | undefined {
  const found = areFloat32(node.inputs.slice(0, 2)) ? knownConvolution(node) : undefined;
  const makesTiles = found !== undefined && innerOf(found) >= LEAST_INNER &&
    found.filters / found.groups >= LEAST_FILTERS && tapsOf(found.window.kernel) <= GEMM_TAPS;
  return makesTiles ? found : undefined;
}

/** Formats whose numbers are not in blocks, which rows of filters would cut. */
const PLAIN_FORMATS: readonly string[] = ["F32", "F16", "BF16"];

/** Whether weights are read as they lie in a file. */
export function isPacked({ node: { inputs: [, w] } }: GpuKernelContext): boolean {
  return w!.role === "weight" && w!.shape.length > 3 && PLAIN_FORMATS.includes(w!.tensor!.format);
}

function emitConvGemm(lowering: GpuLowering, packed?: GpuWeight): void {
  const { inputs: [x, , bias], outputs: [y], attributes } = lowering.node;
  const found = tiledConv(lowering)!;
  const { window, filters, channels, groups } = found, own = filters / groups;
  const places = product(y!.shape.slice(2)), results = countOf(y!);
  const wholeQuads = typeof places === "number" && places % 4 === 0;
  const isPlain = wholeQuads && isPlainWindow(window) &&
    equal(places, product(x!.shape.slice(2)));
  const tile = tileFor(own, isPlain);
  const all_places = mul(x!.shape[0]!, places), inner = innerOf(found);
  const placeTiles = ceilDiv(all_places, tile.places), filterTiles = Math.ceil(own / tile.filters);
  const tiles = mul(placeTiles, filterTiles * groups), chunks = Math.ceil(inner / CONV_CHUNK);
  const most = Math.max(1, Math.min(MOST_SPLITS, Math.floor(chunks / SPLIT_CHUNKS)));
  const splits = max(1, min(most, floorDiv(ENOUGH_TILES, max(1, tiles))));
  const does = { hasBias: bias !== undefined, activation: attributes.activation as string };
  const added = optionalSlice(lowering, { name: "bias", index: 2 }), result = outputSlice(lowering);
  const emit = (isSplit: boolean, wanted: Dim, y: GpuSlice) =>
    lowering.emit({
      shader: convGemmShader({
        ...{ ...does, tile, layout: packed?.layout, isSplit, wholeQuads, isPlain },
        kernel: window.kernel as [number, number, number],
      }),
      storage: {
        x: inputSlice(lowering, 0),
        ...packed
          ? planesOf(packed.layout, packed.parts[0]!.planes)
          : { weight: inputSlice(lowering, 1) },
        ...!isSplit && added,
        y,
      },
      uniforms: {
        ...windowUniforms(lowering.node, window),
        ...{ filters, groups, group_filters: own, group_channels: channels / groups },
        ...{ places, all_places, inner },
        ...isSplit && { results, chunks: ceilDiv(chunks, splits) },
      },
      workgroups: [mul(wanted, placeTiles), filterTiles, isSplit ? mul(groups, splits) : groups],
    });
  const isSplit = min(1, sub(splits, 1));
  if (isSplit !== 1) emit(false, sub(1, isSplit), result);
  if (isSplit === 0) return;
  // Splits times tiles are enough at most.
  const bytes = 4 *
    Math.min(ENOUGH_TILES * tile.places * tile.filters, most * lowering.most(results));
  const partial = lowering.scratch(bytes);
  emit(true, isSplit, partial);
  lowering.emit({
    shader: convReduceShader(does),
    storage: { partial, ...added, y: result },
    uniforms: { results, splits, places, filters },
    workgroups: [mul(isSplit, ceilDiv(results, CONV_REDUCE))],
  });
}

/** Kernels of `conv`; windows of few channels or filters, and those of each channel by itself, are taken one by one. */
export const gpuConvKernels: readonly GpuKernel[] = [{
  name: "gpu_conv_gemm_packed_f32",
  when: (context) => isPacked(context) && tiledConv(context) !== undefined,
  packs: [1],
  lower: (lowering) => emitConvGemm(lowering, lowering.weight(lowering.node.inputs[1]!)),
}, {
  name: "gpu_conv_gemm_f32",
  when: (context) => tiledConv(context) !== undefined,
  lower: (lowering) => emitConvGemm(lowering),
}, {
  name: "gpu_conv_f32",
  when: ({ node }) => areFloat32(node.inputs.slice(0, 2)) && knownConvolution(node) !== undefined,
  lower: (lowering) => emitConvolution(lowering, knownConvolution(lowering.node)!, convShader),
}];

/** Kernels of `conv_transpose`. */
export const gpuConvTransposeKernels: readonly GpuKernel[] = [{
  name: "gpu_conv_transpose_f32",
  when: ({ node }) => areFloat32(node.inputs.slice(0, 2)) && transposedOf(node) !== undefined,
  lower: (lowering) => emitConvolution(lowering, transposedOf(lowering.node)!, convTransposeShader),
}];
