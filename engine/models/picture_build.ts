// Builds the graph of an encoder of pictures: every patch sees the patches of its picture. A step is a table of M rows,
// those of a picture side by side, first the learnt ones in front. Inputs: patches f32[M, channels · patch²] (numbers of
// a patch colour by colour, row by row; zeros in learnt rows), positions, starts, ends i32[M], logit_rows i32[L] (the first
// rows of pictures whose vector is wanted), and wanted_starts, wanted_ends i32[L] (their patches) where the pool looks at
// those. Outputs: see encoder_outputs.ts.

import { createGraphBuilder } from "../graph/builder.ts";
import { symbol } from "../graph/dim/mod.ts";
import { getOp } from "../ops/mod.ts";
import { patchEmbedding, patchNumbers, pictureGrid } from "./blocks/patches.ts";
import { type BuildOptions, type BuiltModel, type ModelParts, unusedWarning } from "./build.ts";
import { asksForAll, encoderOutputs } from "./encoder_outputs.ts";
import { pictureContext } from "./blocks/picture_context.ts";

/**
 * Builds the graph of an encoder of pictures.
 *
 * @throws As `buildModel`.
 */
export async function buildPicture(parts: ModelParts, options: BuildOptions): Promise<BuiltModel> {
  const { resolved: { spec }, params, tensors, file } = parts;
  const builder = createGraphBuilder(file.name, getOp);
  const M = symbol("M", { min: 1 });
  const grid = pictureGrid({ params, spec, tensors, file: file.name }, options.pictures);
  const patches = builder.input("patches", [M, patchNumbers(grid)], "f32");
  const context = pictureContext(parts, { builder, rows: M });
  const x = patchEmbedding(context, { patches, grid });
  await encoderOutputs(context, x, {
    rows: false,
    ...options.outputs,
    wholes: symbol("L", { min: 0 }),
  });
  const isWhole = asksForAll(options.outputs);
  return { graph: builder.build(), params, warnings: isWhole ? unusedWarning(tensors) : [] };
}
