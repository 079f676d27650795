import { assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { generate } from "../../decode/generate.ts";
import { fixturePath } from "../../../tests/support/fixtures.ts";
import { loadTiny, TINY_LLAMA } from "../../../tests/support/models.ts";
import { unpackedVisionLanguage } from "../../../tests/support/vision_language.ts";
import type { AnswerEvent, AnswerJob, Engine } from "../engine.ts";
import { JobError } from "../job_error.ts";
import { LocalEngine } from "./local_engine.ts";

const TINY = { name: "tiny", source: TINY_LLAMA, options: { device: "reference" } } as const;
const job = (part: Partial<AnswerJob> = {}): AnswerJob => ({
  ...{ model: "tiny", input: { prompt: "Once" }, options: { maxTokens: 6 } },
  ...part,
});

const never = new AbortController().signal;

async function eventsOf(
  engine: Engine,
  asked: AnswerJob,
  signal = never,
): Promise<AnswerEvent[]> {
  return await Array.fromAsync(engine.answer(asked, signal));
}

function partsOf(events: readonly AnswerEvent[]): AnswerEvent[] {
  return events.filter(({ kind }) => kind === "part");
}

function failureOf(engine: Engine, asked: AnswerJob): Promise<JobError["failure"]> {
  return assertRejects(() => eventsOf(engine, asked), JobError).then(({ failure }) => failure);
}

Deno.test("an answer's events are a start, the parts that generate gives, and an end", async () => {
  using model = await loadTiny();
  const alone = await generate(model, "Once", { maxTokens: 6 }).result;
  await using engine = new LocalEngine([TINY]);
  const [start, ...rest] = await eventsOf(engine, job());
  const end = rest.pop()!;
  const count = model.tokenizer.encode("Once").length;
  assertEquals(start!.kind === "start" && start.promptTokens, count);
  const parts = rest.map((event) => event.kind === "part" ? event : undefined!);
  assertEquals(parts.map(({ text }) => text).join(""), alone.text);
  assertEquals(parts.flatMap(({ tokens }) => tokens.map(({ id }) => id)), alone.ids);
  assertEquals(parts.map(({ at }) => at), parts.map((_, index) => index));
  assertEquals(
    end.kind === "end" && [end.finishReason, end.promptTokens, end.cachedTokens, end.answerTokens],
    ["length", count, 0, 6],
  );
});

Deno.test("with logprobs tokens and alternatives carry their texts and bytes", async () => {
  await using engine = new LocalEngine([TINY]);
  const [, part] = await eventsOf(engine, job({ options: { maxTokens: 1, logprobs: 2 } }));
  const [token] = part!.kind === "part" ? part!.tokens : [];
  const { text, bytes, alternatives } = token!;
  assertEquals(new TextDecoder().decode(Uint8Array.from(bytes!)), text);
  assertEquals(alternatives!.length, 2);
  assertEquals(alternatives![0]!.bytes, bytes);
});

Deno.test("what is wrong with a request is told with its status, code and option", async () => {
  await using engine = new LocalEngine([TINY]);
  const none = await failureOf(engine, job({ model: "none" }));
  assertEquals([none.status, none.code, none.param], [404, "model_not_found", "model"]);
  const near = await failureOf(engine, job({ model: `${TINY.name}x` }));
  assertEquals(near.message.endsWith(`Did you mean ${TINY.name}?`), true, near.message);
  const long = await failureOf(engine, job({ input: { prompt: new Array(300).fill(5) } }));
  assertEquals([long.status, long.code], [400, "context_length_exceeded"]);
  assertEquals(
    long.message,
    "the prompt has 300 tokens, and the context holds 64. Shorten it, or load the model with a larger contextLength",
  );
  const option = await failureOf(engine, job({ options: { temperature: -1 } }));
  assertEquals([option.status, option.param], [400, "temperature"]);
});

Deno.test("a model says that it sees once it is loaded", async () => {
  const source = `${unpackedVisionLanguage()}/gemma3_vl_toy`;
  await using engine = new LocalEngine([TINY, { ...TINY, name: "seeing", source }]);
  const seeing = async () => (await engine.call("models", null, never)).map(({ sees }) => sees);
  assertEquals(await seeing(), [undefined, undefined]);
  await engine.call("describe", { model: "seeing" }, never);
  await engine.call("describe", { model: "tiny" }, never);
  assertEquals(await seeing(), [undefined, true]);
});

Deno.test("two models that alternate under a limit for one answer as each does alone", async () => {
  await using both = new LocalEngine([TINY, { ...TINY, name: "twin" }]);
  const expected = await eventsOf(both, job());
  const { memoryBytes } = (await both.call("models", null, never))[0]!;
  await using engine = new LocalEngine([TINY, { ...TINY, name: "twin" }], {
    maxMemory: memoryBytes! * 1.5,
  });
  const names = ["tiny", "twin", "tiny", "twin", "tiny", "tiny", "twin", "twin"];
  const answers = await Promise.all(names.map((model) => eventsOf(engine, job({ model }))));
  for (const events of answers) assertEquals(partsOf(events), partsOf(expected));
  const { models } = await engine.call("figures", null, never);
  assertEquals(models.map(({ answerTokens }) => answerTokens), [24, 24]);
  assertEquals(models.filter(({ memoryBytes }) => memoryBytes > 0).length, 1);
  assertEquals(models.every(({ steps }) => steps > 0), true, "those of unloaded models count");
});

Deno.test("answers that come at once join their steps, and share a prompt", async () => {
  await using engine = new LocalEngine([TINY]);
  const alone = await eventsOf(engine, job({ options: { maxTokens: 20, ignoreEos: true } }));
  const steps = async () => (await engine.call("figures", null, never)).models[0]!.steps;
  const before = await steps();
  const answers = await Promise.all(
    Array.from(
      { length: 8 },
      () => eventsOf(engine, job({ options: { maxTokens: 20, ignoreEos: true } })),
    ),
  );
  for (const events of answers) assertEquals(partsOf(events), partsOf(alone));
  // 8 alone would take 8 times 20.
  const taken = await steps() - before;
  assertEquals(taken >= 20 && taken <= 30, true, `${taken} steps`);
});

Deno.test("a repeated prompt is found in the cache, and said to be", async () => {
  await using engine = new LocalEngine([TINY]);
  const asked = job({ input: { prompt: new Array(50).fill(7) } });
  const cached = async () => {
    const end = (await eventsOf(engine, asked)).at(-1)!;
    return end.kind === "end" ? end.cachedTokens : -1;
  };
  assertEquals(await cached(), 0);
  assertEquals(await cached(), 49);
  assertEquals((await engine.call("figures", null, never)).models[0]!.cachedTokens, 49);
});

Deno.test("who leaves the queue for a session does not hold up those behind him", async () => {
  const options = { ...TINY.options, sessions: 1 };
  await using engine = new LocalEngine([{ ...TINY, options }]);
  const first = engine.answer(job(), never)[Symbol.asyncIterator]();
  await first.next();
  const abort = new AbortController();
  const leaver = eventsOf(engine, job(), abort.signal);
  const last = eventsOf(engine, job());
  const figures = async () => (await engine.call("figures", null, never)).models[0]!;
  for (let turns = 0; (await figures()).waiting < 2; turns++) assertEquals(turns < 100, true);
  assertEquals((await figures()).running, 1);
  abort.abort();
  const end = (await leaver).at(-1)!;
  assertEquals(end.kind === "end" && [end.finishReason, end.answerTokens], ["abort", 0]);
  await first.return!();
  assertEquals((await last).length, 8);
  assertEquals((await figures()).running + (await figures()).waiting, 0);
});

Deno.test("closing ends answers with an error, and nothing can be asked afterwards", async () => {
  const engine = new LocalEngine([TINY]);
  const answer = engine.answer(job({ options: { maxTokens: 50 } }), never)[Symbol.asyncIterator]();
  await answer.next();
  const closed = engine[Symbol.asyncDispose]();
  const { failure } = await assertRejects(async () => {
    while (!(await answer.next()).done);
  }, JobError);
  assertEquals([failure.status, failure.code], [503, "closing"]);
  await closed;
  assertEquals((await failureOf(engine, job())).code, "closing");
});

Deno.test("vectors and scores come by name, whole texts only", async () => {
  const bert = { name: "bert", source: fixturePath("models/bert"), options: {} };
  await using engine = new LocalEngine([bert]);
  const input = [[1, 15, 47, 2], [1, 30, 2]];
  // From the header, before it is loaded.
  const [served] = await engine.call("models", null, never);
  assertEquals([served!.tasks, served!.isLoaded], [["embed"], false]);
  const { vectors, promptTokens } = await engine.call("embed", { model: "bert", input }, never);
  assertEquals([vectors.length, promptTokens], [2, 7]);
  const short = await engine.call("embed", { model: "bert", input, dimensions: 4 }, never);
  const [whole] = vectors, [front] = short.vectors;
  const length = Math.hypot(...whole!.subarray(0, 4));
  front!.forEach((x, i) => assertAlmostEquals(x, whole![i]! / length, 1e-6));
  assertEquals((await engine.call("models", null, never))[0]!.isLoaded, true);
  const refused = async (argument: object) =>
    (await assertRejects(
      () => engine.call("embed", { model: "bert", input, ...argument }, never),
      JobError,
    )).failure;
  assertEquals((await refused({ dimensions: 4096 })).param, "dimensions");
  assertEquals(
    (await refused({ input: [new Array(2000).fill(5)] })).code,
    "context_length_exceeded",
  );
  assertEquals((await failureOf(engine, job({ model: "bert" }))).status, 400);
});
