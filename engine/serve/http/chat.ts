// /v1/chat/completions

import { badRequest } from "./api_error.ts";
import type { FieldNames } from "./engine_words.ts";
import { CHAT_FIELDS, maxTokensOf } from "./answer_fields.ts";
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
import type { AnswerJob } from "../engine.ts";
import type { Call } from "./call.ts";
import { CallDeltas, type NewOfCall } from "./call_deltas.ts";
import { eventStream } from "./event_stream.ts";
import { objectAt, readFields, wrong } from "./fields.ts";
import { chatLogprobs } from "./logprobs.ts";
import { readMessages } from "./messages.ts";
import { jobsFor, modelOf, withDefaults } from "./model_choice.ts";
import { streamUsage } from "./stream_options.ts";
import { chooseTools, readFormat, readTools } from "./tools.ts";

/** A request that was read. */
interface Chat {
  readonly jobs: readonly AnswerJob[];
  readonly names: FieldNames;
  readonly isStreamed: boolean;
  readonly tellsUsage: boolean;
  readonly hasLogprobs: boolean;
  readonly mostCalls: number;
  /** What every piece of the response begins with. */
  readonly head: { readonly id: string; readonly created: number; readonly model: string };
}

/** Answers a conversation. */
export async function chat(call: Call): Promise<Response> {
  const names = new Map<string, string>();
  return await call.naming(names, async () => {
    const asked = await readChat(call, names);
    const events = await startAnswers(call, asked.jobs, asked);
    if (asked.isStreamed) return eventStream(call, chunks(events, asked), { names });
    const answers = await wholeAnswers(events, {
      count: asked.jobs.length,
      keepsTokens: asked.hasLogprobs,
    });
    return Response.json(completion(answers, asked));
  });
}

/** Options by the fields that errors are told of, where tables do not say. */
const TOLD = [["toolChoice", "tool_choice"], ["tools", "tools"], ["messages", "messages"]] as const;

async function readChat(call: Call, names: Map<string, string>): Promise<Chat> {
  const body = await call.readJson();
  const unknown = call.noteUnknown;
  const { values, options, names: read } = readFields(body, CHAT_FIELDS, { unknown });
  read.forEach((path, option) => names.set(option, path));
  const { n = 1, logprobs = false, top_logprobs: top, stream = false } = values;
  if (values.messages === undefined) {
    throw wrong("messages", { wanted: "a list of messages", value: undefined });
  }
  if (top !== undefined && !logprobs) {
    throw badRequest("Cannot use top_logprobs: logprobs must be true with it", "top_logprobs");
  }
  const { max_tokens: most, max_completion_tokens: mostNow } = values;
  if (most !== undefined && mostNow !== undefined && most !== mostNow) {
    throw badRequest("Cannot use both max_tokens and max_completion_tokens", "max_tokens");
  }
  const format = readFormat(values.response_format, "response_format");
  if (format) names.set("schema", format.path);
  names.set("maxTokens", mostNow === undefined ? "max_tokens" : "max_completion_tokens");
  for (const [option, path] of TOLD) names.set(option, path);
  const messages = readMessages(values.messages, { unknown });
  const tools = readTools(values.tools ?? [], { nested: true, names });
  const model = await modelOf(call, { name: values.model, task: "answer" });
  const jobs = jobsFor([{ messages }], {
    ...{ model, n },
    options: withDefaults({
      maxTokens: maxTokensOf(mostNow ?? most),
      ...options,
      ...logprobs && { logprobs: top ?? 0 },
      ...format && { schema: format.schema },
      ...templateOptions(values),
      ...chooseTools(tools, values.tool_choice),
    }),
  });
  return {
    ...{ jobs, names, isStreamed: stream, hasLogprobs: logprobs },
    tellsUsage: streamUsage(values.stream_options, unknown),
    mostCalls: values.parallel_tool_calls === false ? 1 : Infinity,
    head: { id: `chatcmpl-${call.uniqueId}`, created: call.created, model },
  };
}

