// Tools in a chat, with a model that follows a script: what the model is shown, what handlers get, and what
// becomes of calls that go wrong.

import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { chat, type ChatOptions, generate, tool, ToolError } from "../mod.ts";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { loadTiny } from "./support/models.ts";
import { loadScripted } from "./support/scripted.ts";

const TEMPLATE = "{% if tools %}tools {{ tools | tojson }}\n{% endif %}" +
  "{% for m in messages %}{{ m.role }}: {{ m.content }}" +
  "{% for call in m.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}\n" +
  "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

/** The same for a context of 64. */
const SHORT = "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}T{% endif %}";

const QUESTION = [{ role: "user", content: "How much is it?" }];
const NUMBERS = {
  type: "object",
  properties: { a: { type: "integer" }, b: { type: "integer" } },
  required: ["a", "b"],
};
const call = (name: string, args: unknown) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${JSON.stringify(args)}}\n</tool_call>`;

const add = tool({
  name: "add",
  description: "Adds.",
  schema: NUMBERS,
  handler: ({ a, b }) => a + b,
});

async function run(script: readonly string[], options: ChatOptions) {
  using scripted = await loadScripted(script, { template: TEMPLATE });
  const result = await chat(scripted.model, QUESTION, options).result;
  return { ...result, prompts: scripted.prompts };
}

Deno.test("a call is run, its result shown to the model, and the last answer is the answer", async () => {
  const { prompts, text, finishReason, toolCalls, messages } = await run(
    [`I add.\n${call("add", { a: 2, b: 3 })}`, "It is 5."],
    { tools: [add] },
  );
  assertEquals([text, finishReason, toolCalls], ["It is 5.", "eos", []]);
  assertMatch(prompts[0]!, /^<s> tools \[\{"type": "function", "function": \{"name": "add", "desc/);
  const shown = 'I add.<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>';
  assert(prompts[1]!.startsWith(prompts[0]!) && prompts[1]!.includes(shown));
  assertMatch(prompts[1]!.slice(-40), /tool: 5\n?assistant:$/);
  assertEquals(messages.map(({ role, content }) => [role, content]), [
    ["assistant", "I add."],
    ["tool", "5"],
    ["assistant", "It is 5."],
  ]);
  assertEquals(messages[0]!.tool_calls, [{
    id: "call00000",
    type: "function",
    function: { name: "add", arguments: { a: 2, b: 3 } },
  }]);
  assertEquals(messages[1]!.tool_call_id, "call00000");
});

Deno.test("chunks tell of calls while they are written, and of nothing that is no text", async () => {
  using scripted = await loadScripted(
    ["<think>Hm.</think>" + call("add", { a: 1, b: 1 }), "Two."],
    { template: TEMPLATE },
  );
  let text = "", thinking = "";
  const told: string[] = [];
  for await (const chunk of chat(scripted.model, QUESTION, { tools: [add] })) {
    text += chunk.text;
    thinking += chunk.thinking ?? "";
    for (const { index, id, name, argumentsText } of chunk.toolCalls ?? []) {
      assertEquals([index, id, name, chunk.round], [0, "call00000", "add", 0]);
      told.push(argumentsText);
    }
  }
  assertEquals([text, thinking, told.at(-1)], ["Two.", "Hm.", '{"a":1,"b":1}']);
  assert(told.length > 5 && told.every((part, i) => i === 0 || part.startsWith(told[i - 1]!)));
});

/** Calls as Gemma 4's template writes them: names and values without JSON's marks, texts between marks of their own. */
const GEMMA4 = "{% if tools %}<|tool>{{ tools[0].function.name }}<tool|>{% endif %}" +
  "{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}" +
  "<|tool_call>call:{{ c.function.name }}{{ '{' }}{% for k, v in c.function.arguments | items %}{{ k }}:" +
  "{% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}{{ v }}{% endif %}{{ ',' if not loop.last }}{% endfor %}" +
  "{{ '}' }}<tool_call|>{% endfor %}<turn|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|turn>model\n{% endif %}";

Deno.test("the calls of Gemma 4 are read, run, and shown to it as it writes them", async () => {
  const calls = '<|tool_call>call:weather{city:<|"|>Rome, "old" {town}<|"|>,days:2}<tool_call|>' +
    "<|tool_call>call:now{}<tool_call|>";
  const given: unknown[] = [];
  const schema = {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city", "days"],
  };
  const handler = (args: unknown) => (given.push(args), "sunny");
  const tools = [
    tool({ name: "weather", schema, handler }),
    { name: "now", handler: () => "noon" },
  ];
  using scripted = await loadScripted([calls, "It is sunny."], { template: GEMMA4 });
  const result = await chat(scripted.model, QUESTION, { tools }).result;
  assertEquals([result.text, result.finishReason], ["It is sunny.", "eos"]);
  assertEquals(given, [{ city: 'Rome, "old" {town}', days: 2 }]);
  assertEquals(result.messages.map(({ role, content }) => [role, content]), [
    ["assistant", ""],
    ["tool", "sunny"],
    ["tool", "noon"],
    ["assistant", "It is sunny."],
  ]);
  assert(scripted.prompts[1]!.includes(calls), scripted.prompts[1]!);
});

Deno.test("several calls are run side by side, their results in order", async () => {
  const running: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const meet = (name: string) => ({
    name,
    handler: async () => {
      running.push(name);
      if (running.length === 2) resolve();
      await promise; // never comes if one waits for the other
      return name;
    },
  });
  const { messages } = await run(
    [call("one", {}) + call("two", {}), "Done."],
    { tools: [meet("one"), meet("two")] },
  );
  assertEquals(messages.map(({ content }) => content), ["", "one", "two", "Done."]);
});

Deno.test("what is wrong with a call is told to the model, which may try again", async () => {
  const cases: readonly (readonly [answer: string, told: RegExp])[] = [
    ["<tool_call>{nonsense</tool_call>", /Cannot read a call/],
    ['<tool_call>{"name": "add", "arguments": {"a": }}</tool_call>', /no JSON/],
    [call("subtract", {}), /There is no tool "subtract": the tools are add/],
    [call("add", { a: 1 }), /arguments\.b is missing/],
    [call("add", { a: 1, b: "two" }), /arguments\.b must be of type integer: got "two"/],
  ];
  for (const [answer, told] of cases) {
    // What is held to its schema cannot go wrong like this.
    const { messages, text } = await run([answer, call("add", { a: 1, b: 2 }), "Three."], {
      tools: [{ ...add, strict: false }],
    });
    assertMatch(messages[1]!.content as string, told);
    assertEquals([messages[3]!.content, text], ["3", "Three."]);
  }
});

Deno.test("a handler that throws tells the model, or the caller by a named error", async () => {
  const broken = {
    name: "broken",
    handler: () => {
      throw new RangeError("no such account");
    },
  };
  const script = [call("broken", {}), "Sorry."];
  const { messages, text } = await run(script, { tools: [broken] });
  assertEquals([messages[1]!.content, text], ["Error: no such account", "Sorry."]);
  const error = await assertRejects(
    () => run(script, { tools: [broken], onToolError: "throw" }),
    ToolError,
  );
  assertMatch(error.message, /tool "broken" failed: no such account/);
  assert(error.cause instanceof RangeError);
});

Deno.test("a tool without a handler is the caller's, and others of the same answer are run", async () => {
  const mine = { type: "function", function: { name: "ask", parameters: {} } } as const;
  const { finishReason, toolCalls, messages } = await run(
    [call("ask", { what: "x" }) + call("add", { a: 1, b: 1 })],
    { tools: [mine, add] },
  );
  assertEquals(finishReason, "tool_calls");
  assertEquals(toolCalls, [{
    id: "call00000",
    name: "ask",
    arguments: { what: "x" },
    argumentsText: '{"what":"x"}',
  }]);
  assertEquals(messages.map(({ role, tool_call_id }) => [role, tool_call_id]), [
    ["assistant", undefined],
    ["tool", "call00001"],
  ]);
});

Deno.test("the conversation goes on with results that the caller adds, and ids go on too", async () => {
  using scripted = await loadScripted([call("add", { a: 1, b: 1 }), "Two."], {
    template: TEMPLATE,
  });
  const earlier = [
    ...QUESTION,
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "call00000", function: { name: "add", arguments: '{"a": 7}' } }],
    },
    { role: "tool", tool_call_id: "call00000", content: "7" },
  ];
  const { messages } = await chat(scripted.model, earlier, { tools: [add] }).result;
  assertEquals(messages[1]!.tool_call_id, "call00001");
  // The template wants objects, and gets one where the caller gave a text as OpenAI's API has it.
  assertMatch(scripted.prompts[0]!, /"arguments": \{"a": 7\}/);
});

Deno.test("after maxToolRounds calls are left to the caller", async () => {
  const script = new Array(5).fill(call("add", { a: 1, b: 1 }));
  const { finishReason, toolCalls, messages } = await run(script, {
    tools: [add],
    maxToolRounds: 2,
  });
  assertEquals([finishReason, toolCalls.length], ["tool_calls", 1]);
  assertEquals(messages.map(({ role }) => role).join(), "assistant,tool,assistant,tool,assistant");
});

Deno.test("an abort while a handler runs ends the answer, and the handler is told", async () => {
  const controller = new AbortController();
  let heard = false;
  const slow = {
    name: "slow",
    handler: (_: unknown, { signal }: { signal: AbortSignal }) => {
      signal.addEventListener("abort", () => heard = true);
      queueMicrotask(() => controller.abort());
      return new Promise(() => {}); // never ends by itself
    },
  };
  const { finishReason, toolCalls } = await run([call("slow", {})], {
    tools: [slow],
    signal: controller.signal,
  });
  assertEquals([finishReason, toolCalls.length, heard], ["abort", 1, true]);
});

Deno.test("a handler may use the model that waits for it", async () => {
  using scripted = await loadScripted([call("ask", {}), "inner", "outer"], {
    template: TEMPLATE,
    sessions: 1,
  });
  const ask = {
    name: "ask",
    handler: () => chat(scripted.model, [{ role: "user", content: "?" }]).text(),
  };
  const { text, messages } = await chat(scripted.model, QUESTION, { tools: [ask] }).result;
  assertEquals([messages[1]!.content, text], ["inner", "outer"]);
});

Deno.test("an answer that is cut in a call runs nothing", async () => {
  const { finishReason, toolCalls } = await run([call("add", { a: 1, b: 1 })], {
    tools: [{ ...add, handler: () => assert(false) }],
    maxTokens: 20,
  });
  assertEquals([finishReason, toolCalls], ["length", []]);
});

Deno.test("a template without tools, a picture, and what is no tool are refused by name", async () => {
  const plain = "{% for m in messages %}{{ m.content }}{% endfor %}";
  using scripted = await loadScripted([], { template: plain });
  const { model } = scripted;
  const none = assertThrows(() => chat(model, QUESTION, { tools: [add] }), UnsupportedError);
  assertMatch(none.message, /chat template has no place for tools/);
  const picture = [{ role: "user", content: [{ type: "image_url", image_url: "x" }] }];
  const seen = assertThrows(() => chat(model, picture), UnsupportedError);
  assertMatch(seen.message, /reads text only, and message 0 has a part of type "image_url"/);
  const bad = [{ role: "user", content: 3 as unknown as string }];
  assertMatch(assertThrows(() => chat(model, bad), TypeError).message, /message 0/);
  using other = await loadScripted([], { template: TEMPLATE });
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [[{ name: "with blank" }], /tool 0: its name must be.*"with blank"/],
    [[{}], /tool 0/],
    [[{ name: "a", handler: 3 }], /tool "a": its handler/],
    [[{ name: "a", schema: 3 }], /schema of tool "a"/],
    [[add, add], /two tools with the name "add"/],
  ];
  for (const [tools, message] of cases) {
    const given = { tools: tools as [] };
    assertMatch(assertThrows(() => chat(other.model, QUESTION, given)).message, message);
  }
  assertThrows(() => chat(other.model, QUESTION, { maxToolRounds: -1 }), RangeError);
  assertThrows(() => chat(other.model, QUESTION, { onToolError: "ignore" as "tell" }), RangeError);
});

Deno.test("parts that are text are joined, or kept where the template reads only parts", async () => {
  const content = [{ type: "text", text: "one " }, { type: "text", text: "two" }];
  const messages = [{ role: "user", content }];
  using texts = await loadScripted([], {
    template: "{% for m in messages %}{{ 'said: ' + m.content }}{% endfor %}",
  });
  await chat(texts.model, messages).result;
  assertMatch(texts.prompts[0]!, /said: one two/);
  using parts = await loadScripted([], {
    template:
      "{% for m in messages %}said: {% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}",
  });
  await chat(parts.model, [{ role: "user", content: "three" }]).result;
  assertMatch(parts.prompts[0]!, /said: three/);
});

Deno.test("what was thought is apart from the answer, and is history where the template reads it", async () => {
  const template = TEMPLATE.replace(
    "{{ m.content }}",
    "{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}{{ m.content }}",
  );
  using scripted = await loadScripted(["<think>\nHm.\n</think>\n\nYes."], { template });
  const { text, thinking, messages } = await chat(scripted.model, QUESTION).result;
  assertEquals([text, thinking], ["Yes.", "Hm."]);
  assertEquals(messages, [{ role: "assistant", content: "Yes.", reasoning_content: "Hm." }]);
});

Deno.test("thinking that the template begins or switches is known, and no switch is an error", async () => {
  const template =
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}A:" +
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>\n" +
    "{% endif %}{% endif %}";
  using scripted = await loadScripted(["Hm.</think>\nYes.", "No."], { template });
  const first = await chat(scripted.model, QUESTION).result;
  assertEquals([first.text, first.thinking], ["Yes.", "Hm."]);
  const second = await chat(scripted.model, QUESTION, { thinking: false }).result;
  assertEquals([second.text, second.thinking], ["No.", ""]);
  using fixed = await loadScripted([], { template: "{{ messages[0].content }}<think>a</think>" });
  const error = assertThrows(
    () => chat(fixed.model, QUESTION, { thinking: false }),
    UnsupportedError,
  );
  assertMatch(error.message, /no switch for thinking/);
  using plain = await loadScripted([], { template: "{{ messages[0].content }}" });
  assertThrows(() => chat(plain.model, QUESTION, { thinking: true }), UnsupportedError);
  await chat(plain.model, QUESTION, { thinking: false }).result; // nothing to switch off
});

Deno.test("a template that refuses tools says so itself", async () => {
  const template = "{% if tools %}{{ raise_exception('no tools today') }}{% endif %}x";
  using scripted = await loadScripted([], { template });
  const refused = () => chat(scripted.model, QUESTION, { tools: [add] });
  assertMatch(assertThrows(refused, FormatError).message, /no tools today/);
});

Deno.test("arguments that a library's schema checks reach the handler as it gives them", async () => {
  // What zod, valibot and arktype give, by hand (https://standardschema.dev).
  const schema = {
    "~standard": {
      vendor: "test",
      version: 1,
      validate: (value: unknown) =>
        (value as { a: number }).a > 0
          ? { value: { a: String((value as { a: number }).a) } }
          : { issues: [{ message: "must be positive", path: ["a"] }] },
      jsonSchema: { input: () => NUMBERS },
      types: undefined as undefined | { input: unknown; output: { a: string } },
    },
  };
  const seen: string[] = [];
  const { messages } = await run([call("f", { a: -1 }), call("f", { a: 3 }), "Done."], {
    tools: [
      tool({ name: "f", strict: false, schema, handler: ({ a }) => (seen.push(a), undefined) }),
    ],
  });
  assertEquals(seen, ["3"]);
  assertEquals(messages[1]!.content, "Error: arguments.a: must be positive");
  assertEquals(messages[3]!.content, "null");
});

const PAINT = {
  type: "object",
  properties: {
    colour: { enum: ["red", "blue"] },
    coats: { type: "integer", minimum: 1, maximum: 3 },
  },
  required: ["colour", "coats"],
  additionalProperties: false,
} as const;

Deno.test("a call has to be made where it is asked for, of any tool or of one, with what its schema allows", async () => {
  const seen: { colour: string; coats: number }[] = [];
  const paint = tool({ name: "paint", schema: PAINT, handler: (args) => void seen.push(args) });
  for (const toolChoice of ["required", { name: "paint" }] as const) {
    for (let seed = 0; seed < 5; seed++) {
      // The script would rather talk; where it may not, every token is as good as any other.
      const { finishReason } = await run(["No, thanks.", "Well, then."], {
        ...{ tools: toolChoice === "required" ? [paint] : [add, paint], toolChoice },
        ...{ temperature: 1, topK: 0, seed },
      });
      assertEquals(finishReason, "eos");
    }
  }
  assertEquals(seen.length, 10);
  for (const { colour, coats } of seen) {
    assert(["red", "blue"].includes(colour) && [1, 2, 3].includes(coats));
  }
});

Deno.test("arguments that a model would get wrong cannot be written", async () => {
  const seen: { colour: string; coats: number }[] = [];
  const paint = tool({ name: "paint", schema: PAINT, handler: (args) => void seen.push(args) });
  const wrong = call("paint", { colour: "green", coats: 7, more: true });
  for (let seed = 0; seed < 5; seed++) {
    const options = { tools: [paint], temperature: 1, topK: 0, seed, maxToolRounds: 1 };
    await run([`Yes. ${wrong}`], options);
  }
  assert(seen.length >= 5); // it goes on with its script, and may call again
  assert(seen.every(({ colour, coats }) => ["red", "blue"].includes(colour) && coats <= 3));
});

Deno.test("toolChoice none shows no tools, and one that cannot be is refused", async () => {
  const { prompts } = await run(["Hello."], { tools: [add], toolChoice: "none" });
  assert(!prompts[0]!.includes("tools"));
  using scripted = await loadScripted([], { template: TEMPLATE });
  const refused = (options: ChatOptions) => () => chat(scripted.model, QUESTION, options);
  assertThrows(refused({ toolChoice: "required" }), RangeError, "there are no tools");
  assertThrows(refused({ tools: [add], toolChoice: { name: "sub" } }), RangeError, "tools are add");
  assertThrows(refused({ tools: [add], toolChoice: "any" as "auto" }), RangeError, "it is auto");
  const odd = {
    name: "odd",
    schema: { type: "object", unevaluatedProperties: { $dynamicRef: "#x" } },
  };
  const error = assertThrows(refused({ tools: [odd] }), UnsupportedError);
  assertMatch(error.message, /tool "odd" can be held to its schema.*strict: false/);
});

Deno.test("with tools and a schema an answer is a call or a value, whatever the model wants", async () => {
  const paint = tool({ name: "paint", schema: PAINT, handler: () => "done" });
  const options = { tools: [paint], schema: NUMBERS } as const;
  using scripted = await loadScripted(
    [call("paint", { colour: "red", coats: 2 }), '{"a":1,"b":2}', "No numbers today."],
    { template: TEMPLATE },
  );
  const { value, toolCalls, messages } = await chat(scripted.model, QUESTION, options).result;
  assertEquals([value, toolCalls, scripted.prompts.length], [{ a: 1, b: 2 }, [], 2]);
  assertEquals(messages.map(({ role }) => role), ["assistant", "tool", "assistant"]);
  const { text } = await chat(scripted.model, QUESTION, { ...options, maxTokens: 1 }).result;
  assert(text !== "N");
});

Deno.test("calls behind thinking are told from a value behind thinking", async () => {
  const template = TEMPLATE.replace("assistant:", "assistant:<think>\n");
  const theirs = { name: "paint", schema: PAINT };
  const options = { tools: [theirs], schema: NUMBERS } as const;
  for (
    const [said, isCall] of [
      [`Paint?</think>\n\n${call("paint", { colour: "blue", coats: 1 })}`, true],
      ['Count!</think>\n{"a":1,"b":2}', false],
    ] as const
  ) {
    using scripted = await loadScripted([said], { template });
    const result = await chat(scripted.model, QUESTION, options).result;
    assertEquals(result.toolCalls.map(({ name }) => name), isCall ? ["paint"] : []);
    assertEquals(result.finishReason, isCall ? "tool_calls" : "stop");
    if (!isCall) assertEquals(result.value, { a: 1, b: 2 });
  }
});

Deno.test("tools and a schema are refused where calls are bare JSON too, or texts have heads", async () => {
  for (
    const [mark, message] of [
      ["{{ messages[0].content }}", "(json): they begin as the answer does"],
      ['"parameters" ipython {{ messages[0].content }}', "(llama3): they begin"],
      [">>>{{ messages[0].content }}", "(functionary): the answer has a head of its own"],
    ] as const
  ) {
    const template = `{% if tools %}{{ tools | tojson }}{% endif %}${mark}`;
    using scripted = await loadScripted([], { template });
    assertThrows(
      () => chat(scripted.model, QUESTION, { tools: [add], schema: NUMBERS }),
      UnsupportedError,
      message,
    );
  }
});

Deno.test("a schema binds the answer, not the thinking that the template begins", async () => {
  const template = "{% for m in messages %}{{ m.content }}{% endfor %}<think>\n";
  using scripted = await loadScripted(['Blue?</think>\n{"colour":"blue","coats":2}'], { template });
  const result = await chat(scripted.model, QUESTION, { schema: PAINT }).result;
  assert(result.thinking.endsWith("Blue?"));
  assertEquals(result.value, { colour: "blue", coats: 2 });
});

Deno.test("handlers' arguments have the types of their schemas", async () => {
  using scripted = await loadScripted(["Hello."], { template: TEMPLATE });
  const texts: string[] = [], numbers: number[] = [];
  const { text } = await chat(scripted.model, QUESTION, {
    tools: [
      {
        name: "paint",
        schema: PAINT,
        handler: ({ colour, coats }) => (texts.push(colour), numbers.push(coats)),
      },
      // @ts-expect-error There is no such argument.
      { name: "wrong", schema: PAINT, handler: ({ weight }) => weight },
      { name: "any", handler: ({ whatever }) => whatever },
    ],
  }).result;
  assertEquals([text, texts, numbers], ["Hello.", [], []]);
});

Deno.test("a template that takes one call a message is given each with its result", async () => {
  const template = TEMPLATE.replace(
    "{{ m.role }}:",
    "{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('only one') }}{% endif %}" +
      "{{ m.role }}:",
  );
  using scripted = await loadScripted(
    [`Both.\n${call("add", { a: 1, b: 1 })}${call("add", { a: 2, b: 2 })}`, "Done."],
    { template },
  );
  const { text, messages } = await chat(scripted.model, QUESTION, { tools: [add] }).result;
  assertEquals([text, messages.length], ["Done.", 4]);
  assertMatch(
    scripted.prompts[1]!,
    /Both\.<tool_call>[^<]*"b": 1\}\}<\/tool_call>\s*tool: 2\s*assistant: <tool_call>[^<]*<\/tool_call>\s*tool: 4/,
  );
});

Deno.test("a handler that throws, in the middle of others' answers, changes none of them", async () => {
  using model = await loadTiny({
    precision: "exact",
    sessions: 3,
    contextLength: 64,
    chatTemplate: SHORT,
  });
  const options = { maxTokens: 20, ignoreEos: true, temperature: 1, seed: 5 };
  const alone = await generate(model, "Once", options).result;
  const broken = {
    name: "b",
    schema: { const: {} },
    handler: () => {
      throw new RangeError("broken");
    },
  };
  const failing = chat(model, [{ role: "user", content: "a" }], {
    ...{ tools: [broken], toolChoice: "required", onToolError: "throw", maxTokens: 60 },
  });
  const outcomes = await Promise.allSettled([
    generate(model, "Once", options).result,
    failing.result,
    generate(model, "Once", options).result,
  ]);
  assertEquals(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  for (const outcome of [outcomes[0]!, outcomes[2]!]) {
    assertEquals((outcome as PromiseFulfilledResult<typeof alone>).value.ids, alone.ids);
  }
  assert((outcomes[1] as PromiseRejectedResult).reason instanceof ToolError);
});

Deno.test("calls are held to their schema where tokens are proposed, too", async () => {
  const seen: unknown[] = [];
  const paint = tool({ name: "paint", schema: PAINT, handler: (args) => void seen.push(args) });
  const { text } = await run([call("paint", { colour: "red", coats: 2 }), "Done."], {
    tools: [paint],
    draft: "lookup",
  });
  assertEquals([text, seen], ["Done.", [{ colour: "red", coats: 2 }]]);
});
