/**
 * The engine without command line, server, Inferflow and quantising: models to text, vectors, labels and transcripts, and ONNX graphs. It is
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
export type {
  AdapterOptions,
  FormatCount,
  LoadOptions,
  Model,
  ModelActivity,
  ModelInfo,
  PlanSummary,
  StreamingOptions,
} from "./decode/model.ts";
export type { EvalOptions, Session, StepOptions } from "./decode/session.ts";
export { generate } from "./decode/generate.ts";
export type {
  DraftOptions,
  DraftSource,
  GenerateOptions,
  GenerationStart,
} from "./decode/generate_options.ts";
export type {
  Chunk,
  FinishReason,
  Generation,
  GenerationResult,
  GenerationStats,
  Structured,
  StructuredGeneration,
  TokenInfo,
} from "./decode/generation.ts";
export {
  chat,
  type ChatChunk,
  type ChatGeneration,
  type ChatOptions,
  type ChatResult,
} from "./decode/chat.ts";
export type {
  ChatMessage,
  ChatTemplate,
  ChatTemplateInput,
  ContentPart,
} from "./text/chat_template.ts";
export {
  type AnyArguments,
  type FunctionTool,
  type Tool,
  tool,
  type ToolArguments,
  type ToolContext,
} from "./decode/tools/tool.ts";
export { classifyImage, type ClassifyImageOptions } from "./pipelines/images/classify_image.ts";
export { transcribe } from "./pipelines/speech/transcribe.ts";
export { embed, type EmbedOptions } from "./pipelines/embed.ts";
export { classify, type JudgeOptions, type RankedDocument, rerank } from "./pipelines/rerank.ts";
export type { LabelScore } from "./pipelines/label_scores.ts";
export { type SentenceVectorOptions, sentenceVectors } from "./pipelines/sentence_vectors.ts";
export {
  createSampler,
  type Sampler,
  type SamplerModel,
  type SamplerState,
  type TokenDistribution,
} from "./decode/sampling/sampler.ts";
export type { SamplerOptions } from "./decode/sampling/sampler_options.ts";
export type {
  DecodeOptions,
  EncodeOptions,
  Tokenizer,
  TokenizerAlgorithm,
} from "./text/tokenizer.ts";
export type { EncoderCallOptions } from "./decode/encoder_run.ts";
export type { ModelMemory } from "./decode/memory.ts";
export type { PictureSource } from "./decode/pictures/picture_source.ts";
export type { AdapterInfo, Network, Pooling } from "./decode/runtime.ts";
export type { ChainEntry, NamedEntry } from "./decode/sampling/chain.ts";
export type { TokenHistory } from "./decode/sampling/history.ts";
export type { TokenAlternative } from "./decode/sampling/log_softmax.ts";
export type { SequenceBreakers } from "./decode/sampling/step.ts";
export type {
  ArrayValue,
  Flat,
  ObjectValue,
  PlainValue,
  RequiredNames,
  SchemaValue,
  TypedValue,
} from "./decode/schema_value.ts";
export type { StructureOptions } from "./decode/structured.ts";
export type { ToolChoice } from "./decode/tools/round_constraint.ts";
export type { PlacementOptions } from "./place/open_placement.ts";
export type { KvFormat, StreamingFigures } from "./run/backend.ts";
export type { AnswerPiece } from "./text/answer/answer_reader.ts";
export type { ToolCall, ToolCallDelta } from "./text/answer/tool_call.ts";
export type { InfillIds } from "./text/tokenizer_types.ts";
export type { OwnCandidates, SamplingFunction } from "./decode/sampling/own_step.ts";
export type { RandomState } from "./decode/sampling/random.ts";
export type { SpeculationStats } from "./decode/speculate/speculation.ts";
export type { Picture } from "./formats/media/picture.ts";
export type { PlacementJson } from "./place/rules.ts";
export type { StreamedBytes } from "./run/streaming/slots.ts";
export type { Grammar } from "./text/grammar/grammar.ts";
export type { Wave } from "./formats/media/wav.ts";
export type { ImageInput, ImageOptions, VisionModel } from "./pipelines/images/image_input.ts";
export type {
  TranscribeOptions,
  TranscribeProgress,
} from "./pipelines/speech/transcribe_options.ts";
export type {
  Transcript,
  Transcription,
  TranscriptSegment,
  TranscriptWord,
} from "./pipelines/speech/transcript.ts";
export type { PixelValues } from "./pictures/prepare.ts";
export type { ImageGraph } from "./pipelines/images/image_graph.ts";
export type { SpeechSegmentOptions } from "./pipelines/speech/speech_segments.ts";
export type { SpeechTask } from "./pipelines/speech/speech_tokens.ts";
export type {
  ComparedTexts,
  EncodedPicture,
  EncodeJob,
  MatchRule,
  PictureTower,
  TowerFacts,
} from "./decode/pictures/tower.ts";
