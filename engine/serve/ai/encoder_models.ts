// Embedding and reranking models of the AI SDK (specification 4) that run here.

import type {
  EmbeddingModelV4,
  JSONObject,
  RerankingModelV4,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { MODEL_CALLS } from "../host/model_calls.ts";
import { PROVIDER } from "./call_options.ts";
import type { NamedModel } from "./named_models.ts";

const never = new AbortController().signal;

/** Makes an embedding model. Its provider option is `dimensions`. */
export function createEmbeddingModel(
  { id: modelId, model }: NamedModel,
): EmbeddingModelV4 {
  return {
    specificationVersion: "v4",
    provider: PROVIDER,
    modelId,
    // Texts of one call are computed many at a time.
    maxEmbeddingsPerCall: Infinity,
    supportsParallelCalls: true,
    async doEmbed({ values, abortSignal = never, providerOptions }) {
      abortSignal.throwIfAborted();
      const { dimensions } = ownOptions(providerOptions);
      const { vectors, promptTokens } = await MODEL_CALLS.embed(
        await model(),
        {
          ...{ model: modelId, input: values },
          ...dimensions !== undefined && { dimensions: dimensions as number },
        },
        abortSignal,
      );
      return {
        embeddings: vectors.map((vector) => [...vector]),
        usage: { tokens: promptTokens },
        warnings: [],
      };
    },
  };
}

/** Makes a reranking model. Documents that are objects are read as JSON. */
export function createRerankingModel(
  { id: modelId, model }: NamedModel,
): RerankingModelV4 {
  return {
    specificationVersion: "v4",
    provider: PROVIDER,
    modelId,
    async doRerank({ query, documents: { values }, topN, abortSignal = never }) {
      abortSignal.throwIfAborted();
      const documents = values.map((value: string | JSONObject) =>
        typeof value === "string" ? value : JSON.stringify(value)
      );
      const argument = { model: modelId, query, documents };
      const { scores } = await MODEL_CALLS.rerank(await model(), argument, abortSignal);
      const ranking = scores
        .map((relevanceScore, index) => ({ index, relevanceScore }))
        .sort((a, b) => b.relevanceScore - a.relevanceScore);
      return { ranking: ranking.slice(0, topN), warnings: [] };
    },
  };
}

function ownOptions(options: SharedV4ProviderOptions | undefined): JSONObject {
  return options?.[PROVIDER] ?? {};
}
