import { assert, assertEquals, assertRejects } from "@std/assert";
import { adapterNeed } from "../../../tests/support/gpu.ts";
import { TINY_LLAMA, writeLongTiny } from "../../../tests/support/models.ts";
import { testWith } from "../../../tests/support/skip.ts";
import { pause } from "../../pause.ts";
import type { AnswerEvent, AnswerJob, Engine, EngineFigures } from "../engine.ts";
import { JobError } from "../job_error.ts";
import { LocalEngine } from "./local_engine.ts";
import { WINDOW } from "./messages.ts";
import { WorkerEngine } from "./worker_engine.ts";

const TINY = { name: "tiny", source: TINY_LLAMA, options: { device: "wasm", threads: 1 } } as const;
const never = new AbortController().signal;
const job = (options: AnswerJob["options"], prompt: AnswerJob["input"] = { prompt: "Once" }) => ({
  ...{ model: "tiny", input: prompt, options },
});

/** Without what differs from run to run. */
function comparable(events: readonly AnswerEvent[]): unknown[] {
  return events.map((event) =>
    event.kind === "end" ? { ...event, firstTokenMs: 0, decodePerSecond: 0 } : event
  );
}

async function figuresOf(engine: Engine): Promise<EngineFigures["models"][number]> {
  return (await engine.call("figures", null, never)).models[0]!;
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

testWith([adapterNeed], "a worker computes on a GPU as well", async () => {
  const entry = (device: "gpu" | "wasm") => ({
    ...TINY,
    options: { device, precision: "exact" } as const,
  });
  const asked = job({ maxTokens: 4 });
  await using worker = new WorkerEngine({ entries: [entry("gpu")] });
  await using local = new LocalEngine([entry("wasm")]);
  const { device } = await worker.call("describe", { model: "tiny" }, never);
  const [actual, expected] = await Promise.all(
    [worker, local].map((engine) => Array.fromAsync(engine.answer(asked, never))),
  );
  assertEquals(device, "gpu");
  assertEquals(comparable(actual!).slice(1), comparable(expected!).slice(1));
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

Deno.test("this thread goes on turning while the worker reads a prompt of 2,000 tokens", async () => {
  await using file = await writeLongTiny();
  const entry = { ...TINY, source: file.path };
  await using worker = new WorkerEngine({ entries: [entry] });
  await worker.call("describe", { model: "tiny" }, never);
  const events = worker.answer(job({ maxTokens: 1 }, { prompt: new Array(2000).fill(5) }), never);
  let isStarted = false, turns = 0;
  const start = events[Symbol.asyncIterator]().next().then(() => isStarted = true);
  for (; !isStarted; turns++) await pause();
  await start;
  const { steps } = await figuresOf(worker);
  // On its own thread a turn would come between two steps.
  assert(turns > 20 * steps, `${turns} turns in ${steps} steps`);
});

Deno.test("an answer whose reader is slow waits, and nobody else does", async () => {
  await using file = await writeLongTiny();
  await using worker = new WorkerEngine({ entries: [{ ...TINY, source: file.path }] });
  const long = { maxTokens: 300, ignoreEos: true };
  const whole = await Array.fromAsync(worker.answer(job(long), never));
  const slow = worker.answer(job(long), never)[Symbol.asyncIterator]();
  const read = [(await slow.next()).value!];
  const before = await figuresOf(worker);
  await Array.fromAsync(worker.answer(job(long, { prompt: "Twice" }), never));
  const { answerTokens } = await figuresOf(worker);
  const ahead = answerTokens - before.answerTokens - 300;
  assert(ahead <= WINDOW, `${ahead} tokens that nobody reads`);
  for (let next = await slow.next(); !next.done; next = await slow.next()) read.push(next.value);
  assertEquals(comparable(read.slice(1, -1)), comparable(whole.slice(1, -1)));
});

Deno.test("who aborts or leaves ends his answer alone, and its place is free", async () => {
  await using file = await writeLongTiny();
  const entry = { ...TINY, source: file.path, options: { ...TINY.options, sessions: 2 } };
  await using worker = new WorkerEngine({ entries: [entry] });
  const endless = job({ maxTokens: 3000, ignoreEos: true });
  const abort = new AbortController();
  const seen: AnswerEvent[] = [];
  const other = Array.fromAsync(worker.answer(job({ maxTokens: 40, ignoreEos: true }), never));
  for await (const event of worker.answer(endless, abort.signal)) {
    seen.push(event);
    if (seen.length === 5) abort.abort();
  }
  const end = seen.at(-1)!;
  assertEquals(end.kind === "end" && end.finishReason, "abort");
  for await (const { kind } of worker.answer(endless, never)) if (kind === "part") break;
  assertEquals((await other).length, 42);
  // The cancel was sent before the call, so the worker has seen it when it answers.
  let figures = await figuresOf(worker);
  while (figures.running > 0) figures = await figuresOf(worker);
  assert(figures.answerTokens < 200, `${figures.answerTokens} tokens`);
});

Deno.test("when the worker dies its jobs fail with 503, and the next one finds a new worker", async () => {
  const fragile = `onmessage = ({ data }) => {
    if (data) data.port.onmessage = ({ data: { kind } }) => {
      if (kind === "call") throw new Error("this worker of a test dies");
    };
  };`;
  const workers = [
    () => new Worker(`data:text/javascript,${encodeURIComponent(fragile)}`, { type: "module" }),
    () => {
      throw new Error("no thread is left");
    },
    () => new Worker(new URL("./worker.ts", import.meta.url), { type: "module" }),
  ];
  const deaths: string[] = [];
  await using engine = new WorkerEngine({ entries: [TINY] }, {
    createWorker: () => workers.shift()!(),
    onDeath: (message) => deaths.push(message),
  });
  const answer = Array.fromAsync(engine.answer(job({ maxTokens: 2 }), never));
  const call = engine.call("describe", { model: "tiny" }, never);
  for (const one of [answer, call]) {
    const { failure } = await assertRejects(() => one, JobError);
    assertEquals([failure.status, failure.code, failure.retryAfter], [503, "worker_died", 1]);
    assert(/this worker of a test dies/.test(failure.message), failure.message);
  }
  assertEquals(deaths.length, 1);
  const { failure } = await assertRejects(
    () => engine.call("describe", { model: "tiny" }, never),
    JobError,
    "Cannot start the thread that computes: no thread is left",
  );
  assertEquals([failure.status, failure.code, failure.retryAfter], [503, "worker_died", 1]);
  assertEquals((await engine.call("describe", { model: "tiny" }, never)).isLoaded, true);
});

Deno.test("closing ends the worker, unless the process does so, and that of settings that are wrong in any case", async () => {
  for (const isLast of [false, true]) {
    for (const isWrong of [false, true]) {
      let worker: Worker | undefined, ended = 0;
      const createWorker = () => {
        worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
        const terminate = worker.terminate.bind(worker);
        return Object.assign(worker, {
          terminate() {
            ended++;
            terminate();
          },
        });
      };
      const settings = isWrong ? Promise.reject(new Error("wrong")) : { entries: [TINY] };
      const engine = new WorkerEngine(settings, { createWorker, isLast });
      const answer = Array.fromAsync(engine.answer(job({ maxTokens: 2 }), never));
      if (isWrong) await assertRejects(() => answer, JobError, "wrong");
      else await answer;
      await engine[Symbol.asyncDispose]();
      assertEquals(ended, isLast && !isWrong ? 0 : 1, `${isLast}, ${isWrong}`);
      worker!.terminate();
    }
  }
});

Deno.test("closing during answers fails them, also where nobody reads", async () => {
  await using file = await writeLongTiny();
  const engine = new WorkerEngine({ entries: [{ ...TINY, source: file.path }] });
  const endless = job({ maxTokens: 3000, ignoreEos: true });
  const idle = engine.answer(endless, never)[Symbol.asyncIterator]();
  await idle.next();
  const busy = Array.fromAsync(engine.answer(endless, never));
  await figuresOf(engine);
  await engine[Symbol.asyncDispose]();
  const { failure } = await assertRejects(() => busy, JobError);
  assertEquals([failure.status, failure.code], [503, "closing"]);
  await assertRejects(
    async () => {
      while (!(await idle.next()).done);
    },
    JobError,
    "shutting down",
  );
  await assertRejects(() => engine.call("models", null, never), JobError, "shutting down");
});
