import { assertEquals, assertRejects } from "@std/assert";
import { TINY_LLAMA } from "../../../tests/support/models.ts";
import type { AnswerEvent, AnswerJob } from "../engine.ts";
import { JobError } from "../job_error.ts";
import { LocalEngine } from "./local_engine.ts";
import { WorkerEngine } from "./worker_engine.ts";

const TINY = { name: "tiny", source: TINY_LLAMA, options: { device: "wasm", threads: 1 } } as const;
const never = new AbortController().signal;
const job = (options: AnswerJob["options"]): AnswerJob => ({
  ...{ model: "tiny", input: { prompt: "Once" }, options },
});

/** Without what differs from run to run. */
function comparable(events: readonly AnswerEvent[]): unknown[] {
  return events.map((event) =>
    event.kind === "end" ? { ...event, firstTokenMs: 0, decodePerSecond: 0 } : event
  );
}

Deno.test("a worker tells of an answer what the engine of this thread tells", async () => {
  const asked = job({ maxTokens: 8, logprobs: 2, seed: 4, temperature: 1 });
  await using local = new LocalEngine([TINY]);
  await using worker = new WorkerEngine({ entries: [TINY] });
  const [expected, actual] = await Promise.all(
    [local, worker].map((engine) => Array.fromAsync(engine.answer(asked, never))),
  );
  assertEquals(comparable(actual!), comparable(expected!));
  const text = { model: "tiny", text: "a b", addSpecial: true, parseSpecial: false };
  assertEquals(
    await worker.call("tokenize", text, never),
    await local.call("tokenize", text, never),
  );
});

Deno.test("what fails in a worker fails here, with the same words", async () => {
  await using worker = new WorkerEngine({ entries: [TINY] });
  const { failure } = await assertRejects(
    () => Array.fromAsync(worker.answer({ ...job({}), model: "none" }, never)),
    JobError,
  );
  assertEquals([failure.status, failure.code], [404, "model_not_found"]);
  const notData = { ...job({}), options: { samplers: [() => {}] } } as unknown as AnswerJob;
  await assertRejects(() => Array.fromAsync(worker.answer(notData, never)), JobError, "plain data");
});
