// The WebGPU kernel of convolutions by filters of float16 on subgroup matrices: x becomes halves in scratch memory, filters are
// rearranged once, while loading. Where there are too few tiles to fill a device, taps and channels are split.

import {
  convHalvesShader,
  FILTER_BLOCK,
  filterHalvesShader,
  HALVES_PLACES,
  planeHalves,
  planeTopsShader,
  TOP_PARTS,
} from "../../../../gpu/kernels/conv/halves.ts";
import { CONV_REDUCE, convReduceShader } from "../../../../gpu/kernels/conv/gemm.ts";
import {
  EIGHTS,
  type HalvesTile,
  halvesTileOf,
} from "../../../../gpu/kernels/matmul/halves_tile.ts";
import { STEP } from "../../../../gpu/kernels/matmul/matrix_tile.ts";
import { MATMUL_TUNING } from "../../../../gpu/kernels/matmul/tuning.ts";
import type { GpuSlice } from "../../../../gpu/kernel.ts";
import type { GpuKernel, GpuKernelContext, GpuLowering } from "../kernel.ts";
import { isPacked } from "./conv.ts";
import { type KnownPlanes, planesOfConv } from "./conv_planes.ts";
import { hasScratch, inputSlice, optionalSlice, outputSlice } from "./lower.ts";
import { matrixSizes, planesOf, splitsOf } from "./tiles.ts";

/** Fewest places, channels and filters: tiles of fewer are mostly empty. */
const LEAST = { places: 64, channels: 16, filters: 4 } as const;

interface HalvesConv extends KnownPlanes {
  readonly tile: HalvesTile;
  readonly taps: number;
  /** Vectors of eight halves of the channels of a tap: whole steps. */
  readonly eighths: number;
}

function halvesConv(context: GpuKernelContext): HalvesConv | undefined {
  const { node: { inputs: [, w] }, capabilities } = context;
  if (!isPacked(context) || w!.tensor!.format !== "F16") return undefined;
  const found = planesOfConv(context.node);
  const tile = found && halvesTileOf(capabilities, { outputs: found.conv.filters });
  if (!tile) return undefined;
  const { conv: { window, channels, filters, groups }, images, result } = found;
  const isLarge = images * result[0] * result[1] >= LEAST.places &&
    channels >= LEAST.channels && filters >= LEAST.filters;
  if (groups > 1 || !isLarge) return undefined;
  const taps = window.kernel[1] * window.kernel[2], eighths = EIGHTS * Math.ceil(channels / STEP);
  const made = { ...found, tile, taps, eighths };
  return hasScratch(capabilities, [bytesOfX(made)]) ? made : undefined;
}

/** Bytes of x as halves. */
function bytesOfX({ tile, images, repeats, source, eighths }: HalvesConv): number {
  return 16 * tile.parts * images * source[0] / repeats[0] * source[1] / repeats[1] * eighths;
}

/** Filters as the product reads them. */
function filtersOf(lowering: GpuLowering, { conv, taps, eighths }: HalvesConv): GpuSlice {
  const weight = lowering.node.inputs[1]!, { channels, filters } = conv;
  const { layout, parts } = lowering.weight(weight), { planes } = parts[0]!;
  if (taps === 1 && 8 * eighths === channels) return planes[0]!;
  const count = filters * taps * eighths;
  return lowering.prepared(`halves of ${weight.id}`, 16 * count, (to) => ({
    shader: filterHalvesShader(layout),
    storage: { ...planesOf(layout, planes), y: to },
    uniforms: { count, channels, taps, eighths },
    workgroups: [Math.ceil(count / FILTER_BLOCK)],
  }));
}

/** Emits what makes x halves. */
function halvesOfX(
  lowering: GpuLowering,
  found: HalvesConv,
): { readonly x: GpuSlice; readonly tops: GpuSlice } {
  const { tile, conv: { channels }, images, repeats, source, eighths } = found;
  const places = source[0] / repeats[0] * source[1] / repeats[1];
  const x = lowering.scratch(bytesOfX(found));
  const part_tops = lowering.scratch(4 * images * TOP_PARTS), tops = lowering.scratch(4 * images);
  lowering.emit({
    shader: planeTopsShader,
    storage: { x: inputSlice(lowering, 0), tops: part_tops },
    uniforms: { size: channels * places },
    workgroups: [TOP_PARTS, images],
  });
  lowering.emit({
    shader: planeHalves(tile.parts),
    storage: { x: inputSlice(lowering, 0), part_tops, y: x, tops },
    uniforms: { channels, eighths, places },
    workgroups: [Math.ceil(places / HALVES_PLACES), eighths / EIGHTS, images],
  });
  return { x, tops };
}

function lower(lowering: GpuLowering): void {
  const { node: { inputs: [, , bias], attributes } } = lowering;
  const found = halvesConv(lowering)!, { conv, images, repeats, source, result, taps } = found;
  const { filters, window: { kernel, stride, dilation, begin } } = conv, { eighths, tile } = found;
  const sizes = matrixSizes(tile), { splitColumns } = MATMUL_TUNING;
  const places = result[0] * result[1], all_places = images * places;
  const results = all_places * filters;
  const rowTiles = Math.ceil(all_places / sizes.rows);
  const splits = splitsOf(
    { ...sizes, splitColumns: splitColumns.q8 },
    { rowTiles, outputs: filters, columns: 8 * eighths * taps },
  ) as number;
  const isSplit = splits > 1;
  const does = { hasBias: bias !== undefined, activation: attributes.activation as string };
  const added = optionalSlice(lowering, { name: "bias", index: 2 });
  const w = filtersOf(lowering, found), halves = halvesOfX(lowering, found);
  const y = isSplit ? lowering.scratch(4 * splits * results) : outputSlice(lowering);
  lowering.emit({
    shader: convHalvesShader({ ...tile, ...does, isSplit, repeats }),
    storage: { ...halves, w, ...!isSplit && added, y },
    uniforms: {
      ...{ eighths, taps, kernel_w: kernel[2], height: source[0], width: source[1] },
      ...{ stride_h: stride[1], stride_w: stride[2] },
      ...{ dilation_h: dilation[1], dilation_w: dilation[2] },
      ...{ begin_h: begin[1], begin_w: begin[2], out_width: result[1], places, all_places },
      ...{ filters, results, splits },
    },
    workgroups: [rowTiles, Math.ceil(filters / sizes.outputs), splits],
  });
  if (!isSplit) return;
  lowering.emit({
    shader: convReduceShader(does),
    storage: { partial: y, ...added, y: outputSlice(lowering) },
    uniforms: { results, splits, places, filters },
    workgroups: [Math.ceil(results / CONV_REDUCE)],
  });
}

/** Convolutions of planes by filters of float16, where a device has subgroup matrices. */
export const halvesConvKernel: GpuKernel = {
  name: "gpu_conv_halves_f32",
  when: (context) => halvesConv(context) !== undefined,
  packs: [1],
  lower,
};
