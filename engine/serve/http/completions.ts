// /v1/completions: texts, or token ids, to go on with; with `suffix`, what belongs between two texts.

import type { AnswerJob } from "../engine.ts";
import { badRequest } from "./api_error.ts";
import type { FieldNames } from "./engine_words.ts";
import { COMPLETION_FIELDS } from "./answer_fields.ts";
import {
  AnswerRecord,
  type Events,
  finishReason,
  startAnswers,
  timingsOf,
  usageOf,
  type WholeAnswer,
  wholeAnswers,
} from "./answers.ts";
import type { Call } from "./call.ts";
import { dataBlock, eventStream } from "./event_stream.ts";
import { readFields, wrong } from "./fields.ts";
import { completionLogprobs } from "./logprobs.ts";
import { jobsFor, modelOf, withDefaults } from "./model_choice.ts";
import { streamUsage } from "./stream_options.ts";
import { readTexts } from "./texts.ts";

/** OpenAI's default of this endpoint. */
const MOST_TOKENS = 16;

/** A request that was read. */
interface Completions {
  readonly jobs: readonly AnswerJob[];
  /** Answers to a prompt. */
  readonly n: number;
  /** Texts that stand in front of the answers; empty unless they are wanted. */
  readonly echoes: readonly string[];
  readonly names: FieldNames;
  readonly isStreamed: boolean;
  readonly tellsUsage: boolean;
  readonly hasLogprobs: boolean;
  readonly head: Readonly<Record<string, unknown>>;
}

/** Goes on with texts. */
export async function completions(call: Call): Promise<Response> {
  const names = new Map<string, string>();
  return await call.naming(names, async () => {
    const asked = await readCompletions(call, names);
    const events = await startAnswers(call, asked.jobs, asked);
    if (asked.isStreamed) return eventStream(call, chunks(events, asked), { names });
    const answers = await wholeAnswers(events, {
      count: asked.jobs.length,
      keepsTokens: asked.hasLogprobs,
    });
    return Response.json({
      ...asked.head,
      choices: answers.map((answer, index) => ({
        index,
        text: asked.echoes[index]! + answer.text,
        logprobs: asked.hasLogprobs
          ? completionLogprobs(answer.tokens, asked.echoes[index]!.length)
          : null,
        finish_reason: finishReason(answer.end),
        timings: timingsOf(answer),
      })),
      usage: usageOf(answers, asked.n),
    });
  });
}

async function readCompletions(call: Call, names: Map<string, string>): Promise<Completions> {
  const body = await call.readJson();
  const unknown = call.noteUnknown;
  const { values, options, names: read } = readFields(body, COMPLETION_FIELDS, { unknown });
  read.forEach((path, option) => names.set(option, path));
  const { n = 1, best_of: best = n, logprobs, echo = false, suffix, stream = false } = values;
  if (best !== n) throw badRequest("Cannot use best_of: it must be as n here", "best_of");
  if (echo && logprobs !== undefined) {
    throw badRequest(
      "Cannot use echo with logprobs: those of prompts are not computed",
      "echo",
    );
  }
  if (values.prompt === undefined) {
    throw wrong("prompt", { wanted: "a text or a list", value: undefined });
  }
  const prompts = readTexts(values.prompt, "prompt");
  const model = await modelOf(call, { name: values.model, task: "answer" });
  const inputs = prompts.map((prompt) => inputOf(prompt, suffix));
  for (const name of suffix ? ["prompt", "suffix"] : ["prompt"]) names.set(name, name);
  const texts = await Promise.all(
    prompts.map((prompt) => echo ? textOf(prompt, { call, model }) : ""),
  );
  const jobs = jobsFor(inputs, {
    ...{ model, n },
    options: withDefaults({
      maxTokens: MOST_TOKENS,
      ...options,
      ...logprobs !== undefined && { logprobs },
    }),
  });
  return {
    ...{ jobs, n, names, isStreamed: stream, hasLogprobs: logprobs !== undefined },
    echoes: texts.flatMap((text) => Array<string>(n).fill(text)),
    tellsUsage: streamUsage(values.stream_options, unknown),
    head: {
      id: `cmpl-${call.uniqueId}`,
      object: "text_completion",
      created: call.created,
      model,
    },
  };
}

function inputOf(
  prompt: string | readonly number[],
  suffix: string | undefined,
): AnswerJob["input"] {
  if (suffix === undefined || suffix === "") return { prompt };
  if (typeof prompt === "string") return { prefix: prompt, suffix };
  throw badRequest("Cannot use suffix: prompt must be a text with it", "suffix");
}

async function textOf(
  prompt: string | readonly number[],
  { call, model }: { readonly call: Call; readonly model: string },
): Promise<string> {
  if (typeof prompt === "string") return prompt;
  return (await call.engine.call("detokenize", { model, ids: prompt }, call.signal)).text;
}

async function* chunks(
  events: Events,
  { head, jobs, n, echoes, tellsUsage, hasLogprobs }: Completions,
): AsyncGenerator<string, void, void> {
  const records = jobs.map(() => new AnswerRecord());
  const offsets = echoes.map((text) => text.length);
  const chunk = (index: number, rest: Readonly<Record<string, unknown>>) =>
    dataBlock({
      ...head,
      choices: [{ index, text: "", logprobs: null, finish_reason: null, ...rest }],
      ...tellsUsage && { usage: null },
    });
  for await (const { index, event } of events) {
    const record = records[index]!;
    if (event.kind === "part") {
      if (event.text === "" && !(hasLogprobs && event.tokens.length > 0)) continue;
      const logprobs = hasLogprobs ? completionLogprobs(event.tokens, offsets[index]!) : null;
      offsets[index]! += event.text.length;
      yield chunk(index, { text: event.text, logprobs });
      continue;
    }
    record.take(event, { keepsTokens: false });
    if (event.kind === "start") {
      if (echoes[index] !== "") yield chunk(index, { text: echoes[index] });
      continue;
    }
    const timings = timingsOf(record as WholeAnswer);
    yield chunk(index, { finish_reason: finishReason(event), timings });
  }
  if (tellsUsage) {
    yield dataBlock({ ...head, choices: [], usage: usageOf(records as WholeAnswer[], n) });
  }
  yield "data: [DONE]\n\n";
}
