import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { testServer } from "../../../tests/support/http_server.ts";
import { ScriptedEngine, vectorOf } from "../../../tests/support/scripted_engine.ts";

const chat = { model: "m", messages: [{ role: "user", content: "hi" }] };

async function json(response: Response | Promise<Response>) {
  return await (await response).json();
}

Deno.test("health is told to everybody, readiness is what the host says, until the server drains", async () => {
  let isReady = false;
  const { app, ask } = await testServer(undefined, { keys: ["k"], isReady: () => isReady });
  assertEquals([(await ask("/health")).status, (await ask("/ready")).status], [200, 503]);
  isReady = true;
  assertEquals(await json(ask("/ready")), { status: "ready" });
  await app.drain();
  assertEquals(await json(ask("/ready")), { status: "draining" });
  assertEquals((await ask("/health")).status, 200);
  const refused = await ask("/v1/chat/completions", chat, { headers: { "x-api-key": "k" } });
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "5"]);
  assertEquals((await json(refused)).error.code, "draining");
});

Deno.test("draining waits for what is under way", async () => {
  const gate = Promise.withResolvers<void>();
  const engine = new ScriptedEngine(() => ({ wait: () => gate.promise }));
  const { app, ask } = await testServer(engine);
  const running = ask("/v1/chat/completions", { ...chat, stream: true });
  while (engine.running === 0) await new Promise((resolve) => setTimeout(resolve));
  let hasDrained = false;
  const drained = app.drain().then(() => hasDrained = true);
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(hasDrained, false);
  gate.resolve();
  assertMatch(await (await running).text(), /\[DONE\]/);
  await drained;
});

Deno.test("every endpoint but health and the page wants a key", async () => {
  const { ask } = await testServer(undefined, { keys: ["k"] });
  const paths = ["/v1/models", "/v1/models/m", "/props", "/metrics"];
  for (const path of paths) assertEquals((await ask(path)).status, 401, path);
  const posts = ["chat/completions", "completions", "responses", "embeddings", "rerank"];
  for (const path of [...posts.map((name) => `/v1/${name}`), "/tokenize", "/detokenize", "/"]) {
    assertEquals((await ask(path, {})).status, 401, path);
  }
  assertEquals((await ask("/any", { header: {}, text: "hi" })).status, 401);
});

Deno.test("more answers than there are places are told to come again, and places are given back", async () => {
  const gate = Promise.withResolvers<void>();
  const engine = new ScriptedEngine(() => ({ wait: () => gate.promise }));
  const { ask } = await testServer(engine, { limits: { answers: 2 } });
  const running = ask("/v1/chat/completions", { ...chat, n: 2 });
  while (engine.running < 2) await new Promise((resolve) => setTimeout(resolve));
  const busy = await ask("/v1/chat/completions", chat);
  assertEquals([busy.status, busy.headers.get("retry-after")], [429, "1"]);
  assertEquals((await json(busy)).error.code, "rate_limit_exceeded");
  assertEquals((await ask("/v1/embeddings", { model: "m", input: "a" })).status, 429);
  gate.resolve();
  assertEquals((await running).status, 200);
  assertEquals((await ask("/v1/chat/completions", chat)).status, 200);
  assertEquals((await ask("/v1/chat/completions", { ...chat, n: 3 })).status, 400);
});

Deno.test("an answer that takes too long ends with 503, and the engine is free", async () => {
  const wait = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve());
    });
  const engine = new ScriptedEngine(() => ({ wait }));
  const { ask } = await testServer(engine, { limits: { answerMs: 1 } });
  const response = await ask("/v1/chat/completions", chat);
  assertEquals([response.status, (await json(response)).error.code], [503, "timeout"]);
  assertEquals(engine.running, 0);
});

