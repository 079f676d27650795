// Requests of strangers: whatever comes, the answer is none of a server's faults, says what is wrong as JSON, and the next
// request is answered. Mutated texts go to an engine that says anything; requests drawn from the fields' own values
// go to whoever the test has.

import fc from "fast-check";
import { createApp } from "../../engine/serve/http/app.ts";
import { ScriptedEngine } from "./scripted_engine.ts";

type Fetch = (request: Request) => Response | Promise<Response>;

const user = { role: "user", content: "hi" };
const weather = { type: "function", function: { name: "weather", parameters: { type: "object" } } };

/** Bodies that are answered, by path. */
const GOOD: readonly (readonly [path: string, body: unknown])[] = [
  ["/v1/chat/completions", { model: "m", messages: [user], max_tokens: 2 }],
  ["/v1/chat/completions", {
    ...{ model: "m", messages: [{ role: "system", content: "be" }, user], stream: true, n: 2 },
    ...{ max_completion_tokens: 2, temperature: 0.5, top_p: 0.9, seed: 1, stop: ["a"], min_p: 0.1 },
    ...{ logprobs: true, top_logprobs: 2, tools: [weather], tool_choice: "auto" },
    ...{ logit_bias: { "5": -1 }, stream_options: { include_usage: true } },
  }],
  ["/v1/chat/completions", {
    ...{ model: "m", messages: [user], max_tokens: 2, samplers: ["min_p", "temperature"] },
    response_format: {
      type: "json_schema",
      json_schema: { name: "x", schema: { type: "object", properties: { a: { enum: [1, 2] } } } },
    },
  }],
  ["/v1/completions", {
    model: "m",
    prompt: [[1, 2], [3]],
    max_tokens: 2,
    logprobs: 1,
    echo: false,
  }],
  ["/v1/responses", {
    ...{ model: "m", input: [user], instructions: "be", max_output_tokens: 2, stream: true },
    ...{ text: { format: { type: "json_object" } }, reasoning: { effort: "low" } },
  }],
  ["/v1/embeddings", { model: "m", input: ["a", "b"], encoding_format: "base64", dimensions: 2 }],
  ["/v1/rerank", { model: "m", query: "a", documents: ["a", { text: "b" }], top_n: 1 }],
  ["/tokenize", { model: "m", content: "a b", with_pieces: true }],
  ["/detokenize", { model: "m", tokens: [1, 2] }],
  ["/", { header: { fn: "process_query" }, text: "hi", random_seed: 1, is_streaming_mode: 0 }],
];

/** Good requests as texts: a line with method and path, and the body. */
export function requestSeeds(): string[] {
  return GOOD.map(([path, body]) => `POST ${path}\n${JSON.stringify(body)}`);
}

// Made when it is first asked: other targets need no server.
let scripted: ReturnType<typeof createApp> | undefined;

/** A mutated text, as a request. @throws {Error} If the server fails at it, or at the next. */
export async function fuzzRequest(bytes: Uint8Array): Promise<void> {
  const end = bytes.indexOf(10);
  const line = new TextDecoder().decode(bytes.subarray(0, Math.max(end, 0)));
  const [, method = "POST", path = "/"] = /^([A-Z]{1,10}) (\/[\x21-\x7e]{0,200})/.exec(line) ?? [];
  const body = bytes.slice(end + 1);
  const { fetch } = await (scripted ??= createApp({ engine: new ScriptedEngine() }));
  await checkRequest(fetch, { method: METHODS.includes(method) ? method : "POST", path, body });
}

const METHODS = ["POST", "PUT", "GET", "DELETE", "OPTIONS", "PATCH"];

/** What is sent. */
export interface FuzzedRequest {
  readonly method?: string;
  readonly path: string;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/**
 * Sends a request, and a good one behind it.
 *
 * @returns The status.
 * @throws {Error} If the answer is a fault of the server, or the next request is not answered.
 */
export async function checkRequest(
  fetch: Fetch,
  { method = "POST", path, body }: FuzzedRequest,
): Promise<number> {
  const url = new URL(path, "http://localhost");
  url.hostname = "localhost";
  const hasBody = method !== "GET";
  const response = await fetch(new Request(url, { method, ...hasBody && { body } }));
  const { status } = response;
  const text = await response.text();
  if (status >= 500 && status !== 503 && status !== 501) {
    throw new Error(`status ${status}: ${text}`);
  }
  // 501 is Inferflow's word for a function that is not there.
  if (status === 501 && !text.includes("ret_code")) throw new Error(`status 501: ${text}`);
  if (status >= 400) {
    const { error, ret_code: code } = JSON.parse(text);
    if (typeof (error?.message ?? code) !== "string") throw new Error(`no reason: ${text}`);
  }
  if (text.includes('"code":"internal_error"')) throw new Error(`a fault in a stream: ${text}`);
  const next = await fetch(
    new Request("http://localhost/v1/chat/completions", {
      method: "POST",
      body: JSON.stringify({ messages: [user], max_tokens: 1, temperature: 0 }),
    }),
  );
  if (next.status !== 200) throw new Error(`the next request: ${next.status} ${await next.text()}`);
  await next.body?.cancel();
  return status;
}

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(null, true, false, 0, 1, -1, 0.5, 1e9, "", "a", [], {}),
) as fc.Arbitrary<unknown>;

