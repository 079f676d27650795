import { assertEquals, assertMatch } from "@std/assert";
import { ApiError } from "./api_error.ts";
import { jsonLines } from "./request_log.ts";
import { testServer } from "../../../tests/support/http_server.ts";
import { ScriptedEngine } from "../../../tests/support/scripted_engine.ts";

const SECRET = "what nobody else may read";
const body = {
  model: "m",
  messages: [{ role: "user", content: SECRET }],
  max_tokens: 3,
};

Deno.test("a line tells of a request what was asked of whom and how it went, and no text", async () => {
  const { ask, log } = await testServer(undefined, { keys: ["key-of-somebody"] });
  const headers = { authorization: "Bearer key-of-somebody", "x-request-id": "a.b-1" };
  const response = await ask("/v1/chat/completions", body, { headers });
  assertEquals(response.headers.get("x-request-id"), "a.b-1");
  const { content } = (await response.json()).choices[0].message;
  const [{ time, ms, ...entry }] = log as [Record<string, unknown>];
  assertMatch(time as string, /^\d{4}-\d\d-\d\dT/);
  assertEquals(typeof ms, "number");
  assertEquals(entry, {
    ...{ id: "a.b-1", method: "POST", path: "/v1/chat/completions", status: 200, model: "m" },
    ...{ promptTokens: 5, cachedTokens: 1, answerTokens: 3, finishReason: "length" },
  });
  await ask("/v1/chat/completions", { ...body, model: "other" }, { headers });
  await ask("/v1/chat/completions", { ...body, messages: [{ role: SECRET }] }, { headers });
  assertEquals(log.map(({ status, code, param }) => [status, code, param]), [
    [200, undefined, undefined],
    [404, "model_not_found", "model"],
    [400, "invalid_value", "messages[0].role"],
  ]);
  for (const word of [SECRET, content, "key-of-somebody"]) {
    assertEquals(JSON.stringify(log).includes(word), false, word);
  }
});

Deno.test("a prompt with several answers is counted once, each prompt of a list for itself", async () => {
  const { ask, log } = await testServer();
  await (await ask("/v1/chat/completions", { ...body, n: 3 })).body!.cancel();
  await (await ask("/v1/completions", { model: "m", prompt: ["a", "b c"], n: 2, max_tokens: 2 }))
    .json();
  const counts = log.map((
    { promptTokens, cachedTokens, answerTokens },
  ) => [promptTokens, cachedTokens, answerTokens]);
  assertEquals(counts, [[5, 1, 9], [3, 2, 8]]);
});

Deno.test("what was computed for somebody who left is counted", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let pieces = 0;
  const wait = () => ++pieces > 3 ? promise : Promise.resolve(); // the start and two pieces come
  const engine = new ScriptedEngine(() => ({ wait }));
  const { ask, log } = await testServer(engine);
  const response = await ask("/v1/chat/completions", { ...body, stream: true });
  const reader = response.body!.getReader();
  for (let i = 0; i < 3; i++) await reader.read(); // the role and two pieces
  await reader.cancel();
  resolve();
  const [{ hasLeft, promptTokens, answerTokens }] = log as [Record<string, unknown>];
  assertEquals([hasLeft, promptTokens, answerTokens], [true, 5, 2]);
});

Deno.test("nothing that a client chooses makes a second line or a header", async () => {
  let written = "";
  const { ask } = await testServer(undefined, { log: jsonLines((line) => written += line) });
  const odd = '/x%0d%0a%1b[31m{"status":500}';
  await ask(odd, undefined, { headers: { "x-request-id": "one two" } });
  const model = 'm\n{"status":500}\u2028\ud800';
  await ask("/v1/chat/completions", { ...body, model, [`a\r\nset-cookie: b`]: 1 });
  const response = await ask("/v1/chat/completions", body, {
    headers: { "x-request-id": "x".repeat(65) },
  });
  assertMatch(response.headers.get("x-request-id")!, /^[\da-f-]{36}$/);
  const lines = written.trimEnd().split("\n");
  assertEquals(lines.map((line) => JSON.parse(line).status), [404, 404, 200]);
  assertEquals(lines.every((line) => /^[\x20-\x7e\ufffd]*$/.test(line)), true, written);
  assertEquals(JSON.parse(lines[1]!).model, 'm {"status":500} \ufffd');
});

Deno.test("the cause of a fault of ours is in the log and nowhere else", async () => {
  const refusal = new Error("cannot open /models/secret");
  const { ask, log } = await testServer(new ScriptedEngine(() => ({ refusal })));
  const response = await ask("/v1/chat/completions", body);
  const { error } = await response.json();
  assertEquals([response.status, error.code, error.param], [500, "internal_error", null]);
  assertEquals(error.message.includes("secret"), false);
  assertEquals(log[0]!.error, refusal.message);
  assertEquals(new ApiError(400, "no").body.error.code, null);
});
