// Facts of an ONNX decoder for ModelInfo: from the graphs where they say it, else from the texts beside them.
// Numbers that nobody states are 0.

import type { OnnxFile } from "../file/onnx_file.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import { FLOATS } from "../../ops/host_numbers.ts";
import { describeModel } from "../../decode/describe.ts";
import type { ResolvedLimits } from "../../decode/load_options.ts";
import type { ModelInfo } from "../../decode/model.ts";
import type { DecoderConfig } from "./config.ts";
import type { CachePort } from "./ports.ts";
import type { DerivedStage } from "./stage.ts";

/** What is known of a decoder. */
export interface FactsInput {
  readonly file: OnnxFile;
  readonly config: DecoderConfig;
  readonly cached: readonly DerivedStage[];
  readonly derived: readonly DerivedStage[];
  readonly limits: ResolvedLimits & { readonly trained: number };
  readonly vocabulary: number;
  readonly warnings: readonly string[];
}

/** Facts about it. */
export function describeDecoder(
  { file, config, cached, derived, limits, vocabulary, warnings }: FactsInput,
): ModelInfo {
  const caches = cached.flatMap(({ ports }) => ports.caches);
  const { kvHeads, headDim } = headsOf(caches);
  return describeModel({
    ...{ file, network: file.source ? "encoder-decoder" : "decoder", limits, warnings, rounded: 0 },
    architecture: config.architecture ?? "decoder",
    parameters: countParameters(derived),
    params: {
      ...{ vocabulary, kvHeads, headDim, context: limits.trained },
      layers: Math.ceil(caches.length / 2),
      hidden: config.hidden ?? hiddenOf(derived) ?? 0,
      heads: config.heads ?? queryHeads(derived) ?? kvHeads,
      feedForward: config.feedForward ?? 0,
    },
  });
}

// Sizes of a cache beside its positions: heads first, channels last. Where channels stand first (keys of
// Bloom), values of the same layer have them last.
function headsOf(caches: readonly CachePort[]) {
  const { dims, axis } = caches.find(({ dims, axis }) => axis < dims.length - 1)!;
  const sizes = dims.filter((_, at) => at !== axis).map((dim) => Number(dim) || 1);
  return { kvHeads: sizes.at(-2) ?? 1, headDim: sizes.at(-1)! };
}

/** Floats of weights and constants, each tensor once. */
function countParameters(derived: readonly DerivedStage[]): number {
  const values = derived.flatMap(({ graph }) => graph.nodes.flatMap(({ inputs }) => inputs));
  return [...new Set(values)].reduce((sum, value) => {
    const isOwn = value?.role === "weight" || value?.role === "constant";
    if (!isOwn || !FLOATS.includes(value.dtype)) return sum;
    return sum + elementCount(value.shape as readonly number[]);
  }, 0);
}

// Columns of the table from which rows are taken by token.
function hiddenOf([first]: readonly DerivedStage[]): number | undefined {
  const tokens = first!.ports.tokens?.name;
  for (const { op, inputs: [a, b] } of first!.graph.nodes) {
    const [table, ids] = op === "embed" ? [b, a] : [a, b];
    if ((op === "embed" || op === "gather") && ids?.name === tokens) {
      return table!.shape.at(-1) as number;
    }
  }
  return undefined;
}

// Only ops of whole attention know the number of heads of queries.
function queryHeads(derived: readonly DerivedStage[]): number | undefined {
  const counts = derived.flatMap(({ graph }) =>
    graph.nodes.map(({ attributes }) => attributes.q_heads)
  );
  return counts.find((count) => typeof count === "number" && count > 0) as number | undefined;
}
