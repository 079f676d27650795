import { assertEquals, assertMatch } from "@std/assert";
import { eventsOf, testServer } from "../../../tests/support/http_server.ts";
import { ScriptedEngine } from "../../../tests/support/scripted_engine.ts";
import type { ToolCall } from "../../text/answer/tool_call.ts";
import { JobError } from "../job_error.ts";

const PATH = "/v1/chat/completions";
const messages = [{ role: "user", content: "hi" }];
const user = { model: "m", messages };

/** Options with which the engine is asked. */
async function optionsFor(fields: Readonly<Record<string, unknown>>): Promise<unknown> {
  const { ask, engine } = await testServer();
  const response = await ask(PATH, { ...user, ...fields });
  assertEquals(response.status, 200, await response.text());
  const { options } = engine.jobs[0]!;
  return JSON.parse(JSON.stringify(options));
}

/** Where a request says nothing of chance. */
const USUAL = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 };
const DEFAULTS = { onContextFull: "stop", maxTokens: 2 ** 31 };

Deno.test("OpenAI's fields and the engine's own set the engine's options", async () => {
  const rows: readonly (readonly [Record<string, unknown>, Record<string, unknown>])[] = [
    [{}, { ...USUAL }],
    [{ temperature: 0, top_p: 0.5, seed: 7 }, { temperature: 0, topP: 0.5, seed: 7 }],
    [{ max_tokens: 3 }, { maxTokens: 3, ...USUAL }],
    [{ max_completion_tokens: 4 }, { maxTokens: 4, ...USUAL }],
    [{ max_tokens: -1 }, { ...USUAL }],
    [{ max_tokens: null, max_completion_tokens: null }, { ...USUAL }],
    [{ max_tokens: -1, max_completion_tokens: -1 }, { ...USUAL }],
    [{ max_tokens: null, max_completion_tokens: 4 }, { maxTokens: 4, ...USUAL }],
    [{ stop: "\n" }, { stop: ["\n"], ...USUAL }],
    [{ stop: ["a", "b"], temperature: 0.5 }, { stop: ["a", "b"], temperature: 0.5 }],
    [{ logprobs: true }, { logprobs: 0, ...USUAL }],
    [{ logprobs: true, top_logprobs: 3 }, { logprobs: 3, ...USUAL }],
    [{ logprobs: false }, { ...USUAL }],
    [
      { frequency_penalty: 1, presence_penalty: -2, logit_bias: { "5": -100, "7": false } },
      {
        ...{ frequencyPenalty: 1, presencePenalty: -2, ...USUAL },
        logitBias: { "5": -100, "7": false },
      },
    ],
    [
      { min_p: 0.1, top_k: 5, typical_p: 0.9, dry_multiplier: 0.8, xtc_probability: 0.5 },
      {
        ...{ minP: 0.1, topK: 5, typicalP: 0.9, dryMultiplier: 0.8, xtcProbability: 0.5 },
        temperature: 1,
      },
    ],
    [{ mirostat: 2, mirostat_tau: 4 }, { mirostat: 2, mirostatTau: 4 }],
    [{ samplers: ["min_p", "temperature"] }, { samplers: ["min_p", "temperature"] }],
    [{ samplers: [] }, { samplers: [] }],
    [{ grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"', ...USUAL }],
    [{ regex: "a+", priority: "low" }, { regex: "a+", priority: "low", ...USUAL }],
    [{ draft: "lookup", keep: 3 }, { draft: "lookup", keep: 3, ...USUAL }],
    [{ context_full: "slide" }, { onContextFull: "slide", ...USUAL }],
    [{ thinking: false }, { thinking: false, ...USUAL }],
    [{ enable_thinking: true }, { thinking: true, ...USUAL }],
    [
      { reasoning_effort: "low", chat_template_kwargs: { a: 1 } },
      { templateOptions: { reasoning_effort: "low", a: 1 }, ...USUAL },
    ],
    [{ response_format: { type: "text" } }, { ...USUAL }],
    [{ response_format: { type: "json_object" } }, {
      ...{ schema: { type: "object" }, ...USUAL },
    }],
    [
      {
        response_format: {
          type: "json_schema",
          json_schema: { name: "x", strict: true, schema: { type: "number" } },
        },
      },
      { schema: { type: "number" }, ...USUAL },
    ],
    [{ user: "u", store: true, metadata: {}, service_tier: "auto", seed: null }, {
      ...USUAL,
    }],
  ];
  for (const [fields, options] of rows) {
    assertEquals(await optionsFor(fields), { ...DEFAULTS, ...options }, JSON.stringify(fields));
  }
});

const weather = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
const time = { type: "function", function: { name: "time", strict: null } };

Deno.test("tools and the choice among them come to the engine as it knows them", async () => {
  const named = [weather, { type: "function", function: { name: "time" } }];
  const rows: readonly (readonly [unknown, unknown])[] = [
    [undefined, { tools: named }],
    ["auto", { tools: named, toolChoice: "auto" }],
    ["none", { tools: named, toolChoice: "none" }],
    ["required", { tools: named, toolChoice: "required" }],
    [{ type: "function", function: { name: "time" } }, {
      ...{ tools: named, toolChoice: { name: "time" } },
    }],
    [
      {
        type: "allowed_tools",
        allowed_tools: {
          mode: "required",
          tools: [{ type: "function", function: { name: "time" } }],
        },
      },
      { tools: [named[1]], toolChoice: "required" },
    ],
  ];
  for (const [choice, options] of rows) {
    const fields = { tools: [weather, time], tool_choice: choice, temperature: 0 };
    assertEquals(await optionsFor(fields), { ...DEFAULTS, temperature: 0, ...options as object });
  }
  assertEquals(await optionsFor({ tools: [], tool_choice: "none", temperature: 0 }), {
    ...DEFAULTS,
    temperature: 0,
  });
});

Deno.test("messages come to the engine with contents as texts, calls and results", async () => {
  const { ask, engine } = await testServer();
  const call = { id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } };
  const given = [
    { role: "developer", content: [{ type: "text", text: "be" }, { type: "text", text: " kind" }] },
    { role: "user", content: "emoji \ud83d", name: "ann" },
    { role: "assistant", content: null, refusal: null, annotations: [], tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "7" },
    { role: "assistant", content: "seven", reasoning_content: "hm" },
    { role: "user", content: "" },
  ];
  await ask(PATH, { model: "m", messages: given });
  assertEquals(engine.jobs[0]!.input, {
    messages: [
      { role: "system", content: "be kind" },
      { role: "user", content: "emoji \ufffd", name: "ann" },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", content: "7", tool_call_id: "c" },
      { role: "assistant", content: "seven", reasoning_content: "hm" },
      { role: "user", content: "" },
    ],
  });
});

Deno.test("pictures come to the engine as parts, of chats and of responses", async () => {
  const { ask, engine } = await testServer();
  const url = "data:image/png;base64,AAAA", text = { type: "text", text: "What is this?" };
  const parts = [{ type: "image", image: url }, text];
  const content = [{ type: "image_url", image_url: { url, detail: "low" } }, text];
  await ask(PATH, { model: "m", messages: [{ role: "user", content }] });
  const input = [{ type: "input_image", image_url: url }, { type: "input_text", text: text.text }];
  await ask("/v1/responses", { model: "m", input: [{ role: "user", content: input }] });
  for (const job of engine.jobs) {
    assertEquals(job.input, { messages: [{ role: "user", content: parts }] });
  }
  assertEquals(engine.jobs.length, 2);
});

Deno.test("what is wrong is named by its path", async () => {
  const { ask, engine } = await testServer();
  const tool = (name: unknown) => ({ type: "function", function: { name } });
  const part = { type: "input_audio", input_audio: { data: "" } };
  const far = { type: "image_url", image_url: { url: "https://example.com/cat.png" } };
  const rows: readonly (readonly [string, Record<string, unknown>])[] = [
    ["messages", { messages: [] }],
    ["messages", { messages: "hi" }],
    ["messages", { messages: undefined }],
    ["messages[0]", { messages: ["hi"] }],
    ["messages[0].role", { messages: [{ content: "hi" }] }],
    ["messages[1].role", { messages: [...messages, { role: "robot", content: "hi" }] }],
    ["messages[0].content", { messages: [{ role: "user" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: 7 }] }],
    ["messages[0].content[1].type", {
      messages: [{ role: "user", content: [{ type: "text", text: "a" }, part] }],
    }],
    ["messages[0].content[0].image_url", { messages: [{ role: "user", content: [far] }] }],
    ["messages[0].content[0].type", { messages: [{ role: "system", content: [far] }] }],
    ["messages[0].content[0].text", { messages: [{ role: "user", content: [{ type: "text" }] }] }],
    ["messages[0].conten", { messages: [{ role: "user", conten: "hi" }] }],
    ["messages[0].tool_call_id", { messages: [{ role: "tool", content: "hi" }] }],
    ["messages[0].tool_calls[0].function.name", {
      messages: [{ role: "assistant", tool_calls: [tool("a b")] }],
    }],
    ["max_tokens", { max_tokens: 0 }],
    ["max_tokens", { max_tokens: -2 }],
    ["max_tokens", { max_tokens: -1, max_completion_tokens: 2 }],
    ["max_completion_tokens", { max_completion_tokens: -1.5 }],
    ["max_tokens", { max_tokens: 1, max_completion_tokens: 2 }],
    ["temperature", { temperature: "hot" }],
    ["temperature", { temperature: -1 }],
    ["top_p", { top_p: 1.5 }],
    ["n", { n: 0 }],
    ["n", { n: 129 }],
    ["seed", { seed: 1.5 }],
    ["stop", { stop: [1] }],
    ["logit_bias", { logit_bias: { a: 1 } }],
    ["logit_bias", { logit_bias: { 1: 101 } }],
    ["top_logprobs", { top_logprobs: 1 }],
    ["top_logprobs", { logprobs: true, top_logprobs: 21 }],
    ["tools[1].function.name", { tools: [tool("a"), tool("")] }],
    ["tools[1].function.name", { tools: [tool("a"), tool("a")] }],
    ["tools[0].type", { tools: [{ type: "web_search" }] }],
    ["tool_choice", { tool_choice: "required" }],
    ["tool_choice", { tools: [tool("a")], tool_choice: "some" }],
    ["tool_choice.function.name", { tools: [tool("a")], tool_choice: tool("b") }],
    ["response_format.type", { response_format: { type: "xml" } }],
    ["response_format.json_schema.schema", {
      response_format: { type: "json_schema", json_schema: { name: "x" } },
    }],
    ["response_format.json_schema", { response_format: { type: "json_schema" } }],
    ["stream_options.include_usag", { stream_options: { include_usag: true } }],
    ["temprature", { temprature: 1 }],
    ["maxTokens", { maxTokens: 1 }],
    ["functions", { functions: [] }],
    ["audio", { audio: {} }],
    ["modalities", { modalities: ["audio"] }],
  ];
  for (const [param, fields] of rows) {
    const response = await ask(PATH, { ...user, ...fields });
    const { error } = await response.json();
    assertEquals([response.status, error.param], [400, param], `${param}: ${error.message}`);
    assertEquals(error.message.includes(param), true, error.message);
  }
  assertEquals(engine.jobs.length, 0);
});

Deno.test("what the engine refuses is said in the names of the fields", async () => {
  const refusal = new JobError({
    status: 400,
    message: "Cannot use maxTokens 7: lower maxTokens, or raise topK",
    param: "maxTokens",
  });
  const { ask } = await testServer(new ScriptedEngine(() => ({ refusal })));
  for (const name of ["max_tokens", "max_completion_tokens"]) {
    const { error } = await (await ask(PATH, { ...user, [name]: 7 })).json();
    assertEquals([error.param, error.code], [name, "invalid_value"]);
    assertEquals(error.message, `Cannot use ${name} 7: lower ${name}, or raise top_k`);
  }
});

Deno.test("what only who loads a model can do is said as flags of the server", async () => {
  const rows = [
    [
      "the model has no chat template. Use generate(), or load it with a chatTemplate",
      "the model has no chat template. Use /v1/completions, or start the server with a --chat-template",
    ],
    [
      "the prompt has 9 tokens. Load the model with a larger contextLength",
      "the prompt has 9 tokens. Start the server with a larger --context",
    ],
    [
      "the cache is full. Shorten it, or load the model with more cacheTokens",
      "the cache is full. Shorten it, or start the server with more --cache-tokens",
    ],
  ] as const;
  for (const [message, told] of rows) {
    const refusal = new JobError({ status: 400, message });
    const { ask } = await testServer(new ScriptedEngine(() => ({ refusal })));
    assertEquals((await (await ask(PATH, user)).json()).error.message, told);
  }
});

Deno.test("a list or an object with something wrong in it is not said to be no list", async () => {
  const { ask } = await testServer();
  const rows = [
    [{ stop: [1] }, /must be a text or a list of texts, and not all of it is$/],
    [{ logit_bias: { a: 1 } }, /from -100 to 100 or false, and not all of it is$/],
    [{ logit_bias: [1] }, /or false, and is a list$/],
    [{ stop: 1 }, /must be a text or a list of texts, and is 1$/],
  ] as const;
  for (const [fields, expected] of rows) {
    assertMatch((await (await ask(PATH, { ...user, ...fields })).json()).error.message, expected);
  }
});

Deno.test("thinking stands apart from what is said, whole and streamed, and is counted", async () => {
  const engine = new ScriptedEngine(() => ({ thinking: ["so", " it"], pieces: ["Yes", "."] }));
  const { ask } = await testServer(engine);
  const { choices: [{ message }], usage } = await (await ask(PATH, user)).json();
  assertEquals([message.content, message.reasoning_content], ["Yes.", "so it"]);
  assertEquals(usage.completion_tokens_details.reasoning_tokens, 2);
  const stream = { ...user, stream: true, stream_options: { include_usage: true } };
  // deno-lint-ignore no-explicit-any
  const chunks = await eventsOf(await ask(PATH, stream)) as any[];
  const deltas = chunks.slice(0, -2).map(({ choices: [{ delta }] }) => delta);
  assertEquals(deltas, [
    { role: "assistant", content: "" },
    ...[{ reasoning_content: "so" }, { reasoning_content: " it" }],
    ...[{ content: "Yes" }, { content: "." }],
    {},
  ]);
  assertEquals(chunks.at(-2).usage, usage);
});

const calls: readonly ToolCall[] = [
  {
    id: "call00001",
    name: "weather",
    arguments: { city: "Bonn" },
    argumentsText: '{"city":"Bonn"}',
  },
  { id: "call00002", name: "time", arguments: {}, argumentsText: "{}" },
];

Deno.test("calls are told whole, and streamed as what is new of each", async () => {
  const { ask } = await testServer(new ScriptedEngine(() => ({ calls })));
  const asked = { ...user, tools: [weather, time] };
  const { choices: [choice] } = await (await ask(PATH, asked)).json();
  const told = calls.map(({ id, name, argumentsText }) => ({
    id,
    type: "function",
    function: { name, arguments: argumentsText },
  }));
  assertEquals([choice.finish_reason, choice.message.content], ["tool_calls", null]);
  assertEquals(choice.message.tool_calls, told);
  // deno-lint-ignore no-explicit-any
  const chunks = await eventsOf(await ask(PATH, { ...asked, stream: true })) as any[];
  const joined: (typeof told[number])[] = [];
  for (const { choices: [{ delta }] } of chunks.slice(0, -1)) {
    for (const { index, function: { name, arguments: text }, ...rest } of delta.tool_calls ?? []) {
      joined[index] ??= { ...rest, function: { name, arguments: "" } };
      joined[index].function.arguments += text;
    }
  }
  assertEquals(joined, told);
  assertEquals(chunks.at(-2).choices[0].finish_reason, "tool_calls");
  const single = { ...asked, parallel_tool_calls: false };
  const { choices: [one] } = await (await ask(PATH, single)).json();
  assertEquals(one.message.tool_calls, told.slice(0, 1));
  // deno-lint-ignore no-explicit-any
  const alone = await eventsOf(await ask(PATH, { ...single, stream: true })) as any[];
  const indices = alone.slice(0, -1).flatMap(({ choices: [{ delta }] }) =>
    (delta.tool_calls ?? []).map(({ index }: { readonly index: number }) => index)
  );
  assertEquals(new Set(indices), new Set([0]));
});

Deno.test("a failure in the middle of a stream ends it with an error, and no [DONE]", async () => {
  const failure = new JobError({ status: 503, message: "the device is lost" });
  const { ask, log } = await testServer(new ScriptedEngine(() => ({ pieces: ["a"], failure })));
  const response = await ask(PATH, { ...user, stream: true });
  const events = await eventsOf(response);
  assertEquals(events.at(-1), {
    error: {
      message: "the device is lost",
      type: "service_unavailable_error",
      param: null,
      code: null,
    },
  });
  assertEquals([response.status, log[0]!.error], [200, "the device is lost"]);
  assertEquals((await ask(PATH, user)).status, 503);
});

Deno.test("several answers to a prompt have seeds that count up, and count the prompt once", async () => {
  const { ask, engine } = await testServer();
  const asked = { ...user, n: 3, seed: 4, temperature: 1, max_tokens: 2 };
  const { choices, usage } = await (await ask(PATH, asked)).json();
  assertEquals(engine.jobs.map(({ options }) => options.seed), [4, 5, 6]);
  assertEquals(choices.map(({ index }: { readonly index: number }) => index), [0, 1, 2]);
  assertEquals([usage.prompt_tokens, usage.completion_tokens], [1, 6]);
});

Deno.test("a model that is not named is the first that answers", async () => {
  const { ask, engine } = await testServer();
  const { model } = await (await ask(PATH, { messages })).json();
  assertEquals([model, engine.jobs[0]!.model], ["m", "m"]);
});
