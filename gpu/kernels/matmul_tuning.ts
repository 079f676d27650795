// Sizes of the matrix products, as data: what `deno run -A tools/bench/gpu_kernels.ts` sweeps. Chosen on
// NVIDIA GPUs; they change speed only.

import type { Capabilities } from "../kernel.ts";

/** What a product for few rows is cut into. */
interface FewRows {
  readonly workgroup: number;
  readonly outputs: number;
  readonly unroll: number;
}

/** Sizes of the products. */
export const MATMUL_TUNING = {
  /** Rows of a workgroup of the products for few rows: one, or some. */
  rowsAtOnce: [1, 4],
  /** Rows up to which those are faster than tiles. */
  fewRows: 8,
  /** Workgroup, outputs of a team and steps written out, by rows. */
  few: {
    q8: (rows: number): FewRows => ({ workgroup: 128, outputs: rows === 1 ? 2 : 1, unroll: 2 }),
    f32: (rows: number): FewRows => ({ workgroup: 128, outputs: rows === 1 ? 2 : 1, unroll: 2 }),
  },
  /** Lanes of a team. */
  lanes: 16,
  /** Subgroups of fewer lanes are of no use. */
  fewestSubgroupLanes: 4,
  /** Tiles of the product for many rows. */
  tile: { blockRows: 4, blockOutputs: 4, across: 16, down: 16 },
  /** Tiles that fill a device: below, columns are split. */
  tiles: 512,
  /** Most splits, and fewest columns of one. */
  mostSplits: 8,
  splitColumns: 512,
} as const;

/** Lanes of a team on a device. */
export function laneCount(
  { subgroupSize }: Capabilities,
  style: "subgroup" | "workgroup",
): number {
  if (style === "workgroup") return MATMUL_TUNING.lanes;
  return Math.min(MATMUL_TUNING.lanes, subgroupSize);
}
