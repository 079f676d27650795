// Answers within schemas and grammars, by tiny models whose own texts are noise: whatever a model wants, what comes out
// is allowed, on every sampler, with speculation, beside other answers and when it is cut.

import { assertEquals, assertThrows } from "@std/assert";
import {
  chat,
  FormatError,
  generate,
  type GenerateOptions,
  load,
  ResourceError,
  UnsupportedError,
} from "../mod.ts";
import { troodon } from "./support/cli.ts";
import { fixturePath } from "./support/fixtures.ts";

const MODEL = fixturePath("models/llama_formats/llama.Q8_0.gguf");
const TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

const SCHEMA = {
  type: "object",
  properties: {
    kind: { enum: ["cat", "dog"] },
    age: { type: "integer", minimum: 0, maximum: 30 },
    tags: { type: "array", items: { type: "string", maxLength: 3 }, maxItems: 2 },
  },
  required: ["kind", "age", "tags"],
  additionalProperties: false,
} as const;

function expectAnimal(value: { kind: "cat" | "dog"; age: number; tags: string[] }): void {
  assertEquals(Object.keys(value).sort(), ["age", "kind", "tags"]);
  assertEquals([["cat", "dog"].includes(value.kind), value.age >= 0 && value.age <= 30], [
    true,
    true,
  ]);
  assertEquals(value.tags.length <= 2 && value.tags.every((tag) => [...tag].length <= 3), true);
}

/** The models have room for 64 tokens only. */
const ANIMAL = { schema: SCHEMA, maxTokens: 400, onContextFull: "slide" } as const;

const SAMPLERS = [
  {},
  { temperature: 1, seed: 5 },
  { topK: 4, temperature: 2, seed: 6 },
  { temperature: 1, topP: 0.5, minP: 0.1, repeatPenalty: 1.3, seed: 7 },
  { mirostat: 2, seed: 8 },
  { draft: "lookup", temperature: 1, seed: 9 },
] as const;

Deno.test("whatever the sampler, an answer is a value of its schema, typed by it", async () => {
  using model = await load(MODEL, { chatTemplate: TEMPLATE });
  for (const sampler of SAMPLERS) {
    const { value, finishReason } = await generate(model, "a", {
      ...ANIMAL,
      ...sampler,
    }).result;
    expectAnimal(value);
    assertEquals(finishReason, "stop");
  }
  const { value } = await chat(model, [{ role: "user", content: "a" }], ANIMAL).result;
  expectAnimal(value);
});

Deno.test("answers at the same time are what each is alone, and an abort leaves the others", async () => {
  using model = await load(MODEL);
  const start = (seed: number) => generate(model, "b", { ...ANIMAL, temperature: 1, seed });
  const alone: string[] = [];
  for (let seed = 1; seed <= 4; seed++) alone.push(await start(seed).text());
  const stop = new AbortController();
  const aborted = generate(model, "c", {
    schema: SCHEMA,
    temperature: 1,
    seed: 1,
    signal: stop.signal,
  });
  const together = [1, 2, 3, 4].map((seed) => start(seed).text());
  let taken = 0;
  for await (const { tokens } of aborted) if ((taken += tokens.length) >= 3) stop.abort();
  assertEquals(await Promise.all(together), alone);
  assertEquals((await aborted.result).finishReason, "abort");
});

Deno.test("after fifty answers that were aborted at their third token, one is what it is alone", async () => {
  const options = { ...ANIMAL, temperature: 1, seed: 11 } as const;
  const alone = await (async () => {
    using model = await load(MODEL);
    return await generate(model, "b", options).text();
  })();
  using model = await load(MODEL);
  for (let time = 0; time < 50; time++) {
    const stop = new AbortController();
    const answer = generate(model, "b", { ...options, seed: time, signal: stop.signal });
    let taken = 0;
    for await (const { tokens } of answer) if ((taken += tokens.length) >= 3) stop.abort();
    const cut = await answer.result;
    assertEquals([cut.finishReason, cut.ids.length], ["abort", 3]);
    assertThrows(() => cut.value, ResourceError, "before it was whole");
  }
  assertEquals(await generate(model, "b", options).text(), alone);
});

Deno.test("speculation takes the same answer", async () => {
  using model = await load(MODEL);
  const text = (draft?: "lookup") =>
    generate(model, "ab ab ab", { ...ANIMAL, ...draft && { draft } }).text();
  assertEquals(await text("lookup"), await text());
});