Deno.test("pages of listed origins may ask, others are not told so", async () => {
  const { ask } = await testServer(undefined, { cors: ["https://a.example"], keys: ["k"] });
  const preflight = (origin: string) =>
    ask("/v1/chat/completions", undefined, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
  const allowed = async (origin: string) =>
    (await preflight(origin)).headers.get("access-control-allow-origin");
  assertEquals(await allowed("https://a.example"), "https://a.example");
  assertEquals(await allowed("https://b.example"), null);
  const refused = await ask("/v1/models", undefined, { headers: { origin: "https://a.example" } });
  const { headers } = refused;
  assertEquals([refused.status, headers.get("access-control-allow-origin")], [
    ...[401, "https://a.example"],
  ]);
  const { ask: closed } = await testServer();
  const response = await closed("/v1/models", undefined, {
    headers: { origin: "https://a.example" },
  });
  assertEquals(response.headers.get("access-control-allow-origin"), null);
});

Deno.test("models are listed, and one is found by a name with slashes or not at all", async () => {
  const { ask } = await testServer();
  const { data: [model] } = await json(ask("/v1/models"));
  assertEquals([model.id, model.object, model.owned_by, model.loaded], [
    "m",
    "model",
    "troodon",
    true,
  ]);
  assertEquals(await json(ask("/v1/models/m")), model);
  const absent = await ask("/v1/models/hf:some/model");
  assertEquals([absent.status, (await json(absent)).error.code], [404, "model_not_found"]);
  const { limits, models } = await json(ask("/props"));
  assertEquals([limits.answers, models], [256, [model]]);
  assertEquals((await json(ask("/props?model=m"))).device, "reference");
  assertEquals((await ask("/props?model=x")).status, 404);
});

Deno.test("vectors come as numbers or base64, as short as asked", async () => {
  const { ask, engine } = await testServer();
  const asked = { model: "m", input: ["a", "bc"], dimensions: 4 };
  const { data, usage, object } = await json(ask("/v1/embeddings", asked));
  assertEquals([object, usage], ["list", { prompt_tokens: 2, total_tokens: 2 }]);
  assertEquals(data.map(({ embedding }: { readonly embedding: number[] }) => embedding), [
    ...["a", "bc"].map((text) => [...vectorOf(text)]),
  ]);
  const coded = await json(ask("/v1/embeddings", { ...asked, encoding_format: "base64" }));
  const bytes = Uint8Array.fromBase64(coded.data[1].embedding);
  assertEquals([...new Float32Array(bytes.buffer)], [...vectorOf("bc")]);
  assertEquals(engine.arguments[0], { model: "m", input: ["a", "bc"], dimensions: 4 });
  const wrong = await ask("/v1/embeddings", { model: "m", input: "a", encoding_format: "hex" });
  assertEquals([wrong.status, (await json(wrong)).error.param], [400, "encoding_format"]);
});

Deno.test("documents come best first, as many as asked, at the paths of Jina and Cohere", async () => {
  const { ask } = await testServer();
  const asked = { model: "m", query: "b", documents: ["a", { text: "b" }, "c"], top_n: 2 };
  for (const path of ["/v1/rerank", "/v2/rerank", "/rerank"]) {
    const { results } = await json(ask(path, { ...asked, return_documents: true }));
    assertEquals(results, [
      { index: 1, relevance_score: 0.9, document: { text: "b" } },
      { index: 0, relevance_score: 0.1, document: { text: "a" } },
    ]);
  }
  const wrong = await ask("/v1/rerank", { ...asked, documents: ["a", {}] });
  assertEquals((await json(wrong)).error.param, "documents[1].text");
});

Deno.test("texts become tokens and tokens texts, by the names of llama.cpp and of vLLM", async () => {
  const { ask, engine } = await testServer();
  assertEquals(await json(ask("/tokenize", { content: "a b" })), { tokens: [0, 1], count: 2 });
  const pieces = await json(ask("/tokenize", { prompt: "a b", with_pieces: true }));
  assertEquals(pieces.tokens, [{ id: 0, piece: "a" }, { id: 1, piece: " b" }]);
  await ask("/tokenize", { messages: chat.messages, parse_special: true });
  assertEquals(engine.arguments.filter((argument) => argument !== null), [
    { model: "m", text: "a b", addSpecial: false, parseSpecial: false },
    { model: "m", text: "a b", addSpecial: true, parseSpecial: false },
    { model: "m", text: chat.messages, addSpecial: false, parseSpecial: true },
  ]);
  assertEquals((await json(ask("/detokenize", { tokens: [7, 8] }))).content, "7 8");
  for (const body of [{}, { content: "a", text: "b" }]) {
    assertEquals((await ask("/tokenize", body)).status, 400);
  }
});

Deno.test("Inferflow's queries are answered at any path, in its pieces and codes", async () => {
  const { ask, engine } = await testServer();
  const query = {
    ...{ header: { fn: "process_query" }, text: "hi", system_prompt: "s", res_prefix: "Dear" },
    ...{ decoding_alg: "top_p", random_seed: 7, max_output_len: 5, temperature: 0.5 },
  };
  for (const path of ["/", "/inferflow", "/any/path"]) {
    const text = await (await ask(path, query)).text();
    const pieces = text.split("\n\n").slice(0, -1).map((piece) => JSON.parse(piece));
    assertEquals(pieces.every(({ ret_code: code }) => code === "succ"), true);
    assertEquals(pieces.map((piece) => piece.is_end), [...pieces.slice(1).map(() => undefined), 1]);
    assertEquals(pieces.slice(0, -1).every((piece) => piece.text.length >= 16), true);
  }
  const { input, options } = engine.jobs[0]!;
  assertEquals(input, { query: "hi", system: "s", answer: "Dear" });
  assertEquals([options.strategy, options.seed, options.maxTokens], ["top_p", 7, 5]);
  const whole = await json(ask("/", { text: "hi", is_streaming_mode: false }));
  assertEquals([whole.text, whole.is_end], ["Hello there, it is a fine day today.", 1]);
  const rows: readonly (readonly [number, string, unknown])[] = [
    [400, "error.empty_request", { text: "" }],
    [400, "error.invalid_request_format", "{"],
    [400, "error.invalid_request_format", { text: 1 }],
    [413, "error.too_long_request", { text: "a".repeat(1_000_001) }],
    [501, "error.invalid_request_format", { header: { fn: "dance" }, text: "hi" }],
  ];
  for (const [status, code, body] of rows) {
    const response = await ask("/", body);
    assertEquals([response.status, (await json(response)).ret_code], [status, code]);
  }
  const { models } = await json(ask("/", { header: { fn: "get_stat" } }));
  assertEquals(models[0].name, "m");
  for (const body of [{ text: "hi" }, "{", {}]) {
    assertEquals((await ask("/any/path", body)).status, 404);
  }
});

Deno.test("the page's files are sent with their policy, once, and nothing else is there", async () => {
  const file = {
    ...{ type: "text/html", bytes: new TextEncoder().encode("<p>"), etag: '"1"' },
    headers: { "content-security-policy": "default-src 'none'" },
  };
  const page = () => Promise.resolve(new Map([["/", file]]));
  const { ask } = await testServer(undefined, { page, keys: ["k"] });
  const response = await ask("/");
  assertEquals([response.status, await response.text()], [200, "<p>"]);
  assertEquals(response.headers.get("content-security-policy"), "default-src 'none'");
  const again = await ask("/", undefined, { headers: { "if-none-match": '"0", W/"1"' } });
  assertEquals([again.status, again.headers.get("etag")], [304, '"1"']);
  for (const path of ["/main.ts", "/..%2fdeno.json", "/%2e%2e/deno.json", "//etc/passwd", "/x"]) {
    const absent = await ask(path);
    const { error } = await json(absent);
    assertEquals([absent.status, error.code], [404, "not_found"], path);
    assertStringIncludes(error.message, "/v1/chat/completions");
  }
  const { ask: bare } = await testServer();
  assertEquals((await bare("/")).status, 404);
});

Deno.test("another method of a path that is there is 405 with those that it takes", async () => {
  const { ask } = await testServer();
  for (const [path, allow] of [["/v1/responses", "POST"], ["/rerank", "POST"]]) {
    const response = await ask(path!);
    assertEquals([response.status, response.headers.get("allow")], [405, allow]);
    assertEquals((await json(response)).error.code, "method_not_allowed");
  }
  const posted = await ask("/v1/models", {});
  assertEquals([posted.status, posted.headers.get("allow")], [405, "GET"]);
  assertEquals((await ask("/health", undefined, { method: "HEAD" })).status, 200);
});
