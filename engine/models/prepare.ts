// From a model's name to a plan: find the file, read its header, choose the spec, build and optimise the
// graph, plan its memory. Nothing of the weights is read, so the same steps describe a model that is not
// going to be loaded.

import type { WeightFile } from "../formats/source.ts";
import { optimize, type PassContext } from "../plan/passes.ts";
import type { Plan } from "../plan/plan.ts";
import { plan } from "../plan/planner.ts";
import { buildModel, readModelParts } from "./build.ts";
import { describeModel, plannedMemory } from "./describe.ts";
import type { Hyperparameters } from "./hparams.ts";
import { type ResolvedLimits, resolveLimits } from "./load_options.ts";
import type { LoadOptions, ModelDescription } from "./model.ts";
import { chooseSpec } from "./specs/mod.ts";

/** A model ready to be loaded. */
export interface PreparedModel extends ModelDescription {
  readonly plan: Plan;
  readonly params: Hyperparameters;
  readonly limits: ResolvedLimits;
}

/** Kernels of the device that the plan is for. */
export type KernelQuestions = Omit<PassContext, "precision">;

/**
 * Plans a model.
 *
 * @throws {FormatError | UnsupportedError} If the file's model cannot be built; the message says where.
 */
export async function prepareModel(
  file: WeightFile,
  options: LoadOptions,
  kernels: KernelQuestions,
): Promise<PreparedModel> {
  const { resolved, architecture } = chooseSpec(file);
  const parts = readModelParts(resolved, file, architecture);
  const { params } = parts;
  const limits = resolveLimits(options, params);
  const { graph, warnings } = await buildModel(parts, {
    capacity: limits.contextLength,
    cacheType: limits.kvFormat === "F16" ? "f16" : "f32",
    embeddings: limits.embeddings,
  });
  const { hasIntegerKernel, hasKernel } = kernels;
  const optimized = optimize(graph, {
    precision: limits.precision,
    hasIntegerKernel: (format) => hasIntegerKernel(format),
    hasKernel: (op) => hasKernel(op),
  });
  const planned = plan(optimized, { limits: { M: limits.batch, L: limits.logitRows } });
  const info = describeModel({ file, architecture: resolved.spec.name, params, limits, warnings });
  return { info, memory: plannedMemory(planned, limits.sessions), plan: planned, params, limits };
}
