import { assertEquals } from "@std/assert";
import { eventsOf, testServer } from "../../../tests/support/http_server.ts";
import { ScriptedEngine } from "../../../tests/support/scripted_engine.ts";
import { JobError } from "../job_error.ts";

const PATH = "/v1/responses";
// deno-lint-ignore no-explicit-any
type Json = any;

async function streamed(engine: ScriptedEngine, fields: object = {}): Promise<Json[]> {
  const { ask } = await testServer(engine);
  const body = { model: "m", input: "hi", stream: true, ...fields };
  return await eventsOf(await ask(PATH, body));
}

Deno.test("items of an input are a conversation, with calls in the messages that made them", async () => {
  const { ask, engine } = await testServer();
  const called = (id: string) => ({
    type: "function_call",
    call_id: id,
    name: "f",
    arguments: "{}",
  });
  const input = [
    { role: "user", content: [{ type: "input_text", text: "hi" }] },
    { type: "reasoning", id: "rs_1", summary: [] },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "let me see" }] },
    called("c1"),
    called("c2"),
    { type: "function_call_output", call_id: "c1", output: "7" },
    { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "8" }] },
    called("c3"),
    { role: "developer", content: "be brief" },
  ];
  await ask(PATH, { model: "m", input, instructions: "be kind" });
  const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
  assertEquals(engine.jobs[0]!.input, {
    messages: [
      { role: "system", content: "be kind" },
      { role: "user", content: "hi" },
      { role: "assistant", content: "let me see", tool_calls: [call("c1"), call("c2")] },
      { role: "tool", tool_call_id: "c1", content: "7" },
      { role: "tool", tool_call_id: "c2", content: "8" },
      { role: "assistant", content: "", tool_calls: [call("c3")] },
      { role: "system", content: "be brief" },
    ],
  });
});

Deno.test("fields set the engine's options", async () => {
  const { ask, engine } = await testServer();
  await ask(PATH, {
    ...{ model: "m", input: "hi", max_output_tokens: 9, truncation: "auto", min_p: 0.1 },
    text: { format: { type: "json_schema", name: "x", schema: { type: "number" } } },
    reasoning: { effort: "low" },
    include: ["message.output_text.logprobs"],
    top_logprobs: 2,
    tools: [{ type: "function", name: "f", parameters: { type: "object" }, strict: true }],
    tool_choice: { type: "function", name: "f" },
  });
  assertEquals(engine.jobs[0]!.options as unknown, {
    ...{ temperature: 1, maxTokens: 9, onContextFull: "drop", minP: 0.1, logprobs: 2 },
    schema: { type: "number" },
    templateOptions: { reasoning_effort: "low" },
    tools: [{
      type: "function",
      function: { name: "f", parameters: { type: "object" }, strict: true },
    }],
    toolChoice: { name: "f" },
  });
  await ask(PATH, { model: "m", input: "hi", max_output_tokens: -1 });
  assertEquals(engine.jobs[1]!.options.maxTokens, 2 ** 31);
});

Deno.test("a text is told by the events of OpenAI's API, numbered, and ends as the whole response", async () => {
  const events = await streamed(new ScriptedEngine(() => ({ pieces: ["Hel", "lo"] })));
  assertEquals(events.map(({ type }) => type), [
    ...["response.created", "response.in_progress", "response.output_item.added"],
    ...["response.content_part.added", "response.output_text.delta", "response.output_text.delta"],
    ...["response.output_text.done", "response.content_part.done", "response.output_item.done"],
    "response.completed",
  ]);
  assertEquals(events.map((event) => event.sequence_number), events.map((_, i) => i));
  const { response } = events.at(-1);
  const part = { type: "output_text", text: "Hello", annotations: [], logprobs: [] };
  const [item] = response.output;
  assertEquals([item.type, item.role, item.status, item.content], [
    ...["message", "assistant", "completed"],
    [part],
  ]);
  assertEquals(events.slice(3, 8).every((event) => event.item_id === item.id), true);
  assertEquals([events[6].text, events[7].part, events[8].item], ["Hello", part, item]);
  assertEquals(response.usage, {
    ...{ input_tokens: 1, output_tokens: 2, total_tokens: 3 },
    ...{ input_tokens_details: { cached_tokens: 1 } },
    ...{ output_tokens_details: { reasoning_tokens: 0 } },
  });
});

Deno.test("what is thought, said and called are items one after the other", async () => {
  const script = {
    ...{ thinking: ["hm"], pieces: ["Let me see."] },
    calls: [{ id: "call00001", name: "f", arguments: { a: 1 }, argumentsText: '{"a":1}' }],
  };
  const tools = [{ type: "function", name: "f" }];
  const events = await streamed(new ScriptedEngine(() => script), { tools });
  const { response } = events.at(-1);
  assertEquals(response.output.map((item: Json) => item.type), [
    ...["reasoning", "message", "function_call"],
  ]);
  const call = response.output[2];
  assertEquals([call.call_id, call.name, call.arguments], ["call00001", "f", '{"a":1}']);
  const ofCall = events.filter(({ item_id: id }) => id === call.id);
  assertEquals(ofCall.map(({ type }) => type.replace("response.function_call_arguments.", "")), [
    ...["delta", "delta", "done"],
  ]);
  assertEquals(ofCall.slice(0, 2).map(({ delta }) => delta).join(""), '{"a":1}');
  const added = events.filter(({ type }) => type === "response.output_item.added");
  assertEquals(added.map((event) => event.output_index), [0, 1, 2]);
  const { ask } = await testServer(new ScriptedEngine(() => script));
  const whole = await (await ask(PATH, { model: "m", input: "hi", tools })).json();
  const plain = (items: readonly Json[]) => items.map(({ id: _, ...item }) => item);
  assertEquals(plain(whole.output), plain(response.output));
});

Deno.test("an answer that was cut is incomplete, one that failed has failed", async () => {
  const cut = (await streamed(new ScriptedEngine(), { max_output_tokens: 2 })).at(-1);
  assertEquals([cut.type, cut.response.status, cut.response.incomplete_details.reason], [
    ...["response.incomplete", "incomplete", "max_output_tokens"],
  ]);
  const failure = new JobError({ status: 503, message: "gone" });
  const failed = await streamed(new ScriptedEngine(() => ({ failure, pieces: ["a"] })));
  assertEquals(failed.slice(-2).map(({ type }) => type), ["response.failed", "error"]);
  assertEquals(failed.at(-2).response.error, { code: "server_error", message: "gone" });
});

Deno.test("what this server does not keep is refused by name", async () => {
  const { ask } = await testServer();
  const rows: readonly (readonly [string, Record<string, unknown>])[] = [
    ["previous_response_id", { previous_response_id: "resp_1" }],
    ["conversation", { conversation: "c" }],
    ["background", { background: true }],
    ["include", { include: ["file_search_call.results"] }],
    ["tools[0].type", { tools: [{ type: "web_search" }] }],
    ["input[0].type", { input: [{ type: "item_reference", id: "x" }] }],
    ["input[0].role", { input: [{ role: "tool", content: "x" }] }],
    ["input[0].call_id", { input: [{ type: "function_call_output", output: "x" }] }],
    ["input", { input: [] }],
    ["text.format.type", { text: { format: { type: "xml" } } }],
  ];
  for (const [param, fields] of rows) {
    const response = await ask(PATH, { model: "m", input: "hi", ...fields });
    const { error } = await response.json();
    assertEquals([response.status, error.param], [400, param], error.message);
  }
});
