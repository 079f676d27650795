// An engine that says what it is told to: for tests of what stands between it and its clients. It keeps what it was asked,
// and refuses what the real one refuses where a test is about that.

import type {
  AnswerEvent,
  AnswerJob,
  AnswerToken,
  Engine,
  EngineCalls,
} from "../../engine/serve/engine.ts";
import { JobError } from "../../engine/serve/job_error.ts";
import type { ToolCall } from "../../engine/text/answer/tool_call.ts";

/** What is answered. */
export interface Script {
  /** Pieces of text, a token each. Default: as many words as fit, other ones for other seeds. */
  readonly pieces?: readonly string[];
  readonly thinking?: readonly string[];
  readonly calls?: readonly ToolCall[];
  readonly finishReason?: "eos" | "stop" | "length" | "tool_calls" | "context";
  /** Thrown before the first event. */
  readonly refusal?: Error;
  /** Thrown behind all pieces. */
  readonly failure?: Error;
  /** Awaited in front of every piece, the first one and the start among them. */
  readonly wait?: (signal: AbortSignal) => Promise<void>;
}

const WORDS = ["Hello", " there", ",", " it", " is", " a", " fine", " day", " today", "."];
const CONTEXT = 4096;

/** Says what `script` tells of a job. */
export class ScriptedEngine implements Engine {
  readonly jobs: AnswerJob[] = [];
  readonly arguments: unknown[] = [];
  /** Answers under way. */
  running = 0;
  /** Answers that were left or aborted before their end. */
  left = 0;
  readonly #script: (job: AnswerJob) => Script;

  constructor(script: (job: AnswerJob) => Script = () => ({})) {
    this.#script = script;
  }

