// Inferflow's own endpoint [IF-23, §4.10]: a query in, pieces of JSON with a blank line behind each out. Whoever speaks
// OpenAI's API has no use for it; `troodon client` and programs that were written for Inferflow have.

import type { AnswerJob } from "../engine.ts";
import { INFERFLOW_FIELDS } from "./answer_fields.ts";
import { type Events, startAnswers, wholeAnswers } from "./answers.ts";
import { ApiError, apiErrorOf, notFound } from "./api_error.ts";
import type { Call } from "./call.ts";
import { eventStream } from "./event_stream.ts";
import { objectAt, readFields, type Values } from "./fields.ts";
import { modelOf, withDefaults } from "./model_choice.ts";

/** Longest request in bytes. */
const MOST_BYTES = 1_000_000;
/** A piece is sent when it has so many bytes. */
const PIECE_BYTES = 16;

type Query = Values<typeof INFERFLOW_FIELDS>;

/** Answers a query. Errors are told in Inferflow's codes, except where the path is none of its own (`isKnown: false`). */
export async function inferflow(
  call: Call,
  { isKnown = true }: { readonly isKnown?: boolean } = {},
): Promise<Response> {
  const limits = { ...call.options.limits };
  limits.bodyBytes = Math.min(limits.bodyBytes, MOST_BYTES);
  try {
    const body = await call.readJson(limits);
    if (!isKnown && body.header === undefined) throw notFound();
    return await answer(call, body);
  } catch (error) {
    const told = apiErrorOf(error);
    if (told.status === 500) throw error;
    if (!isKnown && (told.status === 404 || call.notes.model === undefined)) {
      throw told.status === 413 || told.status === 408 ? told : notFound();
    }
    return refusal(told);
  }
}

async function answer(call: Call, body: Readonly<Record<string, unknown>>): Promise<Response> {
  const { fn = "process_query" } = objectAt(body.header ?? {}, "header");
  if (fn === "get_stat") {
    return Response.json(await call.engine.call("figures", null, call.signal));
  }
  if (fn !== "process_query") {
    throw new ApiError(501, "There are the functions process_query and get_stat", {
      param: "header.fn",
      code: "error.invalid_request_format",
    });
  }
  const { values, options, names } = readFields(body, INFERFLOW_FIELDS, {
    unknown: call.noteUnknown,
  });
  const { text = "" } = values;
  if (text === "") {
    throw new ApiError(400, "text is empty", { param: "text", code: "error.empty_request" });
  }
  return await call.naming(names, async () => {
    const model = await modelOf(call, { name: values.model, task: "answer" });
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const job: AnswerJob = {
      model,
      input: inputOf(values),
      options: withDefaults({ maxTokens: 1024, ...Object.fromEntries(given) }),
    };
    const isStreamed = Boolean(values.is_streaming_mode ?? true);
    const events = await startAnswers(call, [job], { isStreamed });
    if (isStreamed) {
      return eventStream(call, pieces(call, events), {
        names,
        contentType: "application/json",
        onError: () => piece(call, { text: "", code: "error.processing", isEnd: true }),
        ping: "",
      });
    }
    const [whole] = await wholeAnswers(events, { count: 1, keepsTokens: false });
    return new Response(piece(call, { text: whole!.text, isEnd: true }), {
      headers: { "content-type": "application/json" },
    });
  });
}

/** A query; without a template it is a conversation as the model's own template writes it. */
function inputOf(query: Query): AnswerJob["input"] {
  const {
    text = "",
    system_prompt: system = "",
    res_prefix: answer = "",
    encoder_input_template: encoderTemplate,
    decoder_input_template: decoderTemplate,
  } = query;
  return {
    query: text,
    ...{ system, answer },
    ...encoderTemplate && { encoderTemplate },
    ...decoderTemplate && { decoderTemplate },
  };
}

async function* pieces(call: Call, events: Events): AsyncGenerator<string, void, void> {
  const encoder = new TextEncoder();
  let held = "";
  for await (const { event } of events) {
    if (event.kind === "start") continue;
    if (event.kind === "part") held += event.text;
    const isEnd = event.kind === "end";
    if (!isEnd && encoder.encode(held).length < PIECE_BYTES) continue;
    yield piece(call, { text: held, isEnd });
    held = "";
  }
}

function piece(
  call: Call,
  { text, code = "succ", isEnd }: {
    readonly text: string;
    readonly code?: string;
    readonly isEnd: boolean;
  },
): string {
  const { ms: cost } = call;
  const told = { text, ret_code: code, error_text: "", time_cost: Math.round(cost) };
  return `${JSON.stringify({ ...told, ...isEnd && { is_end: 1 } })}\n\n`;
}

/** Inferflow's codes by status; what says its own has it. */
const CODES: Readonly<Record<number, string>> = {
  400: "error.invalid_request_format",
  413: "error.too_long_request",
  429: "error.busy",
  503: "error.busy",
};

function refusal({ status, message, details: { code, headers } }: ApiError): Response {
  const known = code?.startsWith("error.") ? code : CODES[status] ?? "error.processing";
  const body = { text: "", ret_code: known, error_text: message, time_cost: 0, is_end: 1 };
  return Response.json(body, { status, headers: headers ?? {} });
}
