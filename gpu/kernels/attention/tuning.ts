// Sizes of the attention kernels, as data: what `deno run -A bench/gpu/kernels.ts` sweeps. They change
// speed only.

import type { Capabilities, Shader } from "../../kernel.ts";
import type { FreshRow } from "./fresh.ts";
import type { SpanRule } from "./spans.ts";
import { headReaders, type HeadShape, headTiles } from "./heads.ts";
import {
  attentionMatrix,
  attentionMatrixBytes,
  type AttentionMatrixParams,
  attentionMatrixRows,
  hasMatrices,
  matrixQueries,
} from "./matrix.ts";
import { attentionSplit, partialVectors } from "./split.ts";
import {
  attentionTeams,
  attentionTeamsBytes,
  type AttentionTeamsParams,
  attentionTeamsRows,
} from "./teams.ts";
import {
  attentionTile,
  attentionTileBytes,
  type AttentionTileParams,
  attentionTileRows,
} from "./tile.ts";
import { attentionWalk, canWalk, type DirectResult, walkBlock, walkBytes } from "./walk.ts";

/** Sizes of attention. */
export const ATTENTION_TUNING = {
  /** Rows up to which keys are split over workgroups. */
  fewRows: 8,
  /** Most query heads that share a read of keys. */
  splitHeads: 8,
  /** The same of attention_walk, where there are workgroups enough all the same. */
  walkHeads: 4,
  /** Invocations of a workgroup; of attention_walk the first that fits into workgroup memory. */
  splitWorkgroup: 128,
  walkWorkgroups: [256, 128, 64],
  /** Keys of a block: the first that fits into workgroup memory. */
  splitBlocks: [32, 16, 8],
  /** Keys that a walker takes at once. */
  walkTurn: 4,
  /** Keys up to which a single workgroup takes a head, its query heads, keys of a walker and invocations. */
  directKeys: 256,
  directHeads: 1,
  directTurn: 2,
  directWorkgroups: [256, 128, 64],
  /** Workgroups that fill a device, and most splits of a row. */
  split: { workgroups: 1024, mostSplits: 64 },
  walk: { workgroups: 264, mostSplits: 33 },
  /** Queries and keys of a tile, invocations of four queries; the first that fits into workgroup memory. */
  tiles: [[32, 32, 16], [32, 16, 16], [16, 16, 16], [16, 8, 8], [8, 8, 8], [4, 8, 8]],
  /**
   * Teams of lanes where subgroups have so many, and keys of a block: the first that fits into so much workgroup memory,
   * of which a device has some for several workgroups.
   */
  teams: { lanes: 8, each: 4, invocations: 128, turn: 8 },
  /** Rows up to which a team has one query, where rows see no more than each other: with four of each most of a device has none. */
  fewTeamRows: 128,
  teamBlocks: [32, 16, 8],
  teamBytes: 18_000,
  /** Subgroups of a tile on subgroup matrices, and keys of a block: the first that fits into workgroup memory. */
  matrices: { subgroups: 4, blocks: [64, 32] },
  /**
   * By halves on subgroup matrices: fewest queries of all items and heads, channels of queries and values up to which a subgroup has two
   * matrices of queries, and most channels of one; subgroups of a workgroup, the first of which there are enough.
   */
  halves: {
    ...{ queries: 1 << 10, pairChannels: 192, channels: 160 },
    ...{ subgroups: [4, 2, 1] as readonly number[], enough: 264 },
  },
  /** Queries of all items and heads that fill a device with an invocation each, and most channels of one. */
  manyQueries: 1 << 14,
  queryChannels: 80,
  /**
   * Channels of queries and values up to which an invocation has two of them, where there are so many; invocations of a
   * workgroup, keys in its memory, and keys of a turn.
   */
  pairs: { channels: 96, queries: 1 << 15 },
  queryBlock: { invocations: 128, block: 32, turn: 8 },
} as const;

/** How channels are added up. */
export type SplitStyle = "subgroup" | "workgroup";

/** Kernel and sizes of attention for few rows. */
export interface SplitChoice {
  readonly tileHeads: number;
  readonly splits: number;
  /** Keys of a block, and those of it that lie in one page; splits are whole blocks. */
  readonly block: number;
  readonly run: number;
  /** The shader for a rule; of style `subgroup` also for a row that comes out of its product. */
  shader(rule: SpanRule, fresh?: FreshRow): Shader;
}

/**
 * The kernel for few rows, or undefined if there is none for these heads on this device.
 *
 * @param keys Most keys that a row may see.
 * @param rows Rows that there are at least; default 1.
 */
export function splitChoice(
  shape: HeadShape,
  { style, capabilities, keys, rows = 1 }: {
    readonly style: SplitStyle;
    readonly capabilities: Pick<Capabilities, "maxWorkgroupBytes" | "subgroupSize">;
    readonly keys: number;
    readonly rows?: number;
  },
): SplitChoice | undefined {
  return style === "subgroup"
    ? walkChoice(shape, capabilities, { keys, rows })
    : blockChoice(shape, capabilities.maxWorkgroupBytes, { keys, rows });
}

