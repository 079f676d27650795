// /v1/responses: OpenAI's newer form of a conversation, without what a server would have to keep.

import { TEXT } from "../../record.ts";
import type { AnswerEnd, AnswerJob } from "../engine.ts";
import { RESPONSE_FIELDS } from "./answer_fields.ts";
import { type Events, startAnswers } from "./answers.ts";
import { apiErrorOf, badRequest } from "./api_error.ts";
import type { FieldNames } from "./engine_words.ts";
import type { Call } from "./call.ts";
import { templateOptions } from "./chat.ts";
import { eventStream } from "./event_stream.ts";
import { field, ignored, readFields, wrong } from "./fields.ts";
import { jobsFor, modelOf, WHOLE_CONTEXT, withDefaults } from "./model_choice.ts";
import { readInput } from "./response_input.ts";
import { type ResponseEvent, ResponseOutput } from "./response_output.ts";
import { chooseTools, readFormat, readTools } from "./tools.ts";

const TEXT_FIELDS = {
  format: field(RESPONSE_FIELDS.text.rule),
  ...ignored(["verbosity"]),
} as const;

const REASONING_FIELDS = {
  effort: field(TEXT),
  ...ignored(["summary", "generate_summary"]),
} as const;

/** What is worth to include; the rest has nothing to do with this server. */
const LOGPROBS = "message.output_text.logprobs";
const INCLUDES = [LOGPROBS, "reasoning.encrypted_content"];

interface Asked {
  readonly job: AnswerJob;
  readonly names: FieldNames;
  readonly isStreamed: boolean;
  readonly hasLogprobs: boolean;
  readonly mostCalls: number;
  /** The response's fields that are known from the start. */
  readonly head: Readonly<Record<string, unknown>>;
}

/** Answers a conversation. */
export async function responses(call: Call): Promise<Response> {
  const names = new Map<string, string>();
  return await call.naming(names, async () => {
    const asked = await readRequest(call, names);
    const output = new ResponseOutput(call.uniqueId, asked);
    const events = await startAnswers(call, [asked.job], asked);
    if (asked.isStreamed) {
      return eventStream(call, blocks(events, asked, output), {
        names,
        onError: ({ error }) => block({ ...error as object, type: "error" }),
      });
    }
    let end: AnswerEnd | undefined;
    for await (const { event } of events) {
      if (event.kind === "part") { for (const _ of output.take(event)); }
      if (event.kind === "end") end = event;
    }
    for (const _ of output.finish(end!, statusOf(end!)));
    return Response.json(completed(asked, output, end!));
  });
}

/** Options by the fields that errors are told of, where tables do not say. */
const TOLD = [["toolChoice", "tool_choice"], ["tools", "tools"], ["messages", "input"]] as const;

async function readRequest(call: Call, names: Map<string, string>): Promise<Asked> {
  const body = await call.readJson();
  const unknown = call.noteUnknown;
  const { values, options, names: read } = readFields(body, RESPONSE_FIELDS, { unknown });
  read.forEach((path, option) => names.set(option, path));
  const { input, instructions, stream = false, include = [], truncation, top_logprobs: top } =
    values;
  if (input === undefined) {
    throw wrong("input", { wanted: "a text or a list of items", value: undefined });
  }
  const odd = include.find((one) => !INCLUDES.includes(one));
  if (odd !== undefined) {
    throw badRequest(`Cannot use include: it has ${INCLUDES.join(", ")} at most`, "include");
  }
  const at = { unknown };
  const { format: formatGiven } = readFields(values.text ?? {}, TEXT_FIELDS, { ...at, at: "text." })
    .values;
  const { effort } = readFields(values.reasoning ?? {}, REASONING_FIELDS, {
    ...at,
    at: "reasoning.",
  }).values;
  const format = readFormat(formatGiven, "text.format");
  if (format) names.set("schema", format.path);
  for (const [option, path] of TOLD) names.set(option, path);
  const hasLogprobs = include.includes(LOGPROBS) || top !== undefined;
  const tools = readTools(values.tools ?? [], { nested: false, names });
  const model = await modelOf(call, { name: values.model, task: "answer" });
  const [job] = jobsFor([{ messages: readInput(input, instructions) }], {
    ...{ model, n: 1 },
    options: withDefaults({
      maxTokens: WHOLE_CONTEXT,
      ...truncation === "auto" && { onContextFull: "drop" },
      ...options,
      ...hasLogprobs && { logprobs: top ?? 0 },
      ...format && { schema: format.schema },
      ...templateOptions({
        ...values.chat_template_kwargs && { chat_template_kwargs: values.chat_template_kwargs },
        ...effort !== undefined && { reasoning_effort: effort },
      }),
      ...chooseTools(tools, values.tool_choice),
    }),
  });
  return {
    ...{ job: job!, names, isStreamed: stream, hasLogprobs },
    mostCalls: values.parallel_tool_calls === false ? 1 : Infinity,
    head: headOf(call, { ...values, model }),
  };
}

function headOf(
  call: Call,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { instructions = null, text = { format: { type: "text" } }, tools = [] } = values;
  return {
    id: `resp_${call.uniqueId}`,
    object: "response",
    created_at: call.created,
    model: values.model,
    ...{ instructions, text, tools },
    tool_choice: values.tool_choice ?? "auto",
    parallel_tool_calls: values.parallel_tool_calls ?? true,
    temperature: values.temperature ?? 1,
    top_p: values.top_p ?? 1,
    max_output_tokens: values.max_output_tokens ?? null,
    reasoning: { effort: null, summary: null, ...values.reasoning as object },
    truncation: values.truncation ?? "disabled",
    metadata: values.metadata ?? {},
    ...{ previous_response_id: null, background: false, store: false, error: null },
  };
}

type Status = "completed" | "incomplete";

function statusOf({ finishReason }: AnswerEnd): Status {
  return finishReason === "length" || finishReason === "context" ? "incomplete" : "completed";
}

function completed({ head }: Asked, output: ResponseOutput, end: AnswerEnd) {
  const status = statusOf(end);
  return {
    ...head,
    status,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    output: output.items(status),
    usage: {
      input_tokens: end.promptTokens,
      input_tokens_details: { cached_tokens: end.cachedTokens },
      output_tokens: end.answerTokens,
      output_tokens_details: { reasoning_tokens: output.thinkingTokens },
      total_tokens: end.promptTokens + end.answerTokens,
    },
  };
}

function block(event: ResponseEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

async function* blocks(
  events: Events,
  asked: Asked,
  output: ResponseOutput,
): AsyncGenerator<string, void, void> {
  let number = 0;
  const told = (event: ResponseEvent) => block({ ...event, sequence_number: number++ });
  const begun = {
    ...asked.head,
    ...{ status: "in_progress", incomplete_details: null, output: [], usage: null },
  };
  yield told({ type: "response.created", response: begun });
  yield told({ type: "response.in_progress", response: begun });
  try {
    for await (const { event } of events) {
      if (event.kind === "start") continue;
      const steps = event.kind === "part"
        ? output.take(event)
        : output.finish(event, statusOf(event));
      for (const step of steps) yield told(step);
      if (event.kind !== "end") continue;
      const response = completed(asked, output, event);
      yield told({ type: `response.${response.status}`, response });
    }
  } catch (error) {
    const { message, details: { code = "server_error" } } = apiErrorOf(error, asked.names);
    const response = { ...begun, status: "failed", error: { code, message } };
    yield told({ type: "response.failed", response });
    throw error;
  }
}
