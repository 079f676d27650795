// The products for many rows on WebGPU: which tile a matrix is made with on a device, and in how many parts its columns
// are cut.

import type { Capabilities, GpuWeight, Shader } from "../../../../gpu/kernel.ts";
import { gemmMatrix, matrixBytes } from "../../../../gpu/kernels/matmul/gemm_matrix.ts";
import {
  matrixOutputs,
  matrixRows,
  type MatrixTile,
  STEP,
} from "../../../../gpu/kernels/matmul/matrix_tile.ts";
import { gemmHalves } from "../../../../gpu/kernels/matmul/gemm_halves.ts";
import { halvesTileOf } from "../../../../gpu/kernels/matmul/halves_tile.ts";
import type { Addends } from "../../../../gpu/kernels/matmul/rows.ts";
import { tileOutputs, tileRows } from "../../../../gpu/kernels/matmul/tile.ts";
import { type GemmF32Params, PLAIN_COLUMNS } from "../../../../gpu/kernels/matmul/gemm_f32.ts";
import { MATMUL_TUNING } from "../../../../gpu/kernels/matmul/tuning.ts";
import { planeNames, unitColumns } from "../../../../gpu/kernels/matmul/weight_reader.ts";
import { type Dim, floorDiv, max, min, mul, product } from "../../../graph/dim/mod.ts";
import type { GpuLowering } from "../kernel.ts";

/** A product for many rows. */
export interface TileProduct {
  /** Rows up to which it is taken, where the one before is not. */
  readonly most: number;
  /** The shader, and what it adds where there is one split; default: nothing. */
  shader(added?: Addends): Shader;
  /** Uniforms that others do not have. */
  readonly uniforms?: Readonly<Record<string, number>>;
  /** Which rows are made halves first (matrix_product.ts). */
  readonly inHalves?: "codes" | "floats";
  /** Rows of a tile. */
  readonly rows: number;
  /** Outputs of a tile. */
  readonly outputs: number;
  /** Tiles that fill a device. */
  readonly enough: number;
  /** Fewest columns of a split, and most splits; default: `MATMUL_TUNING`'s. */
  readonly splitColumns: number;
  readonly mostSplits?: number | undefined;
}

/** A row of the table of tiles. */
interface TileSizes
  extends
    Pick<GemmF32Params, "blockRows" | "blockOutputs" | "across" | "down" | "step" | "packed">,
    Pick<TileProduct, "most" | "enough" | "mostSplits"> {
  /** Fewest columns of a split, where they are others than usual. */
  readonly leastColumns?: number;
}

/** The tiles of vectors that all devices have: the fewer rows there are, the lower they are. */
export function vectorTiles(
  { layout, columns, rows, parts }: GpuWeight,
  { arithmetic, make }: {
    readonly arithmetic: keyof typeof MATMUL_TUNING.splitColumns;
    make(shape: GemmF32Params): Shader;
  },
): TileProduct[] {
  const { tiles, splitColumns, narrowOutputs } = MATMUL_TUNING;
  const isPlain = arithmetic === "f32" && unitColumns(layout) <= PLAIN_COLUMNS;
  const wholeQuads = areWholeQuads({ rows, parts });
  const plain = rows <= narrowOutputs ? "narrow" : "plain";
  const chosen: readonly TileSizes[] = tiles[isPlain ? plain : arithmetic];
  return chosen.map(({ most, enough, mostSplits, leastColumns, ...tile }) => ({
    ...{ most, enough, mostSplits, splitColumns: leastColumns ?? splitColumns[arithmetic] },
    shader: (added) =>
      make({ ...tile, layout, columns, ...added && { added }, ...wholeQuads && { wholeQuads } }),
    rows: tileRows(tile),
    outputs: tileOutputs(tile),
  }));
}

/** Whether rows of results are whole quads, and so are the lines of each part. */
function areWholeQuads({ rows, parts }: Pick<GpuWeight, "rows" | "parts">): boolean {
  return [rows, ...parts.map(({ firstRow }) => firstRow)].every((line) => line % 4 === 0);
}

