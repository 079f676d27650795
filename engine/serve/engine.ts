// What stands between those who ask (HTTP, a queue, an SDK) and those who compute (models in this thread, in a
// worker, behind a queue). All of it is plain data, so that a job goes through postMessage as through a socket, and
// whoever asks need not know who computes.

import type { ChatOptions } from "../decode/chat.ts";
import type { GenerateOptions } from "../decode/generate_options.ts";
import type { FinishReason, TokenInfo } from "../decode/generation.ts";
import type { TokenAlternative } from "../decode/sampling/log_softmax.ts";
import type { FunctionTool } from "../decode/tools/tool.ts";
import type { ToolCall, ToolCallDelta } from "../text/answer/tool_call.ts";
import type { ChatMessage } from "../text/chat_template.ts";

/** Options of an answer that are plain data: those of `generate` and `chat` without signals, models and functions. */
export interface AnswerOptions
  extends
    Omit<GenerateOptions, "signal" | "onStart" | "draft" | "samplers" | "onContextFull">,
    Pick<ChatOptions, "thinking" | "toolChoice" | "templateOptions" | "onContextFull"> {
  /** Names and records of sampling steps, in order. */
  readonly samplers?: readonly (string | Readonly<Record<string, unknown>>)[];
  /** As `draft` of `generate`, without models. */
  readonly draft?: "lookup" | "history";
  /** Calls are always the caller's. */
  readonly tools?: readonly FunctionTool[];
}

/** What an answer answers. */
export type AnswerInput =
  | { readonly messages: readonly ChatMessage[] }
  | { readonly prompt: string | readonly number[] }
  | { readonly prefix: string; readonly suffix: string }
  | InferflowInput;

/** A query in Inferflow's words [§4.10]; without a template of its own the model's chat template writes the prompt. */
export interface InferflowInput {
  readonly query: string;
  readonly system: string;
  /** Beginning of the answer, which is not told again. */
  readonly answer: string;
  readonly encoderTemplate?: string;
  readonly decoderTemplate?: string;
}

/** One answer that is wanted; several answers to one prompt are several jobs, whose prompt is computed once. */
export interface AnswerJob {
  readonly model: string;
  readonly input: AnswerInput;
  readonly options: AnswerOptions;
}

/** The prompt has been read: what is wrong with a request is thrown before. */
export interface AnswerStart {
  readonly kind: "start";
  readonly promptTokens: number;
  /** The seed in use, with which the answer can be had again. */
  readonly seed: number;
}

/** How a token reads; with `logprobs` only. */
export interface TokenSpelling {
  readonly text?: string;
  readonly bytes?: readonly number[];
}

/** A token of an answer. */
export type AnswerToken = Omit<TokenInfo, "alternatives"> & TokenSpelling & {
  readonly alternatives?: readonly (TokenAlternative & TokenSpelling)[];
};

/** What came since the last event. */
export interface AnswerPart {
  readonly kind: "part";
  /** Place of the first of `tokens` in the answer, from 0. */
  readonly at: number;
  readonly tokens: readonly AnswerToken[];
  readonly text: string;
  readonly thinking?: string;
  /** Calls that went on: all that is written of their arguments, not what is new of them. */
  readonly calls?: readonly ToolCallDelta[];
}

/** The answer is complete. */
export interface AnswerEnd {
  readonly kind: "end";
  readonly finishReason: FinishReason;
  readonly toolCalls: readonly ToolCall[];
  readonly promptTokens: number;
  /** Tokens of the prompt that were found in the cache. */
  readonly cachedTokens: number;
  readonly answerTokens: number;
  readonly firstTokenMs: number;
  readonly decodePerSecond: number;
  /** Proposed and accepted tokens, where a draft was asked for. */
  readonly drafts?: { readonly proposed: number; readonly accepted: number };
}

/** What is told of an answer, in order: a start, parts, an end. */
export type AnswerEvent = AnswerStart | AnswerPart | AnswerEnd;

/** What a model is for. */
export type ModelTask = "answer" | "embed" | "rerank";

/** A model by the name under which it is served. */
export interface ServedModel {
  readonly name: string;
  readonly tasks: readonly ModelTask[];
  /** Seconds since 1970 at which the server learnt of it. */
  readonly created: number;
  readonly isLoaded: boolean;
  readonly contextLength?: number;
  readonly memoryBytes?: number;
  /** It takes pictures, which is known once it is loaded. */
  readonly sees?: boolean;
}

/** Figures since the start, and as they stand. */
export interface EngineFigures {
  readonly models: readonly {
    readonly name: string;
    /** Answers under way, and answers that wait for a place. */
    readonly running: number;
    readonly waiting: number;
    readonly steps: number;
    /** Rows of all steps, those of prompts among them. */
    readonly rows: number;
    readonly promptTokens: number;
    readonly cachedTokens: number;
    readonly answerTokens: number;
    readonly proposedTokens: number;
    readonly acceptedTokens: number;
    /** Rows of the cache in use, and all. */
    readonly cacheRows: number;
    readonly cacheCapacity: number;
    readonly memoryBytes: number;
  }[];
  /** Where jobs go through a queue: those that nobody has taken yet, those that somebody has, and who takes them. */
  readonly queue?: { readonly waiting: number; readonly taken: number; readonly workers: number };
  /** Processor time of the thread that computes, in ms, where it is known. */
  readonly busyMs?: number;
}

/** What is asked once and answered once: argument and result of each call. */
export interface EngineCalls {
  embed: {
    readonly argument: {
      readonly model: string;
      readonly input: readonly (string | readonly number[])[];
      readonly dimensions?: number;
    };
    readonly result: { readonly vectors: readonly Float32Array[]; readonly promptTokens: number };
  };
  rerank: {
    readonly argument: {
      readonly model: string;
      readonly query: string;
      readonly documents: readonly string[];
    };
    /** A score a document, in the order of the documents. */
    readonly result: { readonly scores: readonly number[]; readonly promptTokens: number };
  };
  tokenize: {
    readonly argument: {
      readonly model: string;
      /** A text, or a conversation as the model's template writes it. */
      readonly text: string | readonly ChatMessage[];
      readonly addSpecial: boolean;
      readonly parseSpecial: boolean;
    };
    readonly result: { readonly ids: readonly number[]; readonly pieces: readonly string[] };
  };
  detokenize: {
    readonly argument: { readonly model: string; readonly ids: readonly number[] };
    readonly result: { readonly text: string };
  };
  /** All models that can be asked for. */
  models: { readonly argument: null; readonly result: readonly ServedModel[] };
  /** What is known of a model; loads it. */
  describe: {
    readonly argument: { readonly model: string };
    readonly result: ServedModel & {
      readonly chatTemplate?: string;
      readonly vocabularySize: number;
      readonly device: string;
    };
  };
  figures: { readonly argument: null; readonly result: EngineFigures };
}

/** Computes what is asked for. Failures are thrown as {@linkcode JobError}. */
export interface Engine extends AsyncDisposable {
  /**
   * Answers. Whoever leaves the loop, or aborts, ends the answer at the next step.
   *
   * @throws {JobError}
   */
  answer(job: AnswerJob, signal: AbortSignal): AsyncIterable<AnswerEvent>;
  /** @throws {JobError} */
  call<K extends keyof EngineCalls>(
    kind: K,
    argument: EngineCalls[K]["argument"],
    signal: AbortSignal,
  ): Promise<EngineCalls[K]["result"]>;
}
