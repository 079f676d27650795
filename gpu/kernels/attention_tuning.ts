// Sizes of the attention kernels, as data: what `deno run -A tools/bench/gpu_kernels.ts` sweeps. They change
// speed only.

import { attentionTileBytes, type AttentionTileParams } from "./attention_tile.ts";
import { type HeadShape, headTiles, partialFloats, type SplitParams } from "./attention_split.ts";
import { channelReader } from "./channel_reader.ts";

/** Sizes of attention. */
export const ATTENTION_TUNING = {
  /** Rows up to which keys are split over workgroups. */
  fewRows: 8,
  /** Most query heads that share a read of keys. */
  splitHeads: 8,
  splitWorkgroup: 128,
  /** Blocks of keys to choose from, by how channels are added up. */
  splitBlocks: { subgroup: [64, 32], workgroup: [32, 16, 8] },
  /** Workgroups that fill a device, and most splits of a row. */
  splitWorkgroups: 1024,
  mostSplits: 64,
  /** Queries and keys of a tile; the first that fits into workgroup memory. */
  tiles: [[32, 32], [32, 16], [16, 16], [16, 8], [8, 8], [4, 8]],
} as const;

/** Sizes that fit a device. */
export type SplitSizes = Pick<
  SplitParams,
  "tileHeads" | "block" | "splits" | "workgroup" | "subgroups"
>;

/**
 * Sizes of the kernel for few rows, or undefined if none fit.
 *
 * @param keys Most keys that a row may see.
 */
export function splitSizes(
  shape: HeadShape,
  style: "subgroup" | "workgroup",
  { keys, maxWorkgroupBytes }: { readonly keys: number; readonly maxWorkgroupBytes: number },
): SplitSizes | undefined {
  const { splitHeads, splitWorkgroup: workgroup, splitBlocks, splitWorkgroups, mostSplits } =
    ATTENTION_TUNING;
  const { heads, kvHeads, dtype, width, valueWidth } = shape;
  const group = heads / kvHeads;
  const tileHeads = Math.ceil(group / Math.ceil(group / splitHeads));
  const k = channelReader("k", dtype, width), v = channelReader("v", dtype, valueWidth);
  if (k.units > workgroup || v.units > workgroup) return undefined;
  const subgroups = style === "subgroup";
  const block = splitBlocks[style].find((keys) => {
    const lanes = subgroups ? 0 : k.units + 1;
    const bytes = 4 * tileHeads * (keys * (1 + lanes) + 2) + 16 * workgroup * v.unitQuads + 32;
    return bytes <= maxWorkgroupBytes;
  });
  if (block === undefined) return undefined;
  const wanted = Math.round(splitWorkgroups / headTiles({ heads, kvHeads, tileHeads }));
  const splits = Math.max(1, Math.min(mostSplits, wanted, Math.ceil(keys / block)));
  return { tileHeads, block, splits, workgroup, subgroups };
}

/** Bytes of scratch memory that the splits of so many rows leave. */
export function splitBytes(
  { heads, valueWidth }: HeadShape,
  { splits }: SplitSizes,
  rows: number,
): number {
  return 4 * rows * heads * splits * partialFloats(valueWidth);
}

/** Sizes of the kernel for many rows, or undefined if none fit. */
export function tileSizes(
  shape: HeadShape,
  maxWorkgroupBytes: number,
): Pick<AttentionTileParams, "queries" | "block" | "tileHeads"> | undefined {
  const { heads, kvHeads } = shape;
  const group = heads / kvHeads;
  for (const [queries, block] of ATTENTION_TUNING.tiles) {
    if (attentionTileBytes({ ...shape, queries, block }) > maxWorkgroupBytes) continue;
    const tileHeads = Math.ceil(group / Math.ceil(group / queries));
    return { queries, block, tileHeads };
  }
  return undefined;
}
