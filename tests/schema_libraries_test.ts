import { Type } from "@sinclair/typebox";
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { chat, FormatError, generate, tool } from "../mod.ts";
import { loadScripted, type ScriptedModel } from "./support/scripted.ts";

const TEMPLATE = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}" +
  "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}" +
  "<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}\n{% endfor %}";

/** A model that would write these. */
function modelOf(...script: readonly string[]): Promise<ScriptedModel> {
  return loadScripted(script, { template: TEMPLATE });
}

Deno.test("a schema of zod binds an answer, types its value and changes it as it says", async () => {
  const review = z.object({ mood: z.enum(["good", "bad"]), stars: z.int().min(1).max(3) });
  const answer = '{"mood":"bad","stars":2}';
  using scripted = await modelOf(answer, answer, answer);
  const { value } = await generate(scripted.model, "Review:", { schema: review }).result;
  const mood: "good" | "bad" = value.mood;
  const stars: number = value.stars;
  assertEquals({ mood, stars }, { mood: "bad", stars: 2 });

  const doubled = review.transform(({ stars }) => ({ twice: 2 * stars }));
  const changed = await generate(scripted.model, "Review:", { schema: doubled }).result;
  const twice: number = changed.value.twice;
  assertEquals(twice, 4);

  const schema = review.refine(({ stars }) => stars !== 2, "nobody gives two");
  const refused = await generate(scripted.model, "Review:", { schema }).result
    .then(({ value }) => value).catch((error) => error);
  assertEquals(refused instanceof FormatError, true);
  assertEquals(refused.message.includes("nobody gives two"), true);
});

Deno.test("a model that would write what zod's schema refuses writes something else", async () => {
  const schema = z.strictObject({ stars: z.int().min(1).max(3) });
  using scripted = await modelOf('{"stars":7}');
  const { text } = await generate(scripted.model, "Review:", { schema }).result;
  assertEquals(schema.safeParse(JSON.parse(text)).success, true);
});

Deno.test("objects of zod take no members that they do not name, unless they say so", async () => {
  const inner = z.object({ stars: z.int().min(1).max(3) });
  const open = '{"stars":2,"x":1}';
  const cases: [schema: z.ZodType, written: string, isWritten: boolean][] = [
    [inner, open, false],
    [z.array(inner).max(1), `[${open}]`, false],
    [z.object({ a: inner.optional() }), `{"a":${open}}`, false],
    [z.looseObject({ stars: z.int() }), open, true],
    [z.intersection(inner, z.object({ x: z.int() })), open, true],
  ];
  for (const [schema, written, isWritten] of cases) {
    using scripted = await modelOf(written);
    const { text } = await generate(scripted.model, "Review:", { schema }).result;
    assertEquals(text.trim() === written, isWritten, text);
  }
});

Deno.test("a schema of TypeBox binds an answer and types its value", async () => {
  const schema = Type.Object({
    mood: Type.Union([Type.Literal("good"), Type.Literal("bad")]),
    tags: Type.Array(Type.Boolean(), { minItems: 1, maxItems: 2 }),
  });
  using scripted = await modelOf('{"mood":"good","tags":[true,false]}');
  const { value } = await generate(scripted.model, "Review:", { schema }).result;
  const mood: "good" | "bad" = value.mood;
  const tags: boolean[] = value.tags;
  assertEquals({ mood, tags }, { mood: "good", tags: [true, false] });
});

Deno.test("a tool takes zod's schema, and its handler zod's types", async () => {
  const seen: number[] = [];
  const rate = tool({
    name: "rate",
    schema: z.object({ stars: z.int().min(1).max(3) }),
    handler: ({ stars }) => {
      const count: number = stars;
      seen.push(count);
      return "thanks";
    },
  });
  const call = '<tool_call>\n{"name": "rate", "arguments": {"stars": 3}}\n</tool_call>';
  using scripted = await modelOf(call, "Done.");
  const messages = [{ role: "user", content: "Rate it." }];
  const { text } = await chat(scripted.model, messages, { tools: [rate] }).result;
  assertEquals([text, seen], ["Done.", [3]]);
});

Deno.test("arguments by zod's object take no members that it does not name, unless it says so", async () => {
  const open = '<tool_call>\n{"name": "rate", "arguments": {"stars": 3, "x": 1}}\n</tool_call>';
  const messages = [{ role: "user", content: "Rate it." }];
  const stars = z.int().min(1).max(3);
  const cases = [[z.object({ stars }), false], [z.looseObject({ stars }), true]];
  for (const [schema, isWritten] of cases as [z.ZodType, boolean][]) {
    using scripted = await modelOf(open);
    const { toolCalls } = await chat(scripted.model, messages, {
      tools: [{ name: "rate", schema }],
    })
      .result;
    assertEquals(toolCalls.some((call) => Object.hasOwn(call.arguments as object, "x")), isWritten);
  }
});

Deno.test("a schema of zod that no JSON Schema says is refused by name", async () => {
  using scripted = await modelOf("{}");
  await assertRejects(async () => {
    await generate(scripted.model, "When?", { schema: z.object({ at: z.date() }) }).result;
  }, Error);
});
