// The server over tiny models that really compute: what engines like this one got wrong, as public reports tell it
// (orders of samplers, full contexts, requests at once, aborted grammars, templates that refuse).

import { assert, assertEquals, assertMatch } from "@std/assert";
import { createApp } from "../engine/serve/http/app.ts";
import type { Engine } from "../engine/serve/engine.ts";
import { LocalEngine } from "../engine/serve/host/local_engine.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { servedModels } from "./support/served_models.ts";

// deno-lint-ignore no-explicit-any
type Json = any;
type Ask = (body: object, path?: string, signal?: AbortSignal) => Promise<Response>;

const CHAT = "/v1/chat/completions";
const user = (content: string) => ({ messages: [{ role: "user", content }] });

async function withEngine(engine: Engine, use: (ask: Ask) => Promise<void>): Promise<void> {
  await using held = engine;
  const { fetch } = await createApp({ engine: held });
  await use(async (body, path = CHAT, signal = new AbortController().signal) =>
    await fetch(
      new Request(`http://localhost${path}`, {
        method: "POST",
        body: JSON.stringify(body),
        signal,
      }),
    )
  );
}

async function errorOf(response: Response): Promise<Json> {
  assertEquals(response.status, 400);
  return (await response.json()).error;
}

async function figures(engine: Engine) {
  return (await engine.call("figures", null, new AbortController().signal)).models[0]!;
}

