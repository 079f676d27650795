import { assertEquals, assertRejects } from "@std/assert";
import { generate } from "../../decode/generate.ts";
import { loadTiny, TINY_LLAMA } from "../../../tests/support/models.ts";
import type { AnswerEvent, AnswerJob, Engine } from "../engine.ts";
import { JobError } from "../job_error.ts";
import { LocalEngine } from "./local_engine.ts";

const TINY = { name: "tiny", source: TINY_LLAMA, options: { device: "reference" } } as const;
const job = (part: Partial<AnswerJob> = {}): AnswerJob => ({
  ...{ model: "tiny", input: { prompt: "Once" }, options: { maxTokens: 6 } },
  ...part,
});

async function eventsOf(
  engine: Engine,
  asked: AnswerJob,
  signal = new AbortController().signal,
): Promise<AnswerEvent[]> {
  return await Array.fromAsync(engine.answer(asked, signal));
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
  const long = await failureOf(engine, job({ input: { prompt: new Array(300).fill(5) } }));
  assertEquals([long.status, long.code], [400, "context_length_exceeded"]);
  assertEquals(
    long.message,
    "the prompt has 300 tokens, and the context holds 64. Shorten it, or load the model with a larger contextLength",
  );
  const option = await failureOf(engine, job({ options: { temperature: -1 } }));
  assertEquals([option.status, option.param], [400, "temperature"]);
});
