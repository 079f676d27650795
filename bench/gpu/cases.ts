// Products of the GPU bench: for each size the variants of its shader, the chosen one first. A case makes its
// dispatches when it is run, from the timer's memory.

import type { Capabilities, GpuSlice } from "../../gpu/kernel.ts";
import { gemmF32 } from "../../gpu/kernels/matmul/gemm_f32.ts";
import { gemmQ8 } from "../../gpu/kernels/matmul/gemm_q8.ts";
import { gemvF32, isStaged } from "../../gpu/kernels/matmul/gemv_f32.ts";
import { gemvQ8, gemvQ8Steps } from "../../gpu/kernels/matmul/gemv_q8.ts";
import { matmulReduce, REDUCE_RESULTS } from "../../gpu/kernels/matmul/reduce.ts";
import { workgroupOutputs } from "../../gpu/kernels/matmul/rows.ts";
import { tileOutputs, tileRows, type TileShape } from "../../gpu/kernels/matmul/tile.ts";
import { MATMUL_TUNING, type TeamChoice, teamsFor } from "../../gpu/kernels/matmul/tuning.ts";
import { planeNames, unitColumns } from "../../gpu/kernels/matmul/weight_reader.ts";
import { gpuLayoutOf, hasGpuIntegerKernel } from "../../gpu/weight_layout.ts";
import { q8RowBytes } from "../../quant/q8_activation.ts";
import { type BenchCase, type BenchChoice, RUNS } from "./case.ts";
import type { BenchDispatch, GpuTimer } from "./timer.ts";

/** Bytes over which weights rotate. */
const ROTATION = 256 * 2 ** 20;

/** Planes of a weight in the pool. */
export interface Planes {
  readonly bytes: number;
  take(timer: GpuTimer): Record<string, GpuSlice>;
}

/** Planes of a weight of random bits. */
export function planesOf(format: string, columns: number, outputs: number): Planes {
  const layout = gpuLayoutOf(format, columns);
  const groups = Math.ceil(outputs / layout.rowGroup);
  const sizes = layout.planeBytes(columns).map((bytes) => bytes * groups);
  const names = planeNames(layout.id);
  return {
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    // A table is one for all weights: it stays where it is.
    take: (timer) =>
      Object.fromEntries(
        names.map((name, i) => [name, i < sizes.length ? timer.next(sizes[i]!) : timer.table]),
      ),
  };
}

/** Runs over which a weight rotates. */
export function rotations(bytes: number, small: boolean): number {
  return Math.max(4, Math.min(64, Math.ceil((small ? 2 ** 20 : ROTATION) / bytes)));
}

/** Whether a format has integer kernels. */
export function isCodes(format: string): boolean {
  return hasGpuIntegerKernel(format);
}

/** Bytes of a row of activations. */
export function rowBytes(format: string, columns: number): number {
  return isCodes(format) ? q8RowBytes(columns) : 4 * columns;
}

/** Products for few rows. */
export function gemvCases({ capabilities, formats, sweep, small }: BenchChoice): BenchCase[] {
  const sizes = small ? [[256, 64]] : [
    ...[[576, 576], [2048, 2048], [2048, 3072], [2048, 16384], [8192, 2048], [4096, 4096]],
    ...[[11008, 4096], [4096, 28672], [4096, 32000], [2048, 128256]],
  ];
  return formats.flatMap((format) =>
    (sizes as [number, number][]).flatMap(([columns, outputs]) =>
      [1, 4].flatMap((rows) => {
        const chosen = chosenTeam(capabilities, { format, columns, outputs, rows });
        const variants = [
          { ...chosen, variant: "chosen" },
          ...sweep ? teamVariants(capabilities.subgroupSize, rows) : [],
        ];
        return variants.map(({ variant, ...shape }) =>
          gemvCase({
            format,
            columns,
            outputs,
            rows,
            variant,
            shape,
            packedDot: capabilities.packedDot,
            small,
          })
        );
      })
    )
  );
}

/** What is multiplied. */
export interface ProductSize {
  readonly format: string;
  readonly columns: number;
  readonly outputs: number;
  readonly rows: number;
  /** Float activations; default: where the format has no kernels on 8-bit ones. */
  readonly floats?: boolean;
}

/** The team that the engine takes for few rows. */
export function chosenTeam(
  capabilities: Capabilities,
  { format, columns, outputs, rows, floats = !isCodes(format) }: ProductSize,
): TeamChoice {
  const hasSubgroups = capabilities.subgroupSize >= MATMUL_TUNING.fewestSubgroupLanes;
  const layout = gpuLayoutOf(format, columns).id;
  const steps = floats ? Math.ceil(columns / unitColumns(layout)) : gemvQ8Steps(columns);
  const kind = !floats ? "q8" : isStaged(layout) ? "staged" : "f32";
  return teamsFor(capabilities, hasSubgroups ? "subgroup" : "workgroup", {
    ...{ kind, steps, lines: outputs, rows },
  });
}

function teamVariants(
  subgroupSize: number,
  rows: number,
): (TeamChoice & { readonly variant: string })[] {
  return [16, 32, 64, 128].flatMap((lanes) =>
    [1, 2, 4].flatMap((outputs) =>
      [1, 2].flatMap((unroll) =>
        [64, 128, 256].filter((workgroup) => workgroup >= lanes)
          .filter((workgroup) => rows === 1 || workgroup === 128)
          .map((workgroup) => ({
            ...{ lanes, outputs, unroll, workgroup, subgroupSize },
            variant: `lanes ${lanes} outputs ${outputs} unroll ${unroll} workgroup ${workgroup}`,
          }))
      )
    )
  );
}

