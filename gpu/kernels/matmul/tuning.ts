// Sizes of the matrix products, as data: what `deno run -A bench/gpu/kernels.ts --sweep` measures. Chosen
// on an H100; they change speed only.

import type { Capabilities } from "../../kernel.ts";
import type { TeamSize } from "./team_sum.ts";

/** Sizes of the products. */
export const MATMUL_TUNING = {
  /** Rows of a workgroup of the products for few rows: one, or some. */
  rowsAtOnce: [1, 4],
  /** Rows up to which those are faster than tiles, and up to which of plain floats. */
  fewRows: 8,
  fewPlainRows: 16,
  /** Invocations of their workgroups, and of those of one row of bytes. */
  workgroup: 128,
  rowWorkgroup: 256,
  /** Steps of their loop that are written out. */
  unroll: 2,
  /**
   * Most lanes of a team (more than a subgroup has need a barrier), and invocations that fill a device: where
   * there would be more, a team makes several outputs.
   */
  teams: {
    q8: { mostLanes: 128, invocations: 1 << 16 },
    f32: { mostLanes: 32, invocations: 1 << 18 },
    staged: { mostLanes: 16, invocations: 1 << 16 },
  },
  mostOutputs: 4,
  /** Of several rows, invocations that fill a device, and fewest lanes of a team where there would be more. */
  rowTeams: { invocations: 1 << 17, fewestLanes: 32 },
  /** Invocations of which there are enough even if each team makes the most outputs. */
  manyInvocations: 1 << 17,
  /** Most lanes of a team of matmul_glu_q8. */
  gluLanes: 16,
  /** Widest row that a product may normalise itself: it is kept in workgroup memory. */
  normColumns: 8192,
  /** Subgroups of fewer lanes are of no use. */
  fewestSubgroupLanes: 4,
  /**
   * Tiles of the products of floats for many rows, by plain numbers and by codes, whose steps take more workgroup memory, and
   * of those of integers, for up to so many rows each. Matrices of few outputs have small tiles of few rows, or most of a
   * device has none: a picture and a text through CLIP ViT-B/32, 50 and 11 rows, took 4.5 ms on an H200, 3.7 since.
   */
  tiles: {
    narrow: [
      {
        ...{ most: 64, blockRows: 4, blockOutputs: 4, across: 16, down: 8, step: 32, packed: true },
        ...{ enough: 396, leastColumns: 96, mostSplits: 16 },
      },
      {
        most: Infinity,
        blockRows: 8,
        blockOutputs: 8,
        across: 16,
        down: 8,
        enough: 512,
        leastColumns: 128,
      },
    ],
    plain: [
      { most: 32, blockRows: 4, blockOutputs: 8, across: 16, down: 8, enough: 512 },
      {
        most: Infinity,
        blockRows: 8,
        blockOutputs: 8,
        across: 16,
        down: 8,
        enough: 512,
        leastColumns: 128,
      },
    ],
    f32: [
      { most: 32, blockRows: 4, blockOutputs: 4, across: 16, down: 8, enough: 512 },
      { most: Infinity, blockRows: 8, blockOutputs: 4, across: 16, down: 8, enough: 512 },
    ],
    q8: [
      { most: 16, blockRows: 4, blockOutputs: 4, across: 16, down: 4, enough: 1024 },
      { most: 32, blockRows: 4, blockOutputs: 4, across: 16, down: 8, enough: 1024 },
      { most: Infinity, blockRows: 8, blockOutputs: 4, across: 16, down: 8, enough: 512 },
    ],
  },
  /** Outputs up to which they are few, of plain numbers. */
  narrowOutputs: 4096,
  /** Tiles of subgroup matrices for codes, of which the first is taken that a device has room for. */
  matrixTiles: [
    { down: 2, across: 2, unitRows: 4, unitOutputs: 4 },
    { down: 2, across: 2, unitRows: 2, unitOutputs: 2 },
  ],
  /** Numbers of a matrix from which few rows are integers' beside them: those of self-tests are smaller, and must reach what is tested. */
  fewIntegers: 2 ** 17,
  /**
   * The one for up to so many rows by matrices of so many numbers at least: it reads weights once, in as many splits as fill a device. On
   * an H200 smaller matrices, and fewer rows, are faster by integers: they need no rows made halves.
   */
  fewMatrixTile: {
    ...{ most: 32, numbers: 2 ** 25 + 1, enough: 1024, mostSplits: 16 },
    ...{ down: 1, across: 2, unitRows: 2, unitOutputs: 4 },
  },
  /**
   * Tiles of halves, of rows or places by outputs or filters, and of gated products: the one that makes the fewest outputs in vain,
   * best first. Stable Diffusion's widths are multiples of 320: with 64 by 160 its products take 0.9 of the time on an H200.
   */
  halvesTiles: {
    plain: [
      { down: 2, across: 5, unitRows: 2, unitOutputs: 2 },
      { down: 2, across: 4, unitRows: 2, unitOutputs: 2 },
      { down: 2, across: 2, unitRows: 2, unitOutputs: 2 },
    ],
    gated: [
      { down: 2, across: 4, unitRows: 2, unitOutputs: 4 },
      { down: 4, across: 2, unitRows: 2, unitOutputs: 4 },
      { down: 2, across: 2, unitRows: 2, unitOutputs: 2 },
    ],
  },
  /** Tiles of subgroup matrices that fill a device: below, as below `enough` of the others, columns are split. */
  matricesTiles: 264,
  /** Most splits, and fewest columns of one where its tile does not say it: floats are long about each, so that their products wait for no other. */
  mostSplits: 8,
  splitColumns: { q8: 256, f32: 64 },
} as const;