Deno.test("any order of samplers answers, and what is wrong in the engine's eyes is named as a field", async () => {
  await withEngine(servedModels(), async (ask) => {
    const asked = { model: "m", ...user("hi"), max_tokens: 3, ignore_eos: true, seed: 1 };
    for (const samplers of [["min_p", "temperature"], []]) {
      const response = await ask({ ...asked, samplers });
      assertEquals((await response.json()).usage.completion_tokens, 3);
    }
    const pattern = { type: "object", properties: { a: { type: "string", pattern: "(?=a)b" } } };
    const rows: readonly (readonly [string, RegExp, object])[] = [
      ["samplers", /"temprature".*temperature/, { samplers: ["temprature"] }],
      ["strategy", /"dance"/, { strategy: "dance" }],
      ["top_k", /whole number/, { top_k: -1 }],
      ["typical_p", /from 0 to 1/, { typical_p: 2 }],
      ["dry_sequence_breakers", /list/, { dry_sequence_breakers: 7 }],
      ["logit_bias", /999999/, { logit_bias: { 999999: 1 } }],
      ["adapters", /"x"/, { adapters: { x: 1 } }],
      ["regex", /\(/, { regex: "(" }],
      ["grammar", /line 1/, { grammar: "x" }],
      ["response_format.json_schema.schema", /^#\/properties\/a\/pattern/, {
        response_format: { type: "json_schema", json_schema: { schema: pattern } },
      }],
      ["tools[1].function.parameters", /"bad".*\/properties\/a\/pattern/, {
        tools: ["good", "bad"].map((name) => ({
          type: "function",
          function: { name, parameters: name === "good" ? {} : pattern },
        })),
      }],
      ["thinking", /no thinking/, { thinking: true }],
      ["messages", /Roles must alternate/, {
        messages: [{ role: "user", content: "a" }, { role: "user", content: "b" }],
      }],
    ];
    for (const [param, words, fields] of rows) {
      const { param: told, message } = await errorOf(await ask({ ...asked, ...fields }));
      assertEquals(told, param, message);
      assertMatch(message, words);
      assertEquals(/\/tmp\//.test(message), false, message);
    }
  });
});

Deno.test("answers that fill their contexts end with length, and a prompt that does is refused alone", async () => {
  const options = { device: "wasm", threads: 1, contextLength: 64, sessions: 4 } as const;
  const engine = new LocalEngine([{ name: "m", source: TINY_LLAMA, options }]);
  await withEngine(engine, async (ask) => {
    const asked = { model: "m", temperature: 0, ignore_eos: true, max_tokens: 500 };
    const prompts = ["one", "two", "three", "four"];
    const alone: string[] = [];
    for (const prompt of prompts) {
      alone.push(
        (await (await ask({ ...asked, prompt }, "/v1/completions")).json()).choices[0].text,
      );
    }
    const long = ask({ ...asked, prompt: "word ".repeat(60) }, "/v1/completions");
    const together = await Promise.all(
      prompts.map((prompt) =>
        ask({ ...asked, prompt }, "/v1/completions").then((response) => response.json())
      ),
    );
    assertEquals(together.map(({ choices: [{ text }] }) => text), alone);
    for (const { choices: [{ finish_reason: reason }], usage } of together) {
      assertEquals(reason, "length");
      assert(usage.total_tokens >= 64 && usage.total_tokens <= 66, `${usage.total_tokens} tokens`);
    }
    const { code, message } = await errorOf(await long);
    assertEquals(code, "context_length_exceeded");
    assertMatch(message, /\d+.*64/);
    const { running, waiting, steps } = await figures(engine);
    assertEquals([running, waiting], [0, 0]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assertEquals((await figures(engine)).steps, steps, "it goes on by itself");
  });
});

Deno.test("what is wrong with a prompt is told of its field, in words of the server", async () => {
  const options = { device: "wasm", threads: 1, contextLength: 64 } as const;
  const sources = { m: { chatTemplate: "{{ messages[0].content }}" }, plain: {} };
  const models = Object.entries(sources).map(([name, more]) => ({
    ...{ name, source: TINY_LLAMA, options: { ...options, ...more } },
  }));
  await withEngine(new LocalEngine(models), async (ask) => {
    const long = "word ".repeat(60), texts = "/v1/completions";
    const rows: readonly (readonly [string, RegExp, string, object])[] = [
      ["prompt", /^the prompt has \d+ tokens.*larger --context$/, texts, { prompt: long }],
      ["prompt", /ids go from 0 to 287/, texts, { prompt: [288] }],
      ["suffix", /no tokens for filling in.*\/v1\/completions with/, texts, {
        ...{ prompt: "a", suffix: "b" },
      }],
      ["messages", /^the prompt has \d+ tokens.*larger --context$/, CHAT, user(long)],
      ["input", /^the prompt has \d+ tokens/, "/v1/responses", { input: long }],
      ["messages", /no chat template.*--chat-template$/, CHAT, { ...user("a"), model: "plain" }],
      ["seed", /at most 2\^53 - 1, and is 18446744073709552000/, CHAT, {
        ...{ ...user("a"), seed: 2 ** 64 },
      }],
    ];
    for (const [param, words, path, body] of rows) {
      const { param: told, message } = await errorOf(await ask({ model: "m", ...body }, path));
      assertMatch(message, words);
      assertEquals(told, param, message);
    }
  });
});

Deno.test("bound answers are JSON from the first byte, and fifty that are left leave a server that answers", async () => {
  const engine = servedModels();
  await withEngine(engine, async (ask) => {
    const asked = { model: "m", ...user("hi"), seed: 1, max_tokens: 300 };
    const schema = {
      type: "object",
      properties: { a: { enum: ["x", "y"] } },
      required: ["a"],
      additionalProperties: false,
    };
    const response_format = { type: "json_schema", json_schema: { name: "x", schema } };
    const solo = await (await ask({ ...asked, response_format })).json();
    JSON.parse(solo.choices[0].message.content);
    for (let i = 0; i < 50; i++) {
      const response = await ask({
        ...asked,
        response_format: { type: "json_object" },
        stream: true,
      });
      const reader = response.body!.getReader();
      for (let chunk = 0; chunk < 4; chunk++) await reader.read();
      await reader.cancel();
    }
    const again = await (await ask({ ...asked, response_format })).json();
    assertEquals(again.choices[0].message, solo.choices[0].message);
    assertEquals((await figures(engine)).running, 0);
  });
});

Deno.test("a client that leaves while its prompt is read stops it between two chunks", async () => {
  const engine = servedModels();
  await withEngine(engine, async (ask) => {
    await (await ask({ model: "m", ...user("hi"), max_tokens: 1 })).json();
    const before = (await figures(engine)).rows;
    const leave = new AbortController();
    const body = { model: "m", prompt: Array(4000).fill(5), max_tokens: 1 };
    const answer = ask(body, "/v1/completions", leave.signal);
    while ((await figures(engine)).rows === before) await new Promise((done) => setTimeout(done));
    leave.abort();
    assertEquals((await answer).status, 499);
    const { rows, running } = await figures(engine);
    assertEquals(running, 0);
    assert(rows - before < 3000, `${rows - before} rows were computed`);
  });
});

Deno.test("a template that cannot be parsed is an error that says so, and nothing stands in for it", async () => {
  const options = { device: "reference", chatTemplate: "{% frobnicate %}" } as const;
  const engine = new LocalEngine([{ name: "m", source: TINY_LLAMA, options }]);
  await withEngine(engine, async (ask) => {
    // No request can mend it.
    const response = await ask({ model: "m", ...user("hi") });
    assertEquals(response.status, 503);
    assertMatch((await response.json()).error.message, /frobnicate/);
  });
});