/** A product for few rows. */
export function gemvCase({ variant, shape, packedDot, small, ...size }: ProductSize & {
  readonly variant: string;
  readonly shape: TeamChoice;
  readonly packedDot: boolean;
  readonly small: boolean;
}): BenchCase {
  const { format, columns, outputs, rows, floats = !isCodes(format) } = size;
  const planes = planesOf(format, columns, outputs);
  const runs = rotations(planes.bytes, small);
  const params = {
    ...shape,
    layout: gpuLayoutOf(format, columns).id,
    columns,
    rows,
    bias: false,
    packedDot,
  };
  return {
    group: "gemv",
    name: `${format} ${columns}×${outputs}, ${rows} rows`,
    variant,
    bytes: planes.bytes,
    operations: 2 * rows * columns * outputs,
    runs,
    dispatches(timer) {
      const shader = floats ? gemvF32(params) : gemvQ8(params);
      const x = timer.room(rows * (floats ? 4 * columns : q8RowBytes(columns)));
      const y = timer.room(4 * rows * outputs);
      return Array.from({ length: runs }, () => ({
        shader,
        storage: { x, ...planes.take(timer), y },
        uniforms: { lines: outputs, first: 0, outputs, rows },
        workgroups: [Math.ceil(outputs / workgroupOutputs(params))],
      }));
    },
  };
}

/** The tile that the engine takes. */
export function chosenTile(
  { format, rows, floats = !isCodes(format) }: Omit<ProductSize, "columns" | "outputs">,
): TileSize {
  const tiles = MATMUL_TUNING.tiles[floats ? "f32" : "q8"];
  const { most: _, enough: __, ...tile } = tiles.find(({ most }) => rows <= most)!;
  return tile;
}

/** A tile, whatever is multiplied. */
type TileSize = Omit<TileShape, "columns">;

/** Tiles that a sweep compares: rows and outputs of a block, invocations across and down. */
const TILE_SWEEP = [
  ...[[4, 4, 16, 16], [8, 4, 16, 16], [4, 8, 16, 16], [8, 4, 16, 8], [8, 8, 16, 8]],
  ...[[4, 4, 16, 8], [8, 4, 16, 4], [4, 4, 16, 4], [4, 4, 8, 4]],
] as [number, number, number, number][];

/** Products for many rows. */
export function gemmCases({ capabilities, formats, sweep, small }: BenchChoice): BenchCase[] {
  const { packedDot } = capabilities;
  const sizes = small
    ? [[256, 128]]
    : [[2048, 2048], [2048, 3072], [2048, 16384], [8192, 2048], [4096, 4096], [4096, 28672]];
  const cases: BenchCase[] = [];
  for (const format of formats) {
    for (const [columns, outputs] of sizes as [number, number][]) {
      for (const rows of small ? [64] : [16, 32, 512]) {
        const size = { format, columns, outputs, rows, packedDot };
        for (const { variant, ...tile } of tilesOf(size, sweep)) {
          for (const splits of outputs <= 4096 || rows < 64 ? [1, 2, 4, 8] : [1]) {
            if (!sweep && splits > 2) continue;
            const name = `${variant}${splits > 1 ? `, ${splits} splits` : ""}`;
            cases.push(gemmCase({ ...size, tile, splits, variant: name }));
          }
        }
      }
    }
  }
  return cases;
}

function tilesOf(size: Pick<ProductSize, "format" | "rows">, sweep: boolean) {
  const steps = isCodes(size.format) ? [1, 2] : [1];
  return [
    { ...chosenTile(size), stepGroups: steps.at(-1)!, variant: "chosen" },
    ...(sweep ? TILE_SWEEP : []).flatMap(([blockRows, blockOutputs, across, down]) =>
      steps.map((stepGroups) => ({
        ...{ blockRows, blockOutputs, across, down, stepGroups },
        variant: `block ${blockRows}×${blockOutputs} by ${down}×${across} step ${stepGroups}`,
      }))
    ),
  ];
}

/** A product for many rows. */
export function gemmCase({ tile, splits, variant, packedDot, ...size }: ProductSize & {
  readonly tile: TileSize & { readonly stepGroups: number };
  readonly splits: number;
  readonly variant: string;
  readonly packedDot: boolean;
}): BenchCase {
  const { format, columns, outputs, rows, floats = !isCodes(format) } = size;
  const planes = planesOf(format, columns, outputs);
  const split = splits > 1;
  const params = {
    ...tile,
    layout: gpuLayoutOf(format, columns).id,
    columns,
    packedDot,
  };
  const results = rows * outputs;
  return {
    group: "gemm",
    name: `${format} ${rows}×${columns}×${outputs}`,
    variant,
    bytes: planes.bytes,
    operations: 2 * rows * columns * outputs,
    runs: RUNS,
    dispatches(timer) {
      const shader = floats ? gemmF32(params) : gemmQ8(params);
      const x = timer.room(rows * (floats ? 4 * columns : q8RowBytes(columns)));
      const y = timer.room(4 * results);
      const partial = split ? timer.room(4 * results * splits) : y;
      const reduce: BenchDispatch = {
        shader: matmulReduce({ bias: false }),
        storage: { partial, y },
        uniforms: { results, outputs, splits },
        workgroups: [Math.ceil(results / REDUCE_RESULTS)],
      };
      return Array.from({ length: RUNS }, (): BenchDispatch[] => [{
        shader,
        storage: { x, ...planes.take(timer), y: partial },
        uniforms: { lines: outputs, first: 0, outputs, rows, splits },
        workgroups: [
          Math.ceil(rows / tileRows(params)),
          Math.ceil(outputs / tileOutputs(params)),
          splits,
        ],
      }, ...split ? [reduce] : []]).flat();
    },
  };
}
