// `troodon client` against services that are nothing but a handler: both forms, streamed and whole, cut at any byte.

import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { client, type ClientRequest, formOf, sendRequest } from "../engine/cli/commands/client.ts";
import type { Context } from "../engine/cli/command.ts";
import { testServer, withServer } from "./support/http_server.ts";

type Handler = (request: Request, body: Record<string, unknown>) => Response;

/** A service for the time of a test, and a terminal that keeps what is written. */
async function withService(
  handler: Handler,
  use: (address: string, context: Context, written: () => string) => Promise<void>,
): Promise<void> {
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request) => handler(request, await request.json()),
  );
  let out = "";
  const terminal = {
    ...{ screen: false, progress: false, keyboard: true, colours: { out: false, err: false } },
    ...{ columns: () => 80, out: (text: string) => out += text, err: () => {} },
    ...{ read: () => Promise.resolve(undefined), setRaw: () => {}, onInterrupt: () => () => {} },
  };
  const { signal } = new AbortController();
  const context = { terminal, signal, version: "", releaseInterrupt: () => {} };
  try {
    await use(`http://127.0.0.1:${server.addr.port}`, context, () => out);
  } finally {
    await server.shutdown();
  }
}

/** What a command is given, with a terminal that keeps what is written. */
function terminalContext(): { readonly context: Context; readonly written: () => string } {
  let out = "";
  const terminal = {
    ...{ screen: false, progress: false, keyboard: true, colours: { out: false, err: false } },
    ...{ columns: () => 80, out: (text: string) => out += text, err: () => {} },
    ...{ read: () => Promise.resolve(undefined), setRaw: () => {}, onInterrupt: () => () => {} },
  };
  const { signal } = new AbortController();
  const context = { terminal, signal, releaseInterrupt: () => {}, version: "0" };
  return { context, written: () => out };
}

/** A body in pieces of so many bytes. */
function inPieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at += size));
    },
  });
}

const SSE =
  ["Hé", "llo ", "🦖"].map((content) =>
    `data: ${
      JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
    }\n\n`
  ).join("") + ': ping\n\ndata: {"choices":[{"delta":{},"finish_reason":"length"}]}\n\n' +
  'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n';
const CHUNKS = ["Hé", "llo ", "🦖"].map((text, i) =>
  `${
    JSON.stringify({
      text,
      ret_code: "succ",
      error_text: "",
      time_cost: 1,
      is_end: Number(i === 2),
    })
  }\n\n`
).join("");

async function answer(handler: Handler, request: Partial<ClientRequest> & { path?: string }) {
  let text = "", code = -1;
  await withService(handler, async (address, context, written) => {
    const service = address + (request.path ?? "");
    code = await sendRequest(context, { request: "{}", json: true, ...request, service });
    text = written();
  });
  const { text: said, finishReason } = JSON.parse(text);
  return { code, said, finishReason };
}

Deno.test("streams of both forms are read, wherever they are cut", async () => {
  for (const size of [1, 2, 7, 1000]) {
    const openai = await answer(() => new Response(inPieces(SSE, size)), { form: "openai" });
    assertEquals(openai, { code: 0, said: "Héllo 🦖", finishReason: "length" });
    const own = await answer(
      () => new Response(inPieces(CHUNKS.replaceAll("\n", "\r\n"), size)),
      {},
    );
    assertEquals(own, { code: 0, said: "Héllo 🦖", finishReason: "stop" });
  }
});

Deno.test("whole answers of both forms are read", async () => {
  const openai = { choices: [{ message: { content: "yes\n" }, finish_reason: "stop" }] };
  const first = await answer(() => Response.json(openai), { path: "/v1/chat/completions" });
  assertEquals([first.said, first.finishReason], ["yes\n", "stop"]);
  const own = await answer(() => Response.json({ text: "yes", ret_code: "succ", is_end: 1 }), {});
  assertEquals(own.said, "yes");
});