/** Products for few rows that have teams of their own: of bytes, of floats, of floats by way of workgroup memory. */
export type TeamKind = keyof typeof MATMUL_TUNING.teams;

/** What a product for few rows is cut into. */
export interface TeamChoice extends TeamSize {
  /** Outputs of a team. */
  readonly outputs: number;
  readonly unroll: number;
}

/**
 * Teams for a matrix: lanes for what there is to do in a row, outputs so that the device is not over-full.
 *
 * @param steps Steps that a single lane would take over a row.
 */
export function teamsFor(
  { subgroupSize }: Capabilities,
  style: "subgroup" | "workgroup",
  { kind, steps, lines, rows }: {
    readonly kind: TeamKind;
    readonly steps: number;
    readonly lines: number;
    readonly rows: number;
  },
): TeamChoice {
  const { teams, mostOutputs, manyInvocations, rowWorkgroup } = MATMUL_TUNING;
  const { mostLanes, invocations } = teams[kind];
  // What is staged of several rows must fit the smallest workgroup memory.
  const unroll = kind === "staged" && rows > 1 ? 1 : MATMUL_TUNING.unroll;
  const wide = powerOf2(Math.min(mostLanes, Math.max(4, steps)));
  const workgroup = kind === "q8" && rows === 1 ? rowWorkgroup : MATMUL_TUNING.workgroup;
  const common = { workgroup, unroll, subgroupSize: style === "subgroup" ? subgroupSize : 0 };
  // A device that is over-full in any case does better with two steps a lane than with more outputs.
  if (kind === "q8" && rows === 1 && lines * wide >= mostOutputs * manyInvocations) {
    return { ...common, lanes: wide / 2, outputs: 2 };
  }
  const wanted = powerOf2(Math.max(1, lines * wide / invocations));
  if (rows === 1) return { ...common, lanes: wide, outputs: Math.min(mostOutputs, wanted) };
  // Several rows read more of x than of the weights: several outputs share it.
  const outputs = Math.min(mostOutputs, Math.max(2, wanted));
  if (kind !== "q8") return { ...common, lanes: wide, outputs };
  // Each lane adds up the sums of all rows and outputs in the end, so there are no more lanes than a device needs.
  const { invocations: enough, fewestLanes } = MATMUL_TUNING.rowTeams;
  const most = Math.max(fewestLanes, powerOf2(enough * outputs / lines));
  return { ...common, lanes: Math.min(wide, most), outputs };
}

/** The largest power of 2 that is not above a number. */
function powerOf2(value: number): number {
  return 2 ** Math.floor(Math.log2(value));
}

/** Lanes of a team of matmul_glu_q8, 32 teams of which are a workgroup. */
export function gluLanes({ subgroupSize }: Capabilities, steps: number): number {
  return powerOf2(Math.min(MATMUL_TUNING.gluLanes, subgroupSize, Math.max(4, steps)));
}

/** Groups of 32 columns that a tile of 8-bit products takes at once: two where rows have an even number. */
export function gemmStepGroups(columns: number): 1 | 2 {
  return columns % 64 === 0 ? 2 : 1;
}
