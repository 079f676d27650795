// Conversations that are longer than the context: what is dropped, what stays, and that nothing dies or runs on.

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { chat, type ChatMessage, type ChatOptions, ResourceError } from "../mod.ts";
import { loadTiny } from "./support/models.ts";
import { loadScripted } from "./support/scripted.ts";

const TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}" +
  "{% if add_generation_prompt %}[assistant] {% endif %}";
/** Refuses what does not alternate, as many templates do. */
const STRICT = "{% set ns = namespace(next='user') %}{% for m in messages %}" +
  "{% if m.role != 'system' %}{% if m.role != ns.next %}{{ raise_exception('roles must alternate') }}" +
  "{% endif %}{% set ns.next = 'assistant' if ns.next == 'user' else 'user' %}{% endif %}{% endfor %}" +
  TEMPLATE;

const SYSTEM = { role: "system", content: "be kind" };

Deno.test("a chat of 30 turns in a small context never dies, and its prompts stay what they were", async () => {
  using model = await loadTiny({ precision: "exact", chatTemplate: STRICT });
  using session = model.createSession();
  const messages: ChatMessage[] = [{ role: "system", content: "x" }];
  let dropped = 0;
  for (let turn = 0; turn < 30; turn++) {
    messages.push({ role: "user", content: `q${turn}` });
    const options = { maxTokens: 6, ignoreEos: true };
    const result = await chat(session, messages, options).result;
    assertEquals([result.finishReason, result.ids.length], ["length", 6]);
    assert(session.length <= session.capacity);
    dropped = result.droppedMessages;
    messages.push({ role: "assistant", content: "ok" });
  }
  assert(dropped > 20 && dropped % 2 === 0, `${dropped} of ${messages.length} messages dropped`);
});

Deno.test("whole turns are dropped, the system message and the newest turn stay", async () => {
  using scripted = await loadScripted(["Three."], { template: TEMPLATE, contextLength: 90 });
  const messages = [
    SYSTEM,
    { role: "user", content: "one" },
    { role: "assistant", content: "1" },
    { role: "tool", content: "a result" },
    { role: "user", content: "two" },
    { role: "assistant", content: "2" },
    { role: "user", content: "three" },
  ];
  const { text, droppedMessages } = await chat(scripted.model, messages).result;
  assertEquals([text, droppedMessages], ["Three.", 3]);
  assertMatch(scripted.prompts[0]!, /be kind\s*\[user\] two\s*\[assistant\] 2\s*\[user\] three/);
});

Deno.test("a cut is kept from one turn to the next, so that only what is new is computed", async () => {
  const script = new Array(12).fill("yes yes yes");
  using scripted = await loadScripted(script, { template: TEMPLATE, contextLength: 200 });
  using session = scripted.model.createSession();
  const messages: ChatMessage[] = [SYSTEM];
  const computed: number[] = [];
  const counts: number[] = [];
  for (let turn = 0; turn < 12; turn++) {
    messages.push({ role: "user", content: `question ${turn}` });
    const { stats, droppedMessages, messages: added } = await chat(session, messages).result;
    messages.push(...added);
    computed.push(stats.prefillTokens);
    counts.push(droppedMessages);
  }
  assert(counts.at(-1)! > 0);
  // Where the cut stays, a turn costs itself; where it moves, all that is left.
  computed.forEach((count, turn) => {
    if (turn > 0 && counts[turn] === counts[turn - 1]) assert(count < 60, `turn ${turn}: ${count}`);
  });
  assert(new Set(counts).size < 8, `the cut moved at nearly every turn: ${counts}`);
});

Deno.test("an answer that fills the context goes on without the oldest turns", async () => {
  const long = "word ".repeat(12).trim();
  using scripted = await loadScripted([long], { template: TEMPLATE, contextLength: 120 });
  using session = scripted.model.createSession();
  const messages = [
    SYSTEM,
    { role: "user", content: "an old question of some length" },
    { role: "assistant", content: "an old answer" },
    { role: "user", content: "go on" },
  ];
  const { text, finishReason, droppedMessages } = await chat(session, messages).result;
  assertEquals([text, finishReason, droppedMessages], [long, "eos", 2]);
  const shown = scripted.model.tokenizer.decode(session.tokens);
  assertMatch(shown, /be kind\s*\[user\] go on\s*\[assistant\] +word word/);
  assert(!shown.includes("old"));
});

Deno.test("an answer that outgrows its own turn ends; a turn that does not fit is an error with numbers", async () => {
  using scripted = await loadScripted(["word ".repeat(40)], {
    template: TEMPLATE,
    contextLength: 64,
  });
  const messages = [{ role: "user", content: "go on" }];
  const { finishReason, text } = await chat(scripted.model, messages).result;
  assertEquals(finishReason, "context");
  assert(text.startsWith("word word"));
  const endless = [SYSTEM, { role: "user", content: "long ".repeat(30) }];
  const error = await assertRejects(() => chat(scripted.model, endless).text(), ResourceError);
  assertMatch(error.message, /system message and the newest turn have \d+ tokens, .*holds 64/);
});

Deno.test("error, stop and slide stay what they are, and a sliding chat survives long prompts", async () => {
  using model = await loadTiny({ precision: "exact", chatTemplate: TEMPLATE });
  using session = model.createSession();
  const ask = (onContextFull: ChatOptions["onContextFull"]) => (messages: ChatMessage[]) =>
    chat(session, messages, { maxTokens: 80, ignoreEos: true, onContextFull: onContextFull! })
      .result;
  const one: ChatMessage[] = [{ role: "user", content: "a" }];
  await assertRejects(() => ask("error")(one), ResourceError, "the context is full");
  assertEquals((await ask("stop")(one)).finishReason, "context");
  const messages: ChatMessage[] = [{ role: "system", content: "xy" }];
  const kept = model.tokenizer.encode("[system] xy\n[user");
  for (let turn = 0; turn < 6; turn++) {
    messages.push({ role: "user", content: `question ${turn}` });
    const { finishReason, ids } = await ask("slide")(messages);
    assertEquals([finishReason, ids.length], ["length", 80]);
    assertEquals(session.tokens.slice(0, kept.length), kept);
    messages.push({ role: "assistant", content: "an answer" });
  }
});

// pc-ctx-02
Deno.test("four endless chats in a small context end, and leave nothing running", async () => {
  using model = await loadTiny({ contextLength: 64, sessions: 4, chatTemplate: TEMPLATE });
  const results = await Promise.all(
    ["a", "b", "c", "d"].map((content) =>
      chat(model, [{ role: "user", content }], { maxTokens: 500, ignoreEos: true }).result
    ),
  );
  assertEquals(results.map(({ finishReason }) => finishReason), new Array(4).fill("context"));
  assert(results.every(({ ids }) => ids.length < 64));
});
