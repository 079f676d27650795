// What the attention kernels share: sizes of heads, readers of their channels, and how heads are dealt out.

import { type ChannelReader, channelReader, type ChannelType } from "../channel_reader.ts";

/** Sizes of the heads of an attention. */
export interface HeadShape {
  readonly heads: number;
  readonly kvHeads: number;
  /** Channels of a query and a key. */
  readonly width: number;
  /** Channels of a value. */
  readonly valueWidth: number;
  /** Element type of keys and values. */
  readonly dtype: ChannelType;
  /** Where keys and values lie in the memory of others, which is bound once. */
  readonly memory?: SharedMemory;
}

/** Bindings that hold keys and values. */
export interface SharedMemory {
  readonly k: "q" | "k";
  readonly v: "q" | "k" | "v";
}

/** Readers of queries, keys and values. */
export interface HeadReaders {
  readonly q: ChannelReader;
  readonly k: ChannelReader;
  readonly v: ChannelReader;
  /** WGSL types of the bindings of keys and values. */
  readonly storage: Readonly<Record<string, string>>;
}

/** Readers of heads. */
export function headReaders(
  { width, valueWidth, dtype, memory = { k: "k", v: "v" } }: Pick<
    HeadShape,
    "width" | "valueWidth" | "dtype" | "memory"
  >,
): HeadReaders {
  const k = channelReader("k", { dtype, width, memory: memory.k });
  const v = channelReader("v", { dtype, width: valueWidth, memory: memory.v });
  return {
    ...{ q: channelReader("q", { dtype: "f32", width }), k, v },
    storage: {
      ...memory.k === "k" ? { k: k.type } : {},
      ...memory.v === "v" ? { v: v.type } : {},
    },
  };
}

/** Tiles that the query heads of one key head take. */
export function tilesOfGroup(
  { heads, kvHeads, tileHeads }: TiledHeads,
): number {
  return Math.ceil(heads / kvHeads / tileHeads);
}

/** Workgroups that the query heads of all key heads take. */
export function headTiles(heads: TiledHeads): number {
  return heads.kvHeads * tilesOfGroup(heads);
}

/** Query heads, and how many of one key head a workgroup serves. */
export interface TiledHeads extends Pick<HeadShape, "heads" | "kvHeads"> {
  readonly tileHeads: number;
}
