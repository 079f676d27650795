// The WebGPU kernel of convolutions by minimal filtering: packed weights of 3 × 3 are transformed once, while loading; a run
// transforms the source to scratch memory, makes the products of its points as groups of windows of one place, and transforms
// those back. Taken where planes are so large that the weights, four times as many as in the file, are reused enough:
// below, tiles of conv/gemm.ts that are split over channels read less. Those are also taken where a device cannot bind the
// scratch memory. What is infinite spoils the tiles that see it.

import { convGemmShader } from "../../../../gpu/kernels/conv/gemm.ts";
import {
  WINOGRAD_BLOCK,
  winogradFilterShader,
  winogradPoints,
  winogradResultShader,
  winogradSourceShader,
  type WinogradTile,
} from "../../../../gpu/kernels/conv/winograd.ts";
import type { GpuSlice } from "../../../../gpu/kernel.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import type { Convolution } from "../../wasm/lower/conv.ts";
import { isPacked, tileFor } from "./conv.ts";
import { type KnownPlanes, planesOfConv } from "./conv_planes.ts";
import { hasScratch, inputSlice, optionalSlice, outputSlice } from "./lower.ts";
import { planesOf } from "./tiles.ts";

const TILE: WinogradTile = 4;
/** Fewest tiles, channels and filters. */
const LEAST = { tiles: 64, channels: 16, filters: 16 } as const;

/** Sizes of a convolution that is made so. */
interface Tiles extends KnownPlanes {
  readonly across: number;
  readonly ofImage: number;
  /** Of all images. */
  readonly tiles: number;
}

function tilesOf(context: GpuKernelContext): Tiles | undefined {
  const found = isPacked(context) ? planesOfConv(context.node) : undefined;
  if (!found) return undefined;
  const { conv: { window: { kernel, stride, dilation }, channels, filters, groups } } = found;
  const isSmall = kernel.join() === "1,3,3" && [...stride, ...dilation].every((step) => step === 1);
  const isLarge = channels >= LEAST.channels && filters >= LEAST.filters;
  if (groups > 1 || !isSmall || !isLarge) return undefined;
  const [down, across] = found.result.map((size) => Math.ceil(size / TILE)) as [number, number];
  const ofImage = down * across,
    made = { ...found, across, ofImage, tiles: found.images * ofImage };
  const fits = hasScratch(context.capabilities, Object.values(scratchBytes(made)));
  return made.tiles >= LEAST.tiles && fits ? made : undefined;
}

/** Bytes of the points of what tiles see, and of their products. */
function scratchBytes({ conv: { channels, filters }, tiles }: Tiles) {
  const bytes = 4 * winogradPoints(TILE) * tiles;
  return { seen: bytes * channels, products: bytes * filters };
}

/** [points, F, C], rows of a multiple of four channels. */
function transformedWeight(lowering: GpuLowering, { channels, filters }: Convolution): GpuSlice {
  const weight = lowering.node.inputs[1]!, stride = 4 * Math.ceil(channels / 4);
  const { layout, parts } = lowering.weight(weight);
  const count = channels * filters;
  const bytes = 4 * winogradPoints(TILE) * filters * stride;
  return lowering.prepared(`winograd ${TILE} of ${weight.id}`, bytes, (to) => ({
    shader: winogradFilterShader({ tile: TILE, layout }),
    storage: { ...planesOf(layout, parts[0]!.planes), y: to },
    uniforms: { count, channels, taps: 9, stride },
    workgroups: [Math.ceil(count / WINOGRAD_BLOCK)],
  }));
}

function lower(lowering: GpuLowering): void {
  const { attributes, inputs: [, , bias] } = lowering.node;
  const found = tilesOf(lowering)!, { conv, source, result, across, ofImage, tiles } = found;
  const { channels, filters, window } = conv, points = winogradPoints(TILE);
  const bytes = scratchBytes(found), seen = lowering.scratch(bytes.seen);
  const products = lowering.scratch(bytes.products);
  const place = { tiles, tiles_across: across, tiles_of_image: ofImage };
  const blocks = Math.ceil(tiles / WINOGRAD_BLOCK);
  lowering.emit({
    shader: winogradSourceShader({ tile: TILE, repeats: found.repeats }),
    storage: { x: inputSlice(lowering, 0), y: seen },
    uniforms: {
      ...{ ...place, channels, height: source[0], width: source[1] },
      ...{ begin_h: window.begin[1]!, begin_w: window.begin[2]! },
    },
    workgroups: [blocks, channels],
  });
  const isPlain = tiles % 4 === 0, tile = tileFor(filters, isPlain), one = { d: 1, h: 1, w: 1 };
  const axes = (name: string, value: number) =>
    Object.fromEntries(Object.keys(one).map((axis) => [`${name}_${axis}`, value]));
  lowering.emit({
    shader: convGemmShader({
      ...{ tile, hasBias: false, activation: "none", layout: "f32", isSplit: false },
      ...{ wholeQuads: isPlain, isPlain },
      kernel: [1, 1, 1],
    }),
    storage: { x: seen, ...planesOf("f32", [transformedWeight(lowering, conv)]), y: products },
    uniforms: {
      ...{ count: points * filters * tiles, depth: 1, height: 1, width: tiles },
      ...{ out_depth: 1, out_height: 1, out_width: tiles },
      ...{
        ...axes("kernel", 1),
        ...axes("stride", 1),
        ...axes("dilation", 1),
        ...axes("begin", 0),
      },
      ...{ filters: points * filters, groups: points, group_filters: filters },
      ...{ group_channels: channels, places: tiles, all_places: tiles, inner: channels },
    },
    workgroups: [Math.ceil(tiles / tile.places), Math.ceil(filters / tile.filters), points],
  });
  lowering.emit({
    shader: winogradResultShader({
      ...{ tile: TILE, hasBias: bias !== undefined, activation: attributes.activation as string },
    }),
    storage: {
      x: products,
      ...optionalSlice(lowering, { name: "bias", index: 2 }),
      y: outputSlice(lowering),
    },
    uniforms: { ...place, channels: filters, height: result[0], width: result[1] },
    workgroups: [blocks, filters],
  });
}

/** Convolutions of 3 × 3 over large planes. */
export const winogradConvKernel: GpuKernel = {
  name: "gpu_conv_winograd_f32",
  when: (context) => tilesOf(context) !== undefined,
  packs: [1],
  lower,
};
