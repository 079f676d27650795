// Builds the graph that makes rows of a language model of one picture: the encoder of pictures as its own spec has it, and
// the connector behind it. Rows of a step are the patches of a picture in the order of tower_layout.ts, learnt ones in
// front. Inputs: patches f32[M, …], positions, starts, ends i32[M]; window_starts, window_ends i32[M] where some layers see
// windows; patch_rows, patch_columns i32[M] where rotations go by place; kept i32[K] where learnt rows are left out.
// Outputs: rows f32[N, hidden] and, to be looked at, tower f32[K, width]. K is side² · N.

import { UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { createGraphBuilder } from "../../graph/builder.ts";
import { mul, symbol } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { getOp } from "../../ops/mod.ts";
import { windowOf } from "../blocks/attention.ts";
import { type BlockContext, norm } from "../blocks/context.ts";
import { patchEmbedding, patchNumbers, type PictureGrid, pictureGrid } from "../blocks/patches.ts";
import type { ModelParts } from "../build.ts";
import { runLayers } from "../encoder_outputs.ts";
import { metadataAt } from "../metadata.ts";
import { pictureContext } from "../blocks/picture_context.ts";
import { createTensorLookup } from "../tensors.ts";
import { connect } from "./connector.ts";
import type { SightSpec } from "./sight_spec.ts";

/** What a tower is built of. */
export interface TowerParts {
  readonly spec: SightSpec;
  /** Of the encoder of pictures. */
  readonly parts: ModelParts;
  /** Config of the whole model. */
  readonly metadata: WeightFile["metadata"];
  /** Width of the language model. */
  readonly hidden: number;
}

/** A tower's graph, and how pictures are laid for it. */
export interface BuiltTower {
  readonly graph: Graph;
  readonly grid: PictureGrid;
  /** Edge of a square of patches that becomes a row. */
  readonly side: number;
  /** Edge of a window in patches; 0: there are none. */
  readonly window: number;
  /** Its places are those of a table, so that pictures have one size. */
  readonly isFixed: boolean;
  /** Tensors that nothing asked for. */
  readonly unused: readonly string[];
}

/**
 * Builds a tower.
 *
 * @throws {FormatError} If tower, projector and language model do not fit each other, or a tensor is missing.
 */
export function buildTower({ spec, parts, metadata, hidden }: TowerParts): BuiltTower {
  const { resolved, params, tensors, file } = parts;
  const builder = createGraphBuilder(`${file.name}, pictures`, getOp);
  const grid = pictureGrid({ params, spec: resolved.spec, tensors, file: file.name });
  const isFixed = resolved.spec.embedding.patches?.positions !== undefined;
  const side = sideOf(spec, { metadata, grid, isFixed, file: file.name });
  const squares = symbol("N", { min: 1 }), kept = mul(squares, side ** 2);
  const rows = grid.leading > 0 ? symbol("M", { min: 1 }) : kept;
  const patches = builder.input("patches", [rows, patchNumbers(grid)], "f32");
  const context = pictureContext(parts, { builder, rows });
  const names = {
    ...resolved.names,
    tensors: spec.connector.tensors,
    prefixes: [""],
  };
  const own = createTensorLookup(file, { names, params });
  const after = afterOf(spec, metadata);
  const state = towerState(context, patchEmbedding(context, { patches, grid }), { after });
  const shown = grid.leading > 0
    ? builder.op("select_rows", [state, builder.input("kept", [kept], "i32")], {}, "kept")[0]!
    : state;
  builder.output("tower", shown);
  const { steps } = spec.connector;
  const options = { steps, metadata, side, squares, hidden };
  builder.output("rows", connect({ ...context, tensors: own }, shown, options));
  const left = new Set(own.unused());
  // Layers behind the one that is read are not wanted.
  const prefixes = after === undefined ? [] : Object.values(spec.tower.prefixes);
  const isBehind = (name: string) => prefixes.some((prefix) => name.startsWith(prefix));
  return {
    graph: builder.build(),
    ...{ grid, side, isFixed, window: windowEdge(context, grid) },
    unused: tensors.unused().filter((name) => left.has(name) && !isBehind(name)),
  };
}

/** Edge of a square, by itself or else by how many rows a picture becomes. */
function sideOf(
  { connector: { side, rows } }: SightSpec,
  { metadata, grid, isFixed, file }: {
    readonly metadata: WeightFile["metadata"];
    readonly grid: PictureGrid;
    readonly isFixed: boolean;
    readonly file: string;
  },
): number {
  const valueOf = ({ key, default: usual }: { readonly key?: string; default: unknown }) =>
    Number((key === undefined ? undefined : metadataAt(metadata, key)) ?? usual);
  const found = side
    ? valueOf(side)
    : rows
    ? Math.sqrt(grid.rows * grid.columns / valueOf(rows))
    : 1;
  const parts = isFixed ? [grid.rows / found, grid.columns / found] : [];
  if ([found, ...parts].every(Number.isInteger) && found > 0) return found;
  const within = isFixed ? ` of ${grid.rows} × ${grid.columns}` : "";
  throw new UnsupportedError(
    `squares of ${found} patches${within} cannot become rows of the language model`,
    { file, place: side?.key ?? rows?.key ?? "connector" },
  );
}

function afterOf(
  { tower: { after } }: SightSpec,
  metadata: WeightFile["metadata"],
): number | undefined {
  if (!after) return undefined;
  const stated = after.key === undefined ? undefined : metadataAt(metadata, after.key);
  const value = stated ?? after.default;
  if (Number.isInteger(value)) return value as number;
  throw new UnsupportedError(`is ${JSON.stringify(stated)}, and one layer is read`, {
    place: after.key ?? "tower.after",
  });
}

/** The state that the connector reads: behind a layer, or behind the last with its norm. */
function towerState(
  context: BlockContext,
  x: Value,
  { after }: { readonly after: number | undefined },
): Value {
  const { params: { layers, hidden: size }, spec } = context;
  const count = after === undefined ? layers : after < 0 ? layers + 1 + after : after;
  if (!(count >= 0 && count <= layers)) {
    throw new UnsupportedError(`layer ${after} is asked for, and there are ${layers}`, {
      file: context.file,
      place: "vision_feature_layer",
    });
  }
  const state = runLayers(context, { x, count }).at(-1)!;
  const isWhole = after === undefined && spec.outputNorm === "rows";
  return isWhole ? norm(context, state, { role: "output_norm", name: "output_norm", size }) : state;
}

function windowEdge({ spec, params, file }: BlockContext, { patch }: PictureGrid): number {
  const edges = Object.keys(spec.attention.kinds).map((kind) =>
    windowOf({ spec, params, file }, kind)
  );
  return Math.floor(Math.max(...edges) / patch);
}
