// The server on a real socket, with clients that leave, trickle, send too much or never finish.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { testServer, withServer } from "./support/http_server.ts";
import { JobError } from "../engine/serve/job_error.ts";
import { ScriptedEngine } from "./support/scripted_engine.ts";

const chat = { model: "m", messages: [{ role: "user", content: "hi" }] };
const PATH = "/v1/chat/completions";

/** Bytes over a connection of one's own, and all that comes back until it closes or `until` is seen. */
async function raw(
  port: number,
  parts: Iterable<string | Uint8Array>,
  { until }: { readonly until?: RegExp } = {},
): Promise<string> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const encoder = new TextEncoder();
  const writing = (async () => {
    for (const part of parts) {
      await connection.write(typeof part === "string" ? encoder.encode(part) : part);
    }
  })().catch(() => {}); // it is closed when the answer is there
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(1 << 16);
  let text = "";
  for (;;) {
    const count = await connection.read(buffer).catch(() => null);
    if (count === null) break;
    text += decoder.decode(buffer.subarray(0, count), { stream: true });
    if (until?.test(text)) break;
  }
  connection.close();
  await writing;
  return text;
}

function head(path: string, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries({ host: "localhost", ...headers }).map(([k, v]) => `${k}: ${v}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Turns of the event loop until something holds; a test that waits for ever fails by its time. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

const waits = () =>
  new ScriptedEngine(() => ({
    wait: (signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
  }));

Deno.test("a client that leaves before the first byte ends its answers, streamed or not", async () => {
  const engine = waits();
  const { app, log } = await testServer(engine);
  await withServer(app, async (address) => {
    for (const fields of [{}, { stream: true }, { n: 3 }, { n: 2, stream: true }]) {
      const { n = 1 } = fields as { readonly n?: number };
      const abort = new AbortController();
      const body = JSON.stringify({ ...chat, ...fields });
      const response = fetch(address + PATH, { method: "POST", body, signal: abort.signal });
      const gone = response.then(() => "answered", () => "gone");
      await until(() => engine.running === n);
      abort.abort();
      await until(() => engine.running === 0);
      assertEquals(await gone, "gone");
    }
    await until(() => log.length === 4);
    assertEquals(log.map(({ hasLeft }) => hasLeft), [true, true, true, true]);
    assertEquals(engine.left, 7);
  });
});

Deno.test("a stream whose prompt takes long begins without it, and is left like any other", async () => {
  // Of a body in two pieces the server's runtime tells nothing before the response has begun.
  const engine = waits();
  const { app, log } = await testServer(engine, { limits: { headMs: 5 } });
  await withServer(app, async (_address, port) => {
    for (const fields of [{}, { n: 2 }]) {
      const body = JSON.stringify({ ...chat, ...fields, stream: true, user: "u".repeat(20_000) });
      const parts = [head(PATH, { "content-length": body.length }), body];
      assertMatch(await raw(port, parts, { until: /\r\n\r\n/ }), /^HTTP\/1\.1 200 /);
      await until(() => engine.running === 0);
    }
    await until(() => log.length === 2);
    assertEquals([log.map(({ hasLeft }) => hasLeft), engine.left], [[true, true], 3]);
  });
});

Deno.test("what is wrong is a status while a model is loaded, and an event once a stream has begun", async () => {
  const wrong = new JobError({ status: 400, message: "too long", code: "context_length_exceeded" });
  for (const isLoaded of [false, true]) {
    const gate = Promise.withResolvers<void>(), asked = Promise.withResolvers<void>();
    const engine = new ScriptedEngine(() => ({ wait: () => gate.promise }));
    engine.call = (() => {
      asked.resolve();
      return Promise.resolve([{ name: "m", tasks: ["answer"], created: 1, isLoaded }]);
    }) as ScriptedEngine["call"];
    const { ask } = await testServer(engine, { limits: { headMs: 1 } });
    const answer = ask(PATH, { ...chat, stream: true });
    await asked.promise;
    if (isLoaded) await answer;
    gate.reject(wrong);
    const response = await answer;
    assertEquals(response.status, isLoaded ? 200 : 400);
    assertMatch(await response.text(), /"code":"context_length_exceeded"/);
  }
});

Deno.test("a client that leaves a stream ends its answer at the next step", async () => {
  let pieces = 0;
  const engine = new ScriptedEngine(() => ({
    pieces: Array<string>(1000).fill("word "),
    wait: () => new Promise((resolve) => setTimeout(resolve, pieces++ > 5 ? 5 : 0)),
  }));
  const { app, log } = await testServer(engine);
  await withServer(app, async (address) => {
    const asked = { model: "m", stream: true };
    const bodies = {
      [PATH]: { ...chat, ...asked },
      "/v1/completions": { ...asked, prompt: "a", max_tokens: 1000 },
      "/v1/responses": { ...asked, input: "a" },
      "/": { text: "hi" },
    };
    for (const [path, body] of Object.entries(bodies)) {
      const response = await fetch(address + path, { method: "POST", body: JSON.stringify(body) });
      const reader = response.body!.getReader();
      await reader.read();
      await reader.cancel();
      await until(() => engine.running === 0);
    }
    await until(() => log.length === 4);
    assertEquals(log.map(({ status, hasLeft }) => [status, hasLeft]), Array(4).fill([200, true]));
    assert(pieces < 1000, `${pieces} pieces`);
  });
});

Deno.test("a body of 100 MB is refused by its length, before it is read", async () => {
  const { app } = await testServer();
  await withServer(app, async (_address, port) => {
    const text = await raw(port, [head(PATH, { "content-length": 100e6 }), "{"], {
      until: /too_large/,
    });
    assertMatch(text, /^HTTP\/1\.1 413 /);
    assertMatch(text, /"code":"request_too_large"/);
  });
});

Deno.test("a body without a length is refused when it has become too long", async () => {
  const { app } = await testServer(undefined, { limits: { bodyBytes: 1 << 20 } });
  await withServer(app, async (_address, port) => {
    let sent = 0;
    function* parts() {
      yield head(PATH, { "transfer-encoding": "chunked" });
      const piece = " ".repeat(1 << 16);
      for (; sent < 100e6; sent += piece.length) {
        yield `${piece.length.toString(16)}\r\n${piece}\r\n`;
      }
    }
    const text = await raw(port, parts(), { until: /too_large/ });
    assertMatch(text, /^HTTP\/1\.1 413 /);
    assert(sent < 50e6, `${sent} bytes were taken`);
  });
});

Deno.test("a body that trickles is cut", async () => {
  const { app, ask } = await testServer(undefined, { limits: { bodyMs: 500 } });
  await withServer(app, async (_address, port) => {
    const text = await raw(port, [head(PATH, { "content-length": 50 }), '{"model'], {
      until: /timeout/,
    });
    assertMatch(text, /^HTTP\/1\.1 408 /);
    assertMatch(text, /connection: close/i);
  });
  assertEquals((await ask(PATH, chat)).status, 200);
});

Deno.test("what is nested too deeply, or no request at all, is refused and the next one answered", async () => {
  const { app, ask } = await testServer();
  const deep = (count: number) => `{"model":"m","messages":${"[".repeat(count)}`;
  for (const body of [deep(1e6), deep(201), `{"a":${'{"a":'.repeat(300)}`]) {
    const response = await ask(PATH, body);
    assertEquals([response.status, (await response.json()).error.code], [400, "invalid_json"]);
  }
  await withServer(app, async (address, port) => {
    for (const text of ["\x00\x01\x02\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"]) {
      const answer = await raw(port, [text]);
      assert(answer === "" || /^HTTP\/1\.1 400/.test(answer), answer);
    }
    const injected = `GET /health HTTP/1.1\r\nhost: a\r\nx-request-id: a\r\n set-cookie: b\r\n\r\n`;
    const answer = await raw(port, [injected], { until: /\r\n\r\n/ });
    assertEquals(/set-cookie/i.test(answer), false, answer);
    const response = await fetch(address + PATH, { method: "POST", body: JSON.stringify(chat) });
    assertEquals(response.status, 200, await response.text());
  });
});

Deno.test("a client that does not read holds back its own answer, and nothing is piled up", async () => {
  let made = 0;
  const pieces = Array<string>(20_000).fill("a".repeat(1000));
  const engine = new ScriptedEngine(() => ({
    pieces,
    wait: () => {
      made++;
      return Promise.resolve();
    },
  }));
  const { app } = await testServer(engine);
  await withServer(app, async (_address, port) => {
    const body = JSON.stringify({ ...chat, stream: true });
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    await connection.write(
      new TextEncoder().encode(head(PATH, { "content-length": body.length }) + body),
    );
    let before = -1;
    await until(() => engine.running === 1);
    // Until nothing is made any more: what systems buffer is some megabytes.
    while (made !== before) {
      before = made;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert(made < pieces.length, `${made} pieces were made`);
    connection.close();
    await until(() => engine.running === 0);
  }).catch((error) => {
    if (!(error instanceof Deno.errors.BadResource)) throw error; // closed twice
  });
});

Deno.test("in long silence a stream gets comments, which clients skip", async () => {
  const gate = Promise.withResolvers<void>();
  let calls = 0;
  const engine = new ScriptedEngine(() => ({
    pieces: ["a"],
    wait: () => calls++ === 0 ? Promise.resolve() : gate.promise,
  }));
  const { ask } = await testServer(engine, { limits: { pingMs: 5 } });
  const response = await ask(PATH, { ...chat, stream: true });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("\n\n: \n\n")) text += (await reader.read()).value ?? "";
  gate.resolve();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
  }
  assertMatch(text, /\[DONE\]\n\n$/);
});
