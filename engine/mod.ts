/**
 * The engine without command line, server, Inferflow and quantising: models to text and vectors, and ONNX graphs. It is
 * what the browser's and the edge's bundles are made of.
 *
 * @example
 * ```ts ignore
 * import { generate, load } from "@troodon/troodon/engine";
 *
 * using model = await load("model.gguf");
 * for await (const { text } of generate(model, "The sea is")) console.log(text);
 * ```
 *
 * @module
 */

export * from "./onnx/mod.ts";
export { load, loadTokenizer } from "./models/load.ts";
export type { LoadOptions, Model, ModelInfo, ModelProgress, Precision } from "./decode/model.ts";
export type { Session } from "./decode/session.ts";
export { generate } from "./decode/generate.ts";
export type { GenerateOptions } from "./decode/generate_options.ts";
export type { Chunk, Generation, GenerationResult, TokenInfo } from "./decode/generation.ts";
export {
  chat,
  type ChatChunk,
  type ChatGeneration,
  type ChatOptions,
  type ChatResult,
} from "./decode/chat.ts";
export type { ChatMessage } from "./text/chat_template.ts";
export { type Tool, tool } from "./decode/tools/tool.ts";
export { embed, type EmbedOptions } from "./pipelines/embed.ts";
export { classify, type RankedDocument, rerank } from "./pipelines/rerank.ts";
export type { LabelScore } from "./pipelines/label_scores.ts";
export { type SentenceVectorOptions, sentenceVectors } from "./pipelines/sentence_vectors.ts";
export { createSampler, type Sampler } from "./decode/sampling/sampler.ts";
export type { SamplerOptions } from "./decode/sampling/sampler_options.ts";
export type { Tokenizer } from "./text/tokenizer.ts";