  async *answer(job: AnswerJob, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void> {
    this.jobs.push(structuredClone(job)); // which takes plain data only
    if (job.model !== "m") throw unknownModel(job.model);
    const script = this.#script(job);
    if (script.refusal) throw script.refusal;
    const promptTokens = promptLength(job);
    if (promptTokens >= CONTEXT) {
      throw new JobError({
        status: 400,
        message: `the prompt has ${promptTokens} tokens, and the context holds ${CONTEXT}`,
        code: "context_length_exceeded",
      });
    }
    this.running++;
    let isOver = false;
    try {
      for await (const event of events(job, script, { promptTokens, signal })) {
        isOver = event.kind === "end" && event.finishReason !== "abort";
        yield event;
      }
    } finally {
      this.running--;
      if (!isOver) this.left++;
    }
  }

  call<K extends keyof EngineCalls>(
    kind: K,
    argument: EngineCalls[K]["argument"],
    _signal: AbortSignal,
  ): Promise<EngineCalls[K]["result"]> {
    this.arguments.push(argument);
    const { model = "m" } = (argument ?? {}) as { readonly model?: string };
    if (model !== "m") return Promise.reject(unknownModel(model));
    return Promise.resolve(CALLS[kind](argument as never) as EngineCalls[K]["result"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function unknownModel(name: string): JobError {
  return new JobError({
    status: 404,
    message: `no model is called ${name}`,
    param: "model",
    code: "model_not_found",
  });
}

/** A word a token. */
function promptLength({ input }: AnswerJob): number {
  const length = (text: string) => text.split(" ").length;
  if ("messages" in input) {
    return input.messages.reduce((sum, { content }) => sum + length(String(content)), 0);
  }
  if ("prompt" in input) {
    return typeof input.prompt === "string" ? length(input.prompt) : input.prompt.length;
  }
  return "prefix" in input ? length(input.prefix + input.suffix) : length(input.query);
}

async function* events(
  { options }: AnswerJob,
  script: Script,
  { promptTokens, signal }: { readonly promptTokens: number; readonly signal: AbortSignal },
): AsyncGenerator<AnswerEvent, void, void> {
  const { maxTokens = 1024, logprobs, seed = 0, temperature = 0 } = options;
  const turn = temperature > 0 ? seed % WORDS.length : 0;
  const { thinking = [], calls = [] } = script;
  const pieces = script.pieces ??
    (calls.length > 0 ? [] : [...WORDS.slice(turn), ...WORDS.slice(0, turn)]);
  const all: readonly { readonly text: string; readonly thinking?: string }[] = [
    ...thinking.map((text) => ({ text: "", thinking: text })),
    ...pieces.map((text) => ({ text })),
  ];
  await script.wait?.(signal);
  yield { kind: "start", promptTokens, seed };
  let at = 0;
  for (const piece of all.slice(0, maxTokens)) {
    await script.wait?.(signal);
    if (signal.aborted) break;
    const tokens = [token(at, piece.thinking ?? piece.text, logprobs)];
    yield { kind: "part", at, tokens, ...piece };
    at++;
  }
  if (script.failure) throw script.failure;
  if (!signal.aborted) {
    for (const [index, { id, name, argumentsText }] of calls.entries()) {
      const half = argumentsText.slice(0, argumentsText.length / 2);
      for (const told of [half, argumentsText]) {
        const call = { index, id, name, argumentsText: told };
        yield { kind: "part", at, tokens: [{ id: at }], text: "", calls: [call] };
        at++;
      }
    }
  }
  const isCut = all.length > maxTokens;
  yield {
    kind: "end",
    finishReason: signal.aborted
      ? "abort"
      : script.finishReason ?? (calls.length > 0 ? "tool_calls" : isCut ? "length" : "eos"),
    ...{ toolCalls: calls, promptTokens, cachedTokens: 1, answerTokens: at },
    ...{ firstTokenMs: 2, decodePerSecond: 50 },
  };
}

function token(id: number, text: string, logprobs: number | undefined): AnswerToken {
  if (logprobs === undefined) return { id };
  const spelled = { id, text, bytes: [...new TextEncoder().encode(text)] };
  const alternatives = Array.from(
    { length: logprobs },
    (_, i) =>
      i === 0
        ? { ...spelled, logProbability: -0.5 }
        : { id: 100 + i, text: `other${i}`, bytes: [111], logProbability: -0.5 - i },
  );
  return { ...spelled, logProbability: -0.5, ...logprobs > 0 && { alternatives } };
}

/** Vectors of length 4: a text's length, 0.5, -1, and a number that no float32 holds exactly. */
export function vectorOf(input: string | readonly number[], dimensions = 4): Float32Array {
  return Float32Array.of(input.length, 0.5, -1, 0.1).slice(0, dimensions);
}

const MODEL = {
  name: "m",
  tasks: ["answer", "embed", "rerank"],
  created: 1_700_000_000,
  isLoaded: true,
  contextLength: CONTEXT,
} as const;

const CALLS: { readonly [K in keyof EngineCalls]: (argument: never) => EngineCalls[K]["result"] } =
  {
    embed: ({ input, dimensions }: EngineCalls["embed"]["argument"]) => ({
      vectors: input.map((one) => vectorOf(one, dimensions)),
      promptTokens: input.length,
    }),
    rerank: ({ query, documents }: EngineCalls["rerank"]["argument"]) => ({
      scores: documents.map((document) => document.includes(query) ? 0.9 : 0.1),
      promptTokens: documents.length,
    }),
    tokenize: ({ text }: EngineCalls["tokenize"]["argument"]) => {
      const pieces = typeof text === "string"
        ? text.split(/(?= )/)
        : text.map(({ content }) => String(content));
      return { ids: pieces.map((_, i) => i), pieces };
    },
    detokenize: ({ ids }: EngineCalls["detokenize"]["argument"]) => ({ text: ids.join(" ") }),
    models: () => [MODEL],
    describe: () => ({
      ...MODEL,
      vocabularySize: 100,
      device: "reference",
      chatTemplate: "{{ 1 }}",
    }),
    figures: () => ({
      models: [{
        ...{ name: "m", running: 1, waiting: 2, steps: 10, rows: 35, promptTokens: 50 },
        ...{ cachedTokens: 20, answerTokens: 30, proposedTokens: 8, acceptedTokens: 6 },
        ...{ cacheRows: 64, cacheCapacity: 4096, memoryBytes: 1000 },
      }],
      busyMs: 1500,
    }),
  };
