import { assertEquals } from "@std/assert";
import { eventsOf, testServer } from "../../../tests/support/http_server.ts";

const PATH = "/v1/completions";

Deno.test("each form of a prompt is so many answers, and a suffix a text with a hole", async () => {
  const rows: readonly (readonly [unknown, readonly unknown[]])[] = [
    ["a", [{ prompt: "a" }]],
    [["a", "b"], [{ prompt: "a" }, { prompt: "b" }]],
    [[1, 2], [{ prompt: [1, 2] }]],
    [[[1, 2], [3]], [{ prompt: [1, 2] }, { prompt: [3] }]],
  ];
  for (const [prompt, inputs] of rows) {
    const { ask, engine } = await testServer();
    const { choices } = await (await ask(PATH, { model: "m", prompt })).json();
    assertEquals(engine.jobs.map(({ input }) => input), inputs as never);
    assertEquals(choices.length, inputs.length);
    assertEquals(engine.jobs[0]!.options.maxTokens, 16);
  }
  const { ask, engine } = await testServer();
  await ask(PATH, { model: "m", prompt: "a", suffix: "z", max_tokens: 0 });
  assertEquals(engine.jobs[0]!.input, { prefix: "a", suffix: "z" });
  assertEquals(engine.jobs[0]!.options.maxTokens, 0);
  await ask(PATH, { model: "m", prompt: "a", max_tokens: -1 });
  assertEquals(engine.jobs[1]!.options.maxTokens, 2 ** 31);
});

Deno.test("log-probabilities have four lists, whose offsets are places in the text", async () => {
  const { ask } = await testServer();
  const asked = { model: "m", prompt: "Say:", max_tokens: 3, logprobs: 2, temperature: 0 };
  const { choices: [{ text, logprobs }] } = await (await ask(PATH, asked)).json();
  assertEquals(logprobs.tokens, ["Hello", " there", ","]);
  assertEquals(logprobs.token_logprobs, [-0.5, -0.5, -0.5]);
  assertEquals(logprobs.top_logprobs[0], { Hello: -0.5, other1: -1.5 });
  const at = (i: number) => text.slice(logprobs.text_offset[i], logprobs.text_offset[i + 1]);
  assertEquals([at(0), at(1)], ["Hello", " there"]);
  // deno-lint-ignore no-explicit-any
  const chunks = await eventsOf(await ask(PATH, { ...asked, stream: true })) as any[];
  const offsets = chunks.slice(0, -2).flatMap(({ choices: [choice] }) =>
    choice.logprobs.text_offset
  );
  assertEquals(offsets, logprobs.text_offset);
});

Deno.test("echo puts the prompt in front, also where it was token ids", async () => {
  const { ask } = await testServer();
  const asked = { model: "m", prompt: [[7, 8], [9]], echo: true, max_tokens: 1, temperature: 0 };
  const { choices } = await (await ask(PATH, asked)).json();
  const texts = choices.map(({ text }: { readonly text: string }) => text);
  assertEquals(texts, ["7 8Hello", "9Hello"]);
  // deno-lint-ignore no-explicit-any
  const chunks = await eventsOf(await ask(PATH, { ...asked, stream: true })) as any[];
  const joined = ["", ""];
  for (const { choices: [{ index, text }] } of chunks.slice(0, -1)) joined[index] += text;
  assertEquals(joined, texts);
});

Deno.test("what is wrong is named", async () => {
  const { ask } = await testServer();
  const rows: readonly (readonly [string, Record<string, unknown>])[] = [
    ["prompt", {}],
    ["prompt", { prompt: [] }],
    ["prompt", { prompt: [1, -1] }],
    ["prompt[1]", { prompt: ["a", 1] }],
    ["prompt[0]", { prompt: [[]] }],
    ["best_of", { prompt: "a", best_of: 2 }],
    ["max_tokens", { prompt: "a", max_tokens: -2 }],
    ["echo", { prompt: "a", echo: true, logprobs: 1 }],
    ["suffix", { prompt: [1], suffix: "a" }],
  ];
  for (const [param, fields] of rows) {
    const response = await ask(PATH, { model: "m", ...fields });
    assertEquals([response.status, (await response.json()).error.param], [400, param]);
  }
});