/** What rows a step has. */
interface SplitRows {
  readonly keys: number;
  readonly rows: number;
}

function walkChoice(
  shape: HeadShape,
  { subgroupSize, maxWorkgroupBytes }: Pick<Capabilities, "maxWorkgroupBytes" | "subgroupSize">,
  { keys, rows }: SplitRows,
): SplitChoice | undefined {
  const { walkHeads, walkWorkgroups, walkTurn: turn, walk } = ATTENTION_TUNING;
  if (!canWalk(shape, subgroupSize)) return undefined;
  let tileHeads = headsOfTile(shape, walkHeads);
  while (
    tileHeads > 1 && rows * headTiles({ ...shape, tileHeads }) * walk.mostSplits < walk.workgroups
  ) tileHeads--;
  const { width } = shape;
  const workgroup = walkWorkgroups.find((workgroup) =>
    workgroup >= subgroupSize &&
    walkBytes({ tileHeads, width, workgroup, subgroupSize }) <= maxWorkgroupBytes
  );
  if (workgroup === undefined) return undefined;
  const block = walkBlock({ ...shape, turn, workgroup });
  const splits = splitCount({ ...shape, tileHeads }, { ...walk, block, keys, rows });
  return {
    ...{ tileHeads, block, run: turn, splits },
    shader: (rule, fresh) =>
      attentionWalk({
        ...{ ...shape, rule, tileHeads, turn, splits, workgroup, subgroupSize },
        ...fresh && { fresh },
      }),
  };
}

function blockChoice(
  shape: HeadShape,
  maxWorkgroupBytes: number,
  { keys, rows }: SplitRows,
): SplitChoice | undefined {
  const { splitHeads, splitWorkgroup: workgroup, splitBlocks } = ATTENTION_TUNING;
  const tileHeads = headsOfTile(shape, splitHeads), { k, v } = headReaders(shape);
  if (k.units > workgroup || v.units > workgroup) return undefined;
  const block = splitBlocks.find((keys) =>
    4 * tileHeads * (keys * (k.units + 2) + 2) + 16 * workgroup * v.unitQuads + 32 <=
      maxWorkgroupBytes
  );
  if (block === undefined) return undefined;
  const sizes = { ...ATTENTION_TUNING.split, block, keys, rows };
  const splits = splitCount({ ...shape, tileHeads }, sizes);
  return {
    ...{ tileHeads, block, run: block, splits },
    shader: (rule) => attentionSplit({ ...shape, rule, tileHeads, block, splits, workgroup }),
  };
}

/** Kernel of attention for few rows that see few keys. */
export interface DirectChoice {
  readonly tileHeads: number;
  /** The shader for a rule, and for a row that comes out of its product. */
  shader(rule: SpanRule, result: DirectResult, fresh?: FreshRow): Shader;
}

/** The kernel that needs no merging, or undefined if there is none for these heads on this device. */
export function directChoice(
  shape: HeadShape,
  { subgroupSize, maxWorkgroupBytes, maxWorkgroupSize }: Pick<
    Capabilities,
    "maxWorkgroupBytes" | "maxWorkgroupSize" | "subgroupSize"
  >,
): DirectChoice | undefined {
  const { directHeads, directWorkgroups, directTurn: turn } = ATTENTION_TUNING;
  if (!canWalk(shape, subgroupSize)) return undefined;
  const tileHeads = headsOfTile(shape, directHeads);
  const { width } = shape;
  const workgroup = directWorkgroups.find((workgroup) =>
    workgroup <= maxWorkgroupSize && workgroup >= subgroupSize &&
    walkBytes({ tileHeads, width, workgroup, subgroupSize }) <= maxWorkgroupBytes
  );
  if (workgroup === undefined) return undefined;
  return {
    tileHeads,
    shader: (rule, direct, fresh) =>
      attentionWalk({
        ...{ ...shape, rule, tileHeads, turn, splits: 1, workgroup, subgroupSize, direct },
        ...fresh && { fresh },
      }),
  };
}

/** Query heads of a tile: those of a key head, in equal parts. */
function headsOfTile({ heads, kvHeads }: HeadShape, most: number): number {
  const group = heads / kvHeads;
  return Math.ceil(group / Math.ceil(group / most));
}

function splitCount(
  shape: HeadShape & { readonly tileHeads: number },
  { workgroups, mostSplits, block, keys, rows }: SplitRows & {
    readonly workgroups: number;
    readonly mostSplits: number;
    readonly block: number;
  },
): number {
  const wanted = Math.round(workgroups / headTiles(shape) / rows);
  return Math.max(1, Math.min(mostSplits, wanted, Math.ceil(keys / block)));
}

/** Bytes of scratch memory that the splits of so many rows leave. */
export function splitBytes(
  { heads, valueWidth }: HeadShape,
  { choice: { splits }, rows }: { readonly choice: SplitChoice; readonly rows: number },
): number {
  return 16 * rows * heads * splits * partialVectors(valueWidth);
}