/** Most bindings of such a tile beside those of a weight: rows as halves, what they are scaled by, results, and two addends. */
const BESIDE_PLANES = 5;

/** The tiles of subgroup matrices that a device has room for: none, or for more and more rows, few rows only of large matrices. */
export function matrixTiles(weight: GpuWeight, capabilities: Capabilities): TileProduct[] {
  const { matrixTiles, fewMatrixTile: { numbers, ...few }, splitColumns } = MATMUL_TUNING;
  const { layout, columns, rows } = weight, { subgroupSize, maxStorageBindings } = capabilities;
  if (planeNames(layout).length + BESIDE_PLANES > maxStorageBindings) return [];
  const wholeQuads = areWholeQuads(weight);
  const large = matrixTiles.find((tile) => hasRoom(tile, capabilities));
  if (!large) return [];
  const takesFew = columns * rows >= numbers && hasRoom(few, capabilities);
  const all: readonly (MatrixTile & Partial<TileProduct>)[] = takesFew ? [few, large] : [large];
  return all.map(({ down, across, unitRows, unitOutputs, ...more }) => {
    const tile = { down, across, unitRows, unitOutputs };
    return {
      ...{ ...matrixSizes(tile), ...more },
      shader: (added) => gemmMatrix({ ...tile, layout, subgroupSize, wholeQuads, added }),
      uniforms: { groups: columns / STEP },
      inHalves: "codes",
      splitColumns: splitColumns.q8,
    };
  });
}

/** Whether a weight is halves that matrices multiply as they lie, in whole steps. */
export function canBeHalves({ layout, columns }: GpuWeight): boolean {
  return layout === "f16" && columns % STEP === 0;
}

/** The same for floats by weights of float16. */
export function halvesTile(weight: GpuWeight, capabilities: Capabilities): TileProduct | undefined {
  const { splitColumns } = MATMUL_TUNING;
  const tile = halvesTileOf(capabilities, { outputs: weight.rows });
  if (!tile || !canBeHalves(weight)) return undefined;
  return {
    ...matrixSizes(tile),
    shader: (added) => gemmHalves({ ...tile, added }),
    uniforms: { eighths: weight.columns / 8 },
    inHalves: "floats",
    splitColumns: splitColumns.q8,
  };
}

function hasRoom(
  tile: MatrixTile,
  { subgroupMatrix, subgroupSize, maxWorkgroupBytes, maxWorkgroupSize }: Capabilities,
): boolean {
  return subgroupMatrix && matrixBytes(tile) <= maxWorkgroupBytes &&
    subgroupSize * tile.down * tile.across <= maxWorkgroupSize;
}

/** What is said of products on matrices by their tile. */
export function matrixSizes(
  tile: MatrixTile,
): Pick<TileProduct, "most" | "rows" | "outputs" | "enough"> {
  return {
    ...{ most: Infinity, enough: MATMUL_TUNING.matricesTiles },
    ...{ rows: matrixRows(tile), outputs: matrixOutputs(tile) },
  };
}

/** Into how many parts the columns are cut, so that about as many tiles are made as a device wants. */
export function splitsOf(
  tile: Pick<TileProduct, "outputs" | "enough" | "splitColumns" | "mostSplits">,
  { rowTiles, outputs, columns }: {
    readonly rowTiles: Dim;
    readonly outputs: number;
    readonly columns: number;
  },
): Dim {
  const lineTiles = Math.ceil(outputs / tile.outputs);
  const { mostSplits = MATMUL_TUNING.mostSplits } = tile;
  const most = Math.max(1, Math.min(mostSplits, Math.floor(columns / tile.splitColumns)));
  return max(1, min(most, floorDiv(tile.enough, max(1, mul(rowTiles, lineTiles)))));
}

/** Rows of x as a dim. */
export function rowsOfX({ node: { inputs: [x] } }: Pick<GpuLowering, "node">): Dim {
  return product(x!.shape.slice(0, -1));
}

/** Planes of a weight by the names of their bindings. */
export function planesOf<Slice>(layout: string, planes: readonly Slice[]): Record<string, Slice> {
  return Object.fromEntries(planeNames(layout).map((name, i) => [name, planes[i]!]));
}
