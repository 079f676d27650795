/**
 * A provider of the AI SDK (specification 4) whose models run in this process: text, reasoning, tools, structured
 * output, embeddings and reranking, without a server.
 *
 * @example Stream an answer
 * ```ts ignore
 * import { streamText } from "npm:ai@7";
 * import { troodon } from "@troodon/troodon/ai";
 *
 * const { textStream } = streamText({ model: troodon("smollm2-135m"), prompt: "The sea is" });
 * for await (const text of textStream) console.log(text);
 * ```
 *
 * @example A model that was loaded by its user
 * ```ts
 * import { load } from "@troodon/troodon";
 * import { troodon } from "@troodon/troodon/ai";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("encoder");
 * assertEquals(troodon.embeddingModel(model).provider, "troodon");
 * ```
 *
 * @module
 */

import type * as sdk from "@ai-sdk/provider";
import type * as models from "../../decode/model.ts";
import { createEmbeddingModel, createRerankingModel } from "./encoder_models.ts";
import { createLanguageModel } from "./language_model.ts";
import { NamedModels } from "./named_models.ts";
import { noSuchModel } from "./sdk_error.ts";

// Described where they are defined: the AI SDK, and this package's main entry.

/** @internal */
type LanguageModel = sdk.LanguageModelV4;
/** @internal */
type EmbeddingModel = sdk.EmbeddingModelV4;
/** @internal */
type RerankingModel = sdk.RerankingModelV4;
/** @internal */
type Provider = sdk.ProviderV4;
/** @internal */
type Model = models.Model;
/** @internal */
type LoadOptions = models.LoadOptions;

/**
 * Options of a provider.
 * @category AI SDK
 */
export interface TroodonProviderOptions {
  /** How models are loaded that are given by name; `sessions` says how many answers one gives at once. */
  readonly load?: LoadOptions;
}

/**
 * The provider. Models are given by name, as `load` takes it, and loaded when they are first used, or as models
 * that were loaded before. Options of `chat` that the AI SDK has no word for stand in its `providerOptions`, below
 * `troodon`: `{ providerOptions: { troodon: { minP: 0.1 } } }`.
 * @category AI SDK
 */
export interface TroodonProvider extends Provider, AsyncDisposable {
  /** A language model. */
  (model: string | Model): LanguageModel;
  /** A language model. */
  languageModel(model: string | Model): LanguageModel;
  /** An encoder that gives vectors. */
  embeddingModel(model: string | Model): EmbeddingModel;
  /** A cross-encoder that says how well documents answer. */
  rerankingModel(model: string | Model): RerankingModel;
  /** Lets the models go that were loaded by name. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes a provider with models of its own.
 *
 * @example
 * ```ts
 * import { createTroodon } from "@troodon/troodon/ai";
 * import { assertEquals } from "@std/assert";
 *
 * await using own = createTroodon({ load: { device: "reference" } });
 * const model = own("model.gguf");
 * assertEquals([model.specificationVersion, model.provider], ["v4", "troodon"]);
 * ```
 * @category AI SDK
 */
export function createTroodon({ load = {} }: TroodonProviderOptions = {}): TroodonProvider {
  const models = new NamedModels(load);
  const languageModel = (model: string | Model): LanguageModel =>
    createLanguageModel(models.get(model));
  return Object.assign(languageModel.bind(undefined), {
    specificationVersion: "v4" as const,
    languageModel,
    embeddingModel: (model: string | Model) => createEmbeddingModel(models.get(model)),
    rerankingModel: (model: string | Model) => createRerankingModel(models.get(model)),
    imageModel(modelId: string): never {
      throw noSuchModel(modelId, "imageModel");
    },
    [Symbol.asyncDispose]: () => models[Symbol.asyncDispose](),
  });
}

/**
 * The provider with default options.
 * @category AI SDK
 */
export const troodon: TroodonProvider = createTroodon();