/** What a template is given besides. */
export function templateOptions(
  { chat_template_kwargs: given, reasoning_effort: effort }: {
    readonly chat_template_kwargs?: Readonly<Record<string, unknown>>;
    readonly reasoning_effort?: string;
  },
): Pick<AnswerJob["options"], "templateOptions"> {
  if (given === undefined && effort === undefined) return {};
  return {
    templateOptions: {
      ...effort !== undefined && { reasoning_effort: effort },
      ...given && objectAt(given, "chat_template_kwargs"),
    },
  };
}

function completion(answers: readonly WholeAnswer[], { head, jobs, hasLogprobs, mostCalls }: Chat) {
  return {
    ...head,
    object: "chat.completion",
    choices: answers.map((answer, index) => {
      const calls = answer.end.toolCalls.slice(0, mostCalls);
      return {
        index,
        message: {
          role: "assistant",
          content: calls.length > 0 && answer.text === "" ? null : answer.text,
          refusal: null,
          ...answer.thinking !== "" && { reasoning_content: answer.thinking },
          ...calls.length > 0 && {
            tool_calls: calls.map(({ id, name, argumentsText }) => ({
              id,
              type: "function",
              function: { name, arguments: argumentsText },
            })),
          },
        },
        logprobs: hasLogprobs ? { content: chatLogprobs(answer.tokens), refusal: null } : null,
        finish_reason: finishReason(answer.end),
        timings: timingsOf(answer),
      };
    }),
    usage: usageOf(answers, jobs.length),
  };
}

/** What is kept of an answer while it is streamed. */
interface Streamed {
  readonly record: AnswerRecord;
  readonly calls: CallDeltas;
}

async function* chunks(
  events: Events,
  { head, jobs, tellsUsage, hasLogprobs, mostCalls }: Chat,
): AsyncGenerator<string, void, void> {
  const opening = JSON.stringify({ ...head, object: "chat.completion.chunk" }).slice(0, -1);
  const closing = tellsUsage ? `,"usage":null}\n\n` : "}\n\n";
  // What is the same in every chunk is written once.
  const chunk = (index: number, delta: unknown, rest = `"logprobs":null,"finish_reason":null`) =>
    `data: ${opening},"choices":[{"index":${index},"delta":${
      JSON.stringify(delta)
    },${rest}}]${closing}`;
  const streamed: readonly Streamed[] = jobs.map(() => ({
    record: new AnswerRecord(),
    calls: new CallDeltas({ most: mostCalls }),
  }));
  for await (const { index, event } of events) {
    const { record, calls } = streamed[index]!;
    if (event.kind === "start") {
      record.take(event, { keepsTokens: false });
      yield chunk(index, { role: "assistant", content: "" });
    } else if (event.kind === "end") {
      record.take(event, { keepsTokens: false });
      for (const delta of calls.finish(event.toolCalls)) yield chunk(index, callDelta(delta));
      const timings = JSON.stringify(timingsOf(record as WholeAnswer));
      yield chunk(
        index,
        {},
        `"logprobs":null,"finish_reason":"${finishReason(event)}","timings":${timings}`,
      );
    } else {
      if (event.thinking && event.text === "") record.thinkingTokens += event.tokens.length;
      const fresh = event.calls ? calls.take(event.calls).map(callDelta) : [];
      if (event.thinking) yield chunk(index, { reasoning_content: event.thinking });
      if (event.text !== "" || hasLogprobs && event.tokens.length > 0) {
        yield chunk(index, { content: event.text }, hasLogprobs ? logprobsOf(event) : undefined);
      }
      for (const delta of fresh) yield chunk(index, delta);
    }
  }
  if (tellsUsage) {
    const usage = usageOf(streamed.map(({ record }) => record as WholeAnswer), jobs.length);
    yield `data: ${opening},"choices":[],"usage":${JSON.stringify(usage)}}\n\n`;
  }
  yield "data: [DONE]\n\n";
}

function logprobsOf({ tokens }: { readonly tokens: Parameters<typeof chatLogprobs>[0] }): string {
  const logprobs = JSON.stringify({ content: chatLogprobs(tokens), refusal: null });
  return `"logprobs":${logprobs},"finish_reason":null`;
}

function callDelta({ index, id, name, isFirst, argumentsText }: NewOfCall): unknown {
  const called = { ...isFirst && { name }, arguments: argumentsText };
  return {
    tool_calls: [{ index, ...isFirst && { id, type: "function" }, function: called }],
  };
}