const call = { id: "a", type: "function", function: { name: "weather", arguments: "{}" } };
const called = [user, { role: "assistant", content: null, tool_calls: [call] }];
const format = (schema: unknown) => ({ type: "json_schema", json_schema: { name: "x", schema } });

/** What fields may be: values that are right, alone or together, and some that only the engine can refuse. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  temperature: [0, 0.5, 1, 3],
  top_p: [0, 0.5, 1],
  top_k: [0, 1, 5, 1e6],
  min_p: [0, 0.1, 1],
  typical_p: [0.5, 1],
  seed: [0, 1, -1, 2 ** 40],
  n: [1, 2, 3],
  stop: ["a", ["a", "b"], [], [""]],
  logit_bias: [{ 5: 1 }, { 5: false, 6: -100 }, { 999999: 1 }],
  frequency_penalty: [-2, 0.5],
  repeat_penalty: [1, 1.1, 0],
  dry_multiplier: [0, 0.8],
  xtc_probability: [0, 0.5],
  mirostat: [0, 1, 2, 3],
  samplers: [["min_p", "temperature"], [], ["temprature"], [{ name: "top_k", k: 3 }], ["top_k"]],
  strategy: ["greedy", "top_p", "fsd", "dance", { name: "mirostat" }],
  pool_size: [0, 5],
  grammar: ['root ::= "a" | "b"', "root ::= ", "x"],
  regex: ["a+", "(", "(?=a)b"],
  keep: [0, 3],
  priority: ["low", "high", 3],
  draft: ["lookup", "history"],
  context_full: ["drop", "stop", "slide", "error"],
  special: [true, false],
  ignore_eos: [true, false],
  stream: [true, false],
  adapters: [{}, { x: 1 }],
  zzz: [1],
};

const OF_CHAT: typeof VALUES = {
  ...VALUES,
  thinking: [true, false],
  chat_template_kwargs: [{}, { a: 1 }, { messages: 1 }],
  tools: [[], [weather], [weather, weather]],
  tool_choice: ["auto", "none", "required", weather],
  parallel_tool_calls: [true, false],
};

/** Endpoints with a request that is answered, their fields, and the name of the limit. */
const ENDPOINTS: readonly (readonly [string, object, typeof VALUES])[] = [
  ["/v1/chat/completions", { messages: [user], max_tokens: 2 }, {
    ...OF_CHAT,
    messages: [called, [...called, { role: "tool", tool_call_id: "a", content: "7" }], [
      user,
      user,
    ]],
    logprobs: [true],
    top_logprobs: [0, 2],
    stream_options: [{}, { include_usage: true }],
    response_format: [
      ...[{ type: "text" }, { type: "json_object" }, format({ enum: [1] }), format(false)],
      ...[format({ type: "string", pattern: "(?=a)" }), format({ type: "nothing" })],
    ],
  }],
  ["/v1/completions", { prompt: "hi", max_tokens: 2 }, {
    ...VALUES,
    prompt: [["a", "b"], [1, 2], [[1], [2]], [1e6], ""],
    logprobs: [0, 2],
    echo: [true],
    suffix: ["", "b"],
  }],
  ["/v1/responses", { input: "hi", max_output_tokens: 2 }, {
    ...OF_CHAT,
    tools: [[{ type: "function", name: "weather" }]],
    text: [{ format: { type: "text" } }, { format: { type: "json_object" } }],
    reasoning: [{ effort: "low" }, {}],
    truncation: ["auto", "disabled"],
    include: [["message.output_text.logprobs"]],
  }],
];

/** Requests with a few fields each, most of them right; answers are short. */
export const requests: fc.Arbitrary<FuzzedRequest> = fc.constantFrom(...ENDPOINTS)
  .chain(([path, good, values]) =>
    fc.subarray(Object.keys(values), { maxLength: 4 })
      .chain((names) =>
        fc.record(Object.fromEntries(names.map((name) => [name, valueOf(values[name]!)])))
      )
      .map((fields) => ({ path, body: JSON.stringify({ ...good, ...fields }) }))
  );

function valueOf(right: readonly unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...right) }, {
    weight: 1,
    arbitrary: anything,
  });
}