/** Kernel and sizes of attention for many rows. */
export interface ManyChoice {
  /** Whether lanes are teams, of which there are others for few rows. */
  readonly hasTeams?: boolean;
  readonly tileHeads: number;
  /** Rows of a workgroup. */
  readonly rows: number;
  /** The shader for a rule. */
  shader(rule: SpanRule, result: DirectResult): Shader;
}

/** What a device must tell of itself for kernels of many rows. */
type ManyCapabilities = Pick<
  Capabilities,
  "maxWorkgroupBytes" | "maxWorkgroupSize" | "subgroupMatrix" | "subgroupSize"
>;

/**
 * The kernel for many rows, or undefined if there is none for these heads on this device: matrices of subgroups where 8-bit
 * rows are wanted, because they round to float16; teams where lanes can share the heads and no score has to be looked up; else
 * tiles.
 */
export function manyChoice(
  shape: HeadShape,
  { style, capabilities, isMasked, quantize = false, isFew = false }: {
    readonly style: SplitStyle;
    readonly capabilities: ManyCapabilities;
    readonly isMasked: boolean;
    readonly quantize?: boolean;
    /** Whether rows are up to `fewTeamRows`, and see no others. */
    readonly isFew?: boolean;
  },
): ManyChoice | undefined {
  const matrices = quantize && !isMasked ? matrixSizes(shape, capabilities) : undefined;
  if (matrices) {
    return {
      ...{ tileHeads: matrices.tileHeads, rows: attentionMatrixRows(matrices) },
      shader: (rule, { sinks }) => attentionMatrix({ ...shape, ...matrices, rule, sinks }),
    };
  }
  const teams = style === "subgroup" && !isMasked
    ? teamSizes(shape, capabilities, isFew ? 1 : ATTENTION_TUNING.teams.each)
    : undefined;
  if (teams) {
    return {
      ...{ tileHeads: teams.tileHeads, rows: attentionTeamsRows(teams), hasTeams: true },
      shader: (rule, result) => attentionTeams({ ...shape, ...teams, rule, ...result }),
    };
  }
  const tile = tileSizes(shape, capabilities.maxWorkgroupBytes);
  return tile && {
    ...{ tileHeads: tile.tileHeads, rows: attentionTileRows(tile) },
    shader: (rule, { sinks, quantize }) =>
      attentionTile({ ...shape, ...tile, rule, sinks, ...quantize && { quantize: style } }),
  };
}

/** Sizes on subgroup matrices, or undefined if there are none for these heads. */
export function matrixSizes(
  shape: HeadShape,
  { subgroupMatrix, subgroupSize, maxWorkgroupBytes, maxWorkgroupSize }: ManyCapabilities,
):
  | Pick<AttentionMatrixParams, "subgroups" | "block" | "subgroupSize" | "tileHeads">
  | undefined {
  const { subgroups, blocks } = ATTENTION_TUNING.matrices;
  const suits = subgroupMatrix && subgroupSize % 16 === 0 && hasMatrices(shape) &&
    subgroups * subgroupSize <= maxWorkgroupSize;
  const block = blocks.find((block) =>
    attentionMatrixBytes({ ...shape, subgroups, block }) <= maxWorkgroupBytes
  );
  if (!suits || block === undefined) return undefined;
  return {
    subgroups,
    block,
    subgroupSize,
    tileHeads: headsOfTile(shape, matrixQueries(subgroups)),
  };
}

/** Sizes of teams, or undefined if lanes cannot share these heads. */
function teamSizes(
  shape: HeadShape,
  { subgroupSize, maxWorkgroupBytes }: Pick<Capabilities, "maxWorkgroupBytes" | "subgroupSize">,
  each: number,
): Omit<AttentionTeamsParams, keyof HeadShape | "rule" | keyof DirectResult> | undefined {
  const { teamBlocks, teamBytes } = ATTENTION_TUNING, { width, valueWidth } = shape;
  const teams = { ...ATTENTION_TUNING.teams, each }, { lanes, invocations } = teams;
  if (subgroupSize < lanes || width % (4 * lanes) !== 0 || valueWidth % (4 * lanes) !== 0) {
    return undefined;
  }
  const tileHeads = headsOfTile(shape, invocations / lanes * each);
  const block = teamBlocks.find((block) =>
    attentionTeamsBytes({ ...teams, width, valueWidth, tileHeads, block }) <=
      Math.min(maxWorkgroupBytes, teamBytes)
  );
  return block === undefined ? undefined : { ...teams, subgroupSize, tileHeads, block };
}

/** Sizes of tiles, or undefined if none fit. */
export function tileSizes(
  shape: HeadShape,
  maxWorkgroupBytes: number,
): Pick<AttentionTileParams, "queries" | "block" | "across" | "halves" | "tileHeads"> | undefined {
  const { heads, kvHeads, dtype } = shape;
  const halves = dtype === "f16";
  const group = heads / kvHeads;
  for (const [queries, block, across] of ATTENTION_TUNING.tiles) {
    if (attentionTileBytes({ ...shape, queries, block, across, halves }) > maxWorkgroupBytes) {
      continue;
    }
    const tileHeads = Math.ceil(group / Math.ceil(group / queries));
    return { queries, block, across, halves, tileHeads };
  }
  return undefined;
}
