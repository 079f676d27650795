// From patches of a picture to the stream. A convolution whose step is its kernel is a product with each patch, whose
// numbers the caller lays side by side (colour by colour, row by row), so that patches are rows of a step as tokens are.
// Rows in front of them (class token, registers) have patches of zeros; what is theirs stands in the table that is added.

import { UnsupportedError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { countOf } from "../../formats/derived_tensor.ts";
import type { Value } from "../../graph/graph.ts";
import { type Grid, pictureRows } from "../derived_tensors/picture_rows.ts";
import type { Hyperparameters } from "../hparams.ts";
import { adapted } from "./adapted.ts";
import { biasOf, type BlockContext, needed, norm, scaled } from "./context.ts";

/** How a picture becomes rows. */
export interface PictureGrid extends Grid {
  /** Rows in front of the patches. */
  readonly leading: number;
  /** Edge of a patch, in pixels. */
  readonly patch: number;
  readonly channels: number;
  /** Pictures that a patch is of, one behind the other: those of a film, or the same one so many times. */
  readonly frames: number;
}

/** Numbers of a patch. */
export function patchNumbers({ channels, frames, patch }: PictureGrid): number {
  return channels * frames * patch ** 2;
}

/** Width and height of pictures. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** What of the surroundings says how pictures are cut. */
type GridContext = Pick<BlockContext, "params" | "spec" | "tensors" | "file">;

/**
 * How pictures of a size become rows; by default, of the size that the model was trained for.
 *
 * @throws {UnsupportedError} If the size is no multiple of a patch.
 */
export function pictureGrid(context: GridContext, size?: PictureSize): PictureGrid {
  const { params: { hidden, channels = 3, frames = 1 }, file } = context;
  const { imageSize, patchSize: patch } = needed(context, ["imageSize", "patchSize"]);
  const { width, height } = size ?? { width: imageSize, height: imageSize };
  const leading = leadingRows(context).reduce((sum, { shape }) => sum + countOf(shape) / hidden, 0);
  // What is left beside whole patches a convolution does not see.
  const rows = Math.floor(height / patch), columns = Math.floor(width / patch);
  if (rows === 0 || columns === 0) {
    throw new UnsupportedError(`pictures of ${width} × ${height} hold no patch of ${patch}`, {
      file,
    });
  }
  return { rows, columns, leading, patch, channels, frames };
}

/** patches f32[M, channels · frames · patch²], positions i32[M] → f32[M, hidden]. */
export function patchEmbedding(
  context: BlockContext,
  { patches, grid }: { readonly patches: Value; readonly grid: PictureGrid },
): Value {
  const { builder, spec, tensors, params: { hidden }, inputs } = context;
  const { scale, norm: role, patches: { bias: rule } = { bias: "none" } } = spec.embedding;
  const columns = patches.shape[1] as number, name = "embedding";
  const frames = grid.frames > 1 ? [grid.frames] : [];
  const shape = [hidden, grid.channels, ...frames, grid.patch, grid.patch];
  const stored = tensors.get("embedding", shape);
  const flat = { ...stored, shape: [hidden, columns] };
  const table = rowsTable(context, grid);
  const bias = table ? undefined : biasOf(context, { role: "embedding", rule, shape: [hidden] });
  const matrix = builder.weight(flat.name, flat);
  const y = builder.op("matmul", bias ? [patches, matrix, bias] : [patches, matrix], {}, name)[0]!;
  let x = adapted(context, { x: patches, y }, { role: "embedding", name, shape: flat.shape });
  x = scaled(context, { x, factor: scale, name: "embedding.scaled" });
  if (table) {
    const weights = builder.weight(table.name, table);
    const added = builder.op("embed", [inputs.positions, weights], {}, "embedding.rows")[0]!;
    x = builder.op("binary", [x, added], { kind: "add" }, "embedding.sum")[0]!;
  }
  return role === undefined ? x : norm(context, x, { role, name: "embedding.norm", size: hidden });
}

/** Tensors of the rows in front of the patches, [1, rows, hidden] each. */
function leadingRows({ spec, tensors, params: { hidden } }: GridContext): TensorInfo[] {
  return (spec.embedding.patches?.leading ?? []).map((role) => {
    const shape = tensors.stored(role)?.tensors[0]?.shape ?? [hidden];
    return tensors.get(role, [...Array(3 - shape.length).fill(1), ...shape.slice(0, -1), hidden]);
  });
}

/** What is added by position; undefined where a family has nothing but a bias. */
function rowsTable(context: BlockContext, grid: PictureGrid): TensorInfo | undefined {
  const { spec, tensors, params: { hidden } } = context;
  const { bias: rule, positions } = spec.embedding.patches!;
  const leading = leadingRows(context);
  if (leading.length === 0 && !positions) return undefined;
  const hasBias = rule === "required" || rule === "present" && tensors.has("embedding_bias");
  return pictureRows({
    ...{ hidden, grid, leading },
    bias: hasBias ? tensors.get("embedding_bias", [hidden]) : undefined,
    positions: positions && {
      ...positions,
      ...storedPlaces(context, { grid, leading: positions.leading, resized: positions.resized }),
    },
  });
}

/** The table of places and its own grid, which is that of the pictures that the model was trained for. */
function storedPlaces(
  context: BlockContext,
  { grid, leading, resized }: {
    readonly grid: Grid;
    readonly leading: number;
    readonly resized: string | undefined;
  },
): { readonly tensor: TensorInfo; readonly grid: Grid; readonly resized: never | undefined } {
  const { tensors, params, file } = context;
  const { hidden } = params as Hyperparameters;
  const own = pictureGrid(context);
  if (resized === undefined && (own.rows !== grid.rows || own.columns !== grid.columns)) {
    throw new UnsupportedError(
      `its table of places is for ${own.rows} × ${own.columns} patches, and pictures of ` +
        `${grid.rows} × ${grid.columns} are asked for`,
      { file, remedy: "Prepare pictures in the size of the model (preprocessor_config.json)" },
    );
  }
  const tensor = tensors.get("positions", [1, leading + own.rows * own.columns, hidden]);
  return { tensor, grid: own, resized: resized as never };
}
