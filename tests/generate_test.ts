// generate() and chat() on a tiny model: how a generation ends, what it gives, and who waits for whom. The
// model is random, so texts are noise; what is compared is always one way of getting them with another.

import {
  assert,
  assertEquals,
  assertGreater,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { chat, type ChatOptions } from "../engine/decode/chat.ts";
import type { Chunk } from "../engine/decode/generation.ts";
import { generate } from "../engine/decode/generate.ts";
import type { GenerateOptions } from "../engine/decode/generate_options.ts";
import { infill } from "../engine/decode/infill.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import { FormatError, ResourceError, UnsupportedError } from "../engine/errors.ts";
import type { LoadOptions, Model } from "../engine/decode/model.ts";
import type { ChatMessage } from "../engine/text/chat_template.ts";
import { fixturePath } from "./support/fixtures.ts";
import { load } from "../engine/models/load.ts";
import { loadLongTiny, loadTiny } from "./support/models.ts";

const TEMPLATE =
  "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}" +
  "{% if add_generation_prompt %}assistant:{% endif %}";

function test(name: string, options: LoadOptions, run: (model: Model) => Promise<void>): void {
  Deno.test(name, async () => {
    using model = await loadTiny({ precision: "exact", chatTemplate: TEMPLATE, ...options });
    await run(model);
  });
}

async function greedyIds(model: Model, prompt: readonly number[], count: number) {
  using session = model.createSession();
  const ids: number[] = [];
  await session.sync(prompt);
  while (ids.length < count) {
    const logits = session.logits();
    const best = logits.indexOf(Math.max(...logits));
    ids.push(best);
    if (ids.length < count) await session.eval([best]);
  }
  return ids;
}

test(
  "generate() takes the best token each time unless asked otherwise",
  { sessions: 2 },
  async (model) => {
    const prompt = model.tokenizer.encode("Once upon");
    const result = await generate(model, "Once upon", { maxTokens: 12, ignoreEos: true }).result;
    assertEquals(result.ids, await greedyIds(model, prompt, 12));
    assertEquals(result.finishReason, "length");
    assertEquals(
      (await generate(model, prompt, { maxTokens: 12, ignoreEos: true }).result).ids,
      result.ids,
    );
  },
);

test(
  "several prompts are a generation each, which share steps and are what each is alone",
  { sessions: 2 },
  async (model) => {
    const prompts = ["Once upon", [5, 6, 7], "Once more", "x"];
    const options = { maxTokens: 9, ignoreEos: true, topK: 5, seed: 2 };
    const alone = [];
    for (const prompt of prompts) alone.push(await generate(model, prompt, options).result);
    const before = stepsOf(model);
    const all = generate(model, prompts, options);
    assertEquals(await Promise.all(all.map(({ result }) => result.then(({ ids }) => ids))), [
      ...alone.map(({ ids }) => ids),
    ]);
    // Two sessions for four answers: two after two.
    assert(stepsOf(model) - before <= 2 * (9 + 2), `${stepsOf(model) - before} steps`);
    assertEquals(generate(model, [[1]], options).length, 1);
    assertThrows(() => generate(model, ["a", []], options), RangeError, "empty prompt");
    assertThrows(() => generate(model, ["a"], { ...options, topK: -1 }), RangeError);
    using session = model.createSession();
    assertThrows(
      () => generate(session as unknown as Model, ["a", "b"], options),
      TypeError,
      "Cannot generate from several prompts on a session",
    );
  },
);

function stepsOf(model: Model): number {
  return (model as LoadedModel).runtime.queue.counts.steps;
}

test("chunks, text() and result agree whoever drives", {}, async (model) => {
  const options = { maxTokens: 10, ignoreEos: true };
  const generation = generate(model, "a b", options);
  const chunks: Chunk[] = [];
  for await (const chunk of generation) chunks.push(chunk);
  const result = await generation.result;
  assertEquals(chunks.map(({ text }) => text).join(""), result.text);
  assertEquals(chunks.flatMap(({ tokens }) => tokens.map(({ id }) => id)), result.ids);
  assertEquals(await generation.text(), result.text);
  const again: Chunk[] = [];
  for await (const chunk of generation) again.push(chunk); // a late reader sees all of it
  assertEquals(again, chunks);
  const other = generate(model, "a b", options);
  assertEquals(await other.text(), result.text);
});

test("a seed repeats a sampled text and is told", {}, async (model) => {
  const options = { maxTokens: 20, temperature: 1.5, ignoreEos: true };
  const first = await generate(model, "x", options).result;
  const again = await generate(model, "x", { ...options, seed: first.seed }).result;
  assertEquals(again.ids, first.ids);
  const other = await generate(model, "x", { ...options, seed: first.seed + 1 }).result;
  assert(other.ids.join() !== first.ids.join());
});

test("an end token ends the text and is not shown", { sessions: 2 }, async (model) => {
  const { eosId } = model.tokenizer;
  const bias = { maxTokens: 5, logitBias: { [eosId!]: 1000 } };
  const { ids, text, finishReason } = await generate(model, "x", bias).result;
  assertEquals([ids, text, finishReason], [[eosId], "", "eos"]);
  const on = await generate(model, "x", { ...bias, ignoreEos: true }).result;
  assertEquals([on.ids.length, on.finishReason], [5, "length"]);
  assertEquals(on.text, "");
});

test("a stop text ends the text and is not shown, in part or whole", {}, async (model) => {
  const whole = await generate(model, "hello", { maxTokens: 30, ignoreEos: true }).text();
  const stop = whole.slice(6, 10);
  const generation = generate(model, "hello", { maxTokens: 30, ignoreEos: true, stop: [stop] });
  let shown = "";
  for await (const { text } of generation) {
    shown += text;
    assert(whole.startsWith(shown));
  }
  const { text, finishReason } = await generation.result;
  assertEquals(text, whole.slice(0, whole.indexOf(stop)));
  assertEquals(finishReason, "stop");
  // A stop text that never comes is released at the end.
  const never = { maxTokens: 30, ignoreEos: true, stop: [whole.slice(-2) + "never"] };
  assertEquals(await generate(model, "hello", never).text(), whole);
});

test("log-probabilities are the model's own, before sampling", { sessions: 2 }, async (model) => {
  const options = { maxTokens: 3, ignoreEos: true, logprobs: 4, logitBias: { 7: 1000 } };
  const generation = generate(model, "x", options);
  for await (const { tokens: [token] } of generation) {
    assertEquals(token!.id, 7);
    assertEquals(token!.alternatives!.length, 4);
    const [best, second] = token!.alternatives!;
    assertGreater(best!.logProbability, second!.logProbability);
    assert(token!.logProbability! <= best!.logProbability && best!.logProbability < 0);
  }
  for await (const { tokens } of generate(model, "x", { maxTokens: 1 })) {
    assertEquals(Object.keys(tokens[0]!), ["id"]);
  }
});

test("an abort ends the generation with what there is", { sessions: 2 }, async (model) => {
  const controller = new AbortController();
  const { signal } = controller;
  const generation = generate(model, "x", { maxTokens: 1000, ignoreEos: true, signal });
  let count = 0;
  for await (const _ of generation) if (++count === 3) controller.abort();
  const result = await generation.result;
  assertEquals([result.finishReason, result.ids.length], ["abort", 3]);
  const late = await generate(model, "x", { signal }).result;
  assertEquals([late.finishReason, late.ids], ["abort", []]);
});

Deno.test("an abort by a timer is seen while the prompt is computed", async () => {
  using model = await loadLongTiny({ precision: "exact", batch: 1 });
  const prompt = new Array(4000).fill(5);
  const early = AbortSignal.timeout(1);
  const before = await generate(model, prompt, { signal: early }).result;
  assertEquals([before.finishReason, before.ids], ["abort", []]);
});

test("leaving a loop frees the session", { sessions: 1 }, async (model) => {
  const generation = generate(model, "x", { maxTokens: 1000, ignoreEos: true });
  for await (const _ of generation) break;
  assertEquals((await generation.result).finishReason, "abort");
  {
    using held = generate(model, "x", { maxTokens: 1000, ignoreEos: true });
    await held[Symbol.asyncIterator]().next();
  }
  using session = await freeSession(model);
  await session.sync([1, 2]);
});

async function freeSession(model: Model) {
  for (let tries = 0;; tries++) {
    try {
      return model.createSession();
    } catch (error) {
      if (tries === 10_000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

// pc-samp-02
test("a prompt in the cache counts for the penalty as a new one does", {}, async (model) => {
  using session = model.createSession();
  const prompt = [1, 40, 77, 40, 12];
  const options = { maxTokens: 12, ignoreEos: true, temperature: 1.5, seed: 3 };
  const penalised = { ...options, repeatPenalty: 1.3, repeatLastN: -1 };
  const first = await generate(session, prompt, penalised).result;
  const again = await generate(session, prompt, penalised).result;
  assertEquals(again.stats.prefillTokens, 1); // all but the last token came from the cache
  assertEquals(again.ids, first.ids);
  const without = await generate(session, prompt, options).result;
  assert(without.ids.join() !== first.ids.join(), "the penalty changed nothing");
});

// pc-kv-03
test(
  "calls at once on a model are queued, each equals its single run",
  { sessions: 1 },
  async (model) => {
    const options = { maxTokens: 8, ignoreEos: true };
    const prompts = ["one", "two", "three"];
    const single: string[] = [];
    for (const prompt of prompts) single.push(await generate(model, prompt, options).text());
    const long = generate(model, new Array(model.info.contextLength + 1).fill(5), options);
    const all = prompts.map((prompt) => generate(model, prompt, options).text());
    await assertRejects(() => long.text(), ResourceError, "the context holds 64");
    assertEquals(await Promise.all(all), single);
    assertEquals(await generate(model, prompts[0]!, options).text(), single[0]);
  },
);

test("calls at once on a session are queued too", { sessions: 2 }, async (model) => {
  const options = { maxTokens: 8, ignoreEos: true };
  using session = model.createSession();
  const [one, two] = await Promise.all([
    generate(session, "one", options).text(),
    generate(session, "two", options).text(),
  ]);
  assertEquals(one, await generate(model, "one", options).text());
  assertEquals(two, await generate(model, "two", options).text());
});

test(
  "a model whose places the caller holds says so instead of waiting",
  { sessions: 1 },
  async (model) => {
    using _session = model.createSession();
    await assertRejects(() => generate(model, "x").text(), ResourceError, "slots are taken");
  },
);

test("a full context is an error unless asked otherwise", { contextLength: 16 }, async (model) => {
  const options = { maxTokens: 500, ignoreEos: true };
  const generation = generate(model, [1, 5, 6, 7], options);
  let shown = 0;
  const error = await assertRejects(async () => {
    for await (const { tokens } of generation) shown += tokens.length;
  }, ResourceError);
  assertMatch(error.message, /the context is full: 16 tokens, 4 of them the prompt/);
  assertEquals(shown, 13); // nothing that was made is lost
  const stopped = await generate(model, [1, 5, 6, 7], { ...options, onContextFull: "stop" }).result;
  assertEquals([stopped.finishReason, stopped.ids.length], ["context", 13]);
});

// pc-ctx-02
test("a sliding context ends by length; its logits are those of the kept tokens anew", {
  contextLength: 16,
  sessions: 2,
}, async (model) => {
  using session = model.createSession();
  const options = { maxTokens: 60, ignoreEos: true, onContextFull: "slide", keep: 2 } as const;
  const prompt = [1, 40, 6, 7];
  const { ids, finishReason } = await generate(session, prompt, options).result;
  assertEquals([ids.length, finishReason], [60, "length"]);
  assertEquals(session.tokens.slice(0, 2), [1, 40]);
  // The same by hand: 2 kept, the older half of the other 14 dropped whenever 16 are reached.
  let tokens = [...prompt];
  for (const id of ids) {
    assertEquals((await greedyIds(model, tokens, 1))[0], id);
    if (tokens.length === 16) tokens = [...tokens.slice(0, 2), ...tokens.slice(9)];
    tokens.push(id);
  }
  const four = await Promise.all(
    [1, 2, 3, 4].map((first) => generate(model, [first], options).result),
  );
  assertEquals(four.map((result) => result.finishReason), new Array(4).fill("length"));
});

test(
  "a slide that would have to drop kept tokens is refused with numbers",
  { contextLength: 8 },
  async (model) => {
    const options = { maxTokens: 50, ignoreEos: true, onContextFull: "slide", keep: 8 } as const;
    const error = await assertRejects(() => generate(model, [1, 2], options).text(), ResourceError);
    assertMatch(error.message, /8 of its 8 tokens must stay/);
  },
);

test("chat() finds the conversation so far in the session", {}, async (model) => {
  using session = model.createSession();
  const options = { maxTokens: 4, ignoreEos: true };
  const messages = [{ role: "user", content: "a" }];
  const first = await chat(session, messages, options).result;
  const length = session.length;
  const next = [...messages, { role: "assistant", content: "b" }, { role: "user", content: "c" }];
  const second = await chat(session, next, options).result;
  assertEquals(first.stats.prefillTokens, length - 3); // the last of 4 tokens is never computed
  assert(second.stats.prefillTokens < session.length - 3 - 5, "nothing was reused");
  using other = await loadTiny({ precision: "exact", chatTemplate: TEMPLATE });
  assertEquals((await chat(other, next, options).result).ids, second.ids);
});

test(
  "a control token that a user writes stays text, and there is one beginning",
  {},
  async (model) => {
    using session = model.createSession();
    await chat(session, [{ role: "user", content: "<s></s>" }], { maxTokens: 1 }).result;
    const { bosId, eosId } = model.tokenizer;
    assertEquals(session.tokens.filter((id) => id === bosId).length, 1);
    assertEquals(session.tokens[0], bosId);
    assertEquals(session.tokens.filter((id) => id === eosId).length, 0);
  },
);

test("a sliding chat keeps its system message", { contextLength: 64 }, async (model) => {
  using session = model.createSession();
  const system = { role: "system", content: "xyz" };
  const messages = [system, { role: "user", content: "a" }];
  const options = { maxTokens: 150, ignoreEos: true, onContextFull: "slide" } as const;
  await chat(session, messages, options).result;
  const kept = model.tokenizer.encode("system: xyz\nuser:");
  assertEquals(session.tokens.slice(0, kept.length), kept);
});

Deno.test("chat() without a template, and generate() without a tokenizer, say what to do", async () => {
  using base = await loadTiny();
  const messages = [{ role: "user", content: "Hi" }];
  const error = assertThrows(() => chat(base, messages), UnsupportedError);
  assertMatch(error.message, /has no chat template. Use generate\(\)/);
  using encoder = await load(fixturePath("models/bert"), { device: "reference" });
  assertThrows(
    () => chat(encoder, messages),
    UnsupportedError,
    "is an encoder, which continues no",
  );
  using bare = await load(fixturePath("models/qwen2"), { device: "reference" });
  const none = assertThrows(() => generate(bare, "x"), UnsupportedError);
  assertMatch(none.message, /hold no tokenizer. Put tokenizer\.json .*beside/);
});

Deno.test("chat() refuses messages that a template would read past, and a session what are no ids", async () => {
  using model = await loadTiny({
    chatTemplate: "{% for m in messages %}{{ m.content }}{% endfor %}",
  });
  const cases: [unknown, typeof TypeError | typeof RangeError, string][] = [
    [[], TypeError, "a list of at least one"],
    [[null], TypeError, "message 0 has no role"],
    [[{ role: "user" }], TypeError, "message 0 has no content"],
    [[{ role: "user", content: 5 }], TypeError, "message 0 has no content"],
    [[{ role: "usr", content: "Hi" }], RangeError, "Did you mean user?"],
  ];
  for (const [messages, kind, text] of cases) {
    assertThrows(() => chat(model, messages as ChatMessage[]), kind, text);
  }
  using session = model.createSession();
  const words = "hi" as unknown as number[];
  await assertRejects(() => session.eval(words), TypeError, "a list of ids");
  await assertRejects(() => session.sync(words), TypeError, "a list of ids");
});

Deno.test("a template that cannot be parsed stops load()", async () => {
  const error = await assertRejects(
    () => loadTiny({ chatTemplate: "{% frobnicate %}" }),
    FormatError,
  );
  assertMatch(error.message, /option chatTemplate, chat template line 1/);
});

test("bad options are refused at once, with name and value", {}, (model) => {
  const cases: [Parameters<typeof generate>[2], RegExp][] = [
    [{ maxTokens: -1 }, /maxTokens -1/],
    [{ maxTokens: 1.5 }, /maxTokens 1.5/],
    [{ logprobs: 101 }, /logprobs 101/],
    [{ onContextFull: "drop" as "stop" }, /onContextFull "drop".*error, stop, slide/],
    [{ temperature: -1 }, /temperature -1/],
    [{ maxToken: 3 } as object, /maxToken/],
  ];
  for (const [options, message] of cases) {
    assertMatch(assertThrows(() => generate(model, "x", options), RangeError).message, message);
  }
  assertThrows(() => generate(model, "x", { stop: [""] }), TypeError, "not empty");
  assertThrows(() => generate(model, []), RangeError, "empty prompt");
  assertThrows(() => generate({} as Model, "x"), TypeError, "a model from load()");
  const seed = 2n ** 70n as unknown as number;
  assertThrows(() => generate(model, "x", { seed }), TypeError, "seed 1180591620717411303424:");
  for (const options of [null, 5] as unknown as GenerateOptions[]) {
    assertThrows(() => generate(model, "x", options), TypeError, "options of generate()");
    const hole = { prefix: "a", suffix: "b" };
    assertThrows(() => infill(model, hole, options), TypeError, "options of infill()");
    const question = [{ role: "user", content: "x" }];
    assertThrows(() => chat(model, question, options as ChatOptions), TypeError, "of chat()");
  }
  const images = "fox.png" as unknown as [];
  assertThrows(
    () => generate(model, "x", { images }),
    TypeError,
    "images of generate(): it must be a list",
  );
  for (const prompt of [undefined, null, 5, {}, ["a", 5], [null]] as unknown as string[]) {
    assertThrows(() => generate(model, prompt), TypeError, "a text or a list of token ids");
  }
  return Promise.resolve();
});

test("figures of a generation are those of its run", {}, async (model) => {
  const { stats } = await generate(model, [1, 2, 3, 4, 5], { maxTokens: 6, ignoreEos: true })
    .result;
  assertEquals([stats.prefillTokens, stats.decodeTokens], [5, 6]);
  for (
    const value of [stats.loadMs, stats.firstTokenMs, stats.prefillPerSecond, stats.decodePerSecond]
  ) {
    assertGreater(value, 0);
  }
  assertEquals(stats.memory, model.memory);
});