Deno.test("flags become the request that the service's form asks for", async () => {
  const seen: { path: string; key: string | null; body: Record<string, unknown> }[] = [];
  const handler: Handler = (request, body) => {
    const { pathname: path } = new URL(request.url);
    seen.push({ path, key: request.headers.get("authorization"), body });
    return new Response(path === "/" ? CHUNKS : SSE);
  };
  await withService(handler, async (address, context) => {
    const common = [
      "-p",
      "Hi",
      "--system",
      "S",
      "--temperature",
      "0.5",
      "--seed",
      "3",
      "--max-tokens",
      "9",
    ];
    const own = ["--prefix", "P", "--decoding-alg", "sample.std", "--whole"];
    assertEquals(await client.run(context, [address, ...common, ...own]), 0);
    const openai = ["--form", "openai", "--model", "m", "--key", "k"];
    assertEquals(await client.run(context, [address, ...common, ...openai]), 0);
  });
  assertEquals(seen, [
    {
      path: "/",
      key: null,
      body: {
        header: { fn: "process_query" },
        text: "Hi",
        system_prompt: "S",
        res_prefix: "P",
        decoding_alg: "sample.std",
        random_seed: 3,
        temperature: 0.5,
        max_output_len: 9,
        is_streaming_mode: false,
      },
    },
    {
      path: "/v1/chat/completions",
      key: "Bearer k",
      body: {
        model: "m",
        messages: [{ role: "system", content: "S" }, { role: "user", content: "Hi" }],
        temperature: 0.5,
        seed: 3,
        max_tokens: 9,
        stream: true,
      },
    },
  ]);
});

async function messageOf(run: () => Promise<unknown>): Promise<string> {
  try {
    await run();
  } catch (error) {
    return (error as Error).message;
  }
  return "no error";
}

Deno.test("what goes wrong at the service is told in one line", async () => {
  const cases: [Response, Partial<ClientRequest>, string][] = [
    [
      Response.json({ error: { message: "no such model" } }, { status: 404 }),
      {},
      "404: no such model",
    ],
    [new Response("busy\nnow", { status: 503 }), {}, "503: busy now"],
    [new Response('{"ret_code":"error.busy","error_text":"full"}'), {}, "error.busy: full"],
    [new Response('data: {"error":{"message":"bad"}}\n\n'), { form: "openai" }, "an error: bad"],
    [new Response('{"text":"a","ret_code":"succ"}\n\n'), {}, "breaks off"],
    [new Response("<html>"), {}, "no JSON object"],
    [new Response('{"text":1}'), {}, "a text that is none"],
  ];
  for (const [response, request, message] of cases) {
    const said = await messageOf(() => answer(() => response, request));
    assertStringIncludes(said, message);
    assertEquals(said.split("\n").length, 1);
  }
  const closed = { service: "http://127.0.0.1:9", request: "{}", json: false };
  const context = { signal: new AbortController().signal } as Context;
  assertStringIncludes(await messageOf(() => sendRequest(context, closed)), "cannot be reached");
  const wrong = { ...closed, request: "[" };
  assertStringIncludes(await messageOf(() => sendRequest(context, wrong)), "no JSON object");
  const address = { ...closed, service: "file:///a" };
  assertStringIncludes(await messageOf(() => sendRequest(context, address)), "no http address");
});

Deno.test("the address tells the form", () => {
  assertEquals(formOf("http://a/v1/chat/completions"), "openai");
  assertEquals(formOf("http://a"), "inferflow");
});

Deno.test("our own server is asked in both forms, streamed and whole", async () => {
  const { app } = await testServer();
  await withServer(app, async (address) => {
    const { context, written } = terminalContext();
    const rows = [
      { form: "inferflow", path: "/", request: { text: "hi", is_streaming_mode: true } },
      { form: "inferflow", path: "/", request: { text: "hi", is_streaming_mode: 0 } },
      { form: "openai", path: "/v1/chat/completions", request: { ...CHAT, stream: true } },
      { form: "openai", path: "/v1/chat/completions", request: CHAT },
    ] as const;
    for (const { form, path, request } of rows) {
      const asked = { service: address + path, request: JSON.stringify(request), form, json: true };
      assertEquals(await sendRequest(context, asked), 0);
    }
    const texts = written().trim().split("\n").map((line) => JSON.parse(line).text);
    assertEquals(texts, rows.map(() => "Hello there, it is a fine day today."));
    await assertRejects(
      () => sendRequest(context, { service: address, request: '{"text":""}', json: true }),
      Error,
      "text is empty",
    );
  });
});

const CHAT = { messages: [{ role: "user", content: "hi" }], temperature: 0 };
