// From a file with a network of convolutions to a plan and to the encoder of pictures that runs it.

import { countParameters, describeModel, plannedMemory } from "../../decode/describe.ts";
import { resolvePictureLimits } from "../../decode/load_options.ts";
import type { LoadOptions } from "../../decode/model.ts";
import { rowTower } from "../../decode/pictures/tower.ts";
import { UnsupportedError } from "../../errors.ts";
import type { WeightFile } from "../../formats/source.ts";
import { optimize } from "../../plan/passes.ts";
import { plan } from "../../plan/planner.ts";
import { labelsOf } from "../network_facts.ts";
import { preparedSize, readProcessor } from "../picture_processor.ts";
import type { KernelQuestions, PreparedNetwork } from "../prepare.ts";
import { buildConvolutions } from "./conv_build.ts";
import type { ConvSpec } from "./conv_spec.ts";

/** Pictures that a step takes: what lies between layers is large. */
const PICTURES = 4;

/**
 * Plans a network of convolutions.
 *
 * @param rows Whether the last state is given out.
 * @throws {UnsupportedError} If the files do not say how large pictures are. @throws As `buildConvolutions`.
 */
export async function prepareConvolutions(
  file: WeightFile,
  { spec, options, kernels, rows = false }: {
    readonly spec: ConvSpec;
    readonly options: LoadOptions;
    readonly kernels: KernelQuestions;
    readonly rows?: boolean;
  },
): Promise<PreparedNetwork> {
  const size = await preparedSize(file);
  if (!size) {
    throw new UnsupportedError("does not say how large pictures are", {
      ...{ file: file.name, place: "preprocessor_config.json" },
      remedy: "Put that file, with a size that does not hang on the picture, beside the weights",
    });
  }
  const { graph, channels, width: hidden, layers, unused } = buildConvolutions(file, {
    ...{ spec, size, rows },
  });
  const most = Math.min(options.batch ?? PICTURES, PICTURES);
  const limits = {
    ...resolvePictureLimits(options, { context: 1 }),
    ...{ batch: most, logitRows: most },
  };
  const optimized = optimize(graph, {
    context: {
      ...{ precision: limits.precision, roundsWeights: true },
      hasKernel: (op) => kernels.hasKernel(op),
      takes: (draft) => kernels.takes(draft),
    },
  });
  const planned = plan(optimized, { limits: { M: most, L: most } });
  const labels = Number(graph.outputs.find(({ name }) => name === "scores")?.shape.at(-1) ?? 0);
  const facts = {
    ...{ name: file.name, hasVectors: true, ...labelsOf(file, labels) },
    processor: await readProcessor(file),
    pixels: [channels, size.height, size.width] as const,
  };
  const grid = { ...{ rows: 1, columns: 1, leading: 0, channels }, patch: size };
  return {
    info: describeModel({
      ...{ file, architecture: spec.name, network: "picture", limits, rounded: 0, labels },
      warnings: unused.length === 0 ? [] : [`${unused.length} tensors of the file are not used`],
      params: {
        ...{ vocabulary: 0, context: 1, layers, hidden },
        ...{ heads: 0, kvHeads: 0, headDim: 0, feedForward: 0 },
      },
      parameters: countParameters(file, graph),
    }),
    memory: plannedMemory(planned, limits),
    ...{ plan: planned, limits, params: { vocabulary: 0, hidden } },
    tower: ({ queue, logitRows }) =>
      Promise.resolve(rowTower(facts, { queue, grid, pictures: logitRows })),
  };
}