Deno.test("a session goes on behind an answer, and gives the same one again", async () => {
  using model = await load(MODEL);
  using session = model.createSession();
  const options = { regex: /[a-z]{3,8}!/, temperature: 1, seed: 2 } as const;
  const first = await generate(session, "a", options).text();
  assertEquals(/^[a-z]{3,8}!$/.test(first), true);
  assertEquals(await generate(session, "a", options).text(), first);
});

Deno.test("a grammar in GBNF binds an answer, and the end of text comes where it may end", async () => {
  using model = await load(MODEL);
  const text = await generate(model, "a", { grammar: 'root ::= ("yes" | "no") "."' }).text();
  assertEquals(["yes.", "no."].includes(text), true);
  const { text: open, finishReason } = await generate(model, "a", {
    ...{ regex: "x{2,}", maxTokens: 6, temperature: 1, seed: 1 },
  }).result;
  assertEquals([/^x{2,}$/.test(open), finishReason === "eos" || finishReason === "length"], [
    true,
    true,
  ]);
});

Deno.test("an answer that is cut has no value, and says so", async () => {
  using model = await load(MODEL);
  const cut = await generate(model, "a", { schema: SCHEMA, maxTokens: 4 }).result;
  assertEquals(cut.finishReason, "length");
  assertThrows(
    () => cut.value,
    ResourceError,
    "the answer ended after 4 tokens, before it was whole",
  );
  assertEquals(Object.keys(cut).includes("value"), false);
  const free = await generate(model, "a", { maxTokens: 2 }).result;
  assertEquals(free.value, undefined);
});

Deno.test("a library's schema says itself, and judges and changes the value", async () => {
  using model = await load(MODEL);
  const schema = (issue?: string) => ({
    "~standard": {
      version: 1 as const,
      vendor: "test",
      types: undefined as { input: string; output: number } | undefined,
      jsonSchema: { input: () => ({ enum: ["7", "42"] }) },
      validate: (value: unknown) =>
        issue
          ? { issues: [{ message: issue, path: ["a", { key: 0 }] }] }
          : { value: Number(value) },
    },
  });
  const { value } = await generate(model, "a", { schema: schema() }).result;
  assertEquals([7, 42].includes(value + 0), true);
  const refused = await generate(model, "a", { schema: schema("too small") }).result;
  assertThrows(
    () => refused.value,
    FormatError,
    "a.0: the schema of test refuses the answer: too small",
  );
  const silent = { "~standard": { version: 1, vendor: "old", validate: () => ({ value: 1 }) } };
  assertThrows(
    () => generate(model, "a", { schema: silent }),
    UnsupportedError,
    "the schema of old cannot say itself in JSON Schema",
  );
});

Deno.test("what binds an answer is checked at once", async () => {
  using model = await load(MODEL);
  for (
    const [options, error, message] of [
      [{ schema: {}, regex: "a" }, RangeError, "Cannot use schema and regex: give one"],
      [{ schema: { type: "strng" } }, FormatError, '#/type: is no type: "strng"'],
      [{ schema: false }, FormatError, "no value is allowed by the schema"],
      [{ grammar: "root ::= root" }, FormatError, "can begin with itself"],
      [{ grammar: 3 as unknown as string }, TypeError, "it is a text in GBNF"],
      [{ regex: "[0-9" }, FormatError, "is no regular expression: Unterminated character class"],
      [{ regex: /a/i }, UnsupportedError, "the flags i of a regular expression"],
    ] as const
  ) assertThrows(() => generate(model, "a", options as GenerateOptions), error, message);
});

Deno.test("--schema and --grammar bind an answer; what is cut or no schema is an error", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/s.json`, '{"enum":["yes","no"]}');
    await Deno.writeTextFile(`${folder}/g.gbnf`, 'root ::= "red" | "blue"');
    await Deno.writeTextFile(`${folder}/bad.json`, '{"type":"strng"}');
    const run = (...args: string[]) => troodon(["generate", MODEL, "--raw", "-p", "a", ...args]);
    const said = await run("--schema", `${folder}/s.json`, "--json");
    assertEquals(["yes", "no"].includes(JSON.parse(said.out).value), true);
    const { out } = await run("--grammar", `${folder}/g.gbnf`);
    assertEquals(["red", "blue"].includes(out.trim()), true);
    const cut = await run("--schema", `${folder}/s.json`, "--max-tokens", "1");
    assertEquals([cut.code, /before it was whole/.test(cut.err)], [1, true]);
    const bad = await run("--schema", `${folder}/bad.json`);
    assertEquals([bad.code, /#\/type: is no type: "strng"/.test(bad.err)], [1, true]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
