// One answer of a model, told as plain data: the public functions answer, and what they give is put into the events of
// engine.ts. Nothing is told before the prompt has been read, so that what is wrong with a request is thrown before
// anybody has been sent a byte.

import { chat } from "../../decode/chat.ts";
import type { GenerationStart } from "../../decode/generate_options.ts";
import { generate } from "../../decode/generate.ts";
import type { Chunk, Generation, GenerationResult, TokenInfo } from "../../decode/generation.ts";
import { infill } from "../../decode/infill.ts";
import type { ChainEntry } from "../../decode/sampling/chain.ts";
import type { Model } from "../../decode/model.ts";
import type { AnswerPiece } from "../../text/answer/answer_reader.ts";
import type { ToolCall } from "../../text/answer/tool_call.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";
import { inferflowPrompt } from "./inferflow_prompt.ts";
import type {
  AnswerEnd,
  AnswerEvent,
  AnswerJob,
  AnswerOptions,
  AnswerPart,
  AnswerToken,
  TokenSpelling,
} from "../engine.ts";

type AnyChunk = Chunk & Partial<Pick<AnswerPiece, "thinking" | "toolCalls">>;
type AnyResult = GenerationResult & { readonly toolCalls?: readonly ToolCall[] };
type Options = Omit<AnswerOptions, "samplers"> & {
  /** Checked by the sampler. */
  readonly samplers?: readonly ChainEntry[];
  readonly signal: AbortSignal;
  readonly onStart: (start: GenerationStart) => void;
};

/**
 * Answers a job. An answer that is aborted ends with finishReason `abort`; who leaves the loop ends it, too.
 *
 * @throws What `chat`, `generate` and `infill` throw.
 */
export async function* answerEvents(
  model: Model,
  { input, options, signal }: Pick<AnswerJob, "input" | "options"> & {
    readonly signal: AbortSignal;
  },
): AsyncGenerator<AnswerEvent, void, void> {
  let started: GenerationStart | undefined, isTold = false, at = 0;
  const tell = () => {
    isTold = true;
    const { promptTokens, seed } = started!;
    return { kind: "start", promptTokens, seed } as const;
  };
  // An answer that fills the context ends there; a prompt that does is refused in any case.
  const generation = begin(model, input, {
    ...{ onContextFull: "stop", ...options as Options, signal },
    onStart: (start) => started = start,
  });
  for await (const chunk of generation) {
    if (!isTold) yield tell();
    const part = partOf(chunk, { at, tokenizer: model.tokenizer });
    at += chunk.tokens.length;
    if (part) yield part;
  }
  if (started && !isTold) yield tell();
  yield endOf(await generation.result);
}

/** A prompt is text as it stands, so options of conversations are refused with it, as `generate` does. */
function begin(
  model: Model,
  input: AnswerJob["input"],
  options: Options,
): Generation<AnyChunk, AnyResult> {
  if ("messages" in input) return chat(model, input.messages, options);
  const { onContextFull, ...rest } = options;
  if (onContextFull === "drop") {
    throw new RangeError('Cannot use onContextFull "drop" without messages: there are no turns');
  }
  const plain = { ...rest, onContextFull: onContextFull! };
  if ("query" in input) return generate(model, inferflowPrompt(model, input), plain);
  return "prompt" in input ? generate(model, input.prompt, plain) : infill(model, input, plain);
}

function partOf(
  { text, tokens, thinking, toolCalls }: AnyChunk,
  { at, tokenizer }: { readonly at: number; readonly tokenizer: Tokenizer },
): AnswerPart | undefined {
  if (text === "" && tokens.length === 0 && !thinking && !toolCalls) return undefined;
  return {
    ...{ kind: "part", at, text, tokens: tokens.map((token) => tokenOf(token, tokenizer)) },
    ...thinking && { thinking },
    ...toolCalls && { calls: toolCalls },
  };
}

function tokenOf(token: TokenInfo, tokenizer: Tokenizer): AnswerToken {
  const { alternatives, ...own } = token;
  if (own.logProbability === undefined) return own;
  return {
    ...own,
    ...tokenText(token.id, tokenizer),
    ...alternatives && {
      alternatives: alternatives.map((one) => ({ ...one, ...tokenText(one.id, tokenizer) })),
    },
  };
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

function tokenText(id: number, tokenizer: Tokenizer): TokenSpelling {
  const bytes = tokenizer.tokenBytes(id);
  return { text: DECODER.decode(bytes), bytes: [...bytes] };
}

function endOf({ finishReason, toolCalls = [], ids, stats }: AnyResult): AnswerEnd {
  const { promptTokens, prefillTokens, firstTokenMs, decodePerSecond, speculation } = stats;
  return {
    ...{ kind: "end", finishReason, toolCalls, promptTokens },
    ...{ cachedTokens: promptTokens - prefillTokens, answerTokens: ids.length },
    ...{ firstTokenMs, decodePerSecond },
    ...speculation &&
      { drafts: { proposed: speculation.drafted, accepted: speculation.accepted } },
  };
}
