import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import type { NatsConnection } from "@nats-io/transport-node";
import { NATS_SERVER, NatsServer } from "../../../tests/support/nats_server.ts";
import { PacedEngine, pacedIds } from "../../../tests/support/paced_engine.ts";
import { testWith } from "../../../tests/support/skip.ts";
import { createRandom, nextBits } from "../../decode/sampling/random.ts";
import type { AnswerEvent, AnswerJob, Engine } from "../engine.ts";
import { JobError, type JobFailure } from "../job_error.ts";
import { importNpm } from "../../npm_packages.ts";
import { JOBS } from "./jobs_stream.ts";
import { QueueEngine, type QueueEngineOptions } from "./queue_engine.ts";
import { QueueWorker, type QueueWorkerOptions } from "./queue_worker.ts";
import { encodeMessage, SUBJECTS, type Ticket } from "./wire.ts";

const test = (name: string, run: () => Promise<void>) => testWith([NATS_SERVER], name, run);
const never = new AbortController().signal;
/** Short where the death of a worker is to be found out soon; else no pause of a busy machine is taken for one. */
const ACK_WAIT_MS = { short: 800, patient: 60_000 };

const jobOf = (seed: number, part: Partial<AnswerJob> = {}): AnswerJob => ({
  ...{ model: "tiny", input: { prompt: "Once" }, options: { seed, maxTokens: 12 } },
  ...part,
});

function frontOf(server: NatsServer, options: Partial<QueueEngineOptions> = {}): QueueEngine {
  return new QueueEngine({ url: server.url, ...options });
}

function workerOf(
  server: NatsServer,
  engine: PacedEngine,
  options: Partial<QueueWorkerOptions> = {},
): QueueWorker {
  const { url } = server, { models } = engine;
  return new QueueWorker({ url, engine, models, ackWaitMs: ACK_WAIT_MS.patient, ...options });
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!await isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Until the front knows so many workers. */
async function untilWorkers(front: QueueEngine, count: number): Promise<void> {
  await until(async () => (await front.call("figures", null, never)).queue?.workers === count);
}

async function untilEmpty(front: QueueEngine): Promise<void> {
  await until(async () => {
    const { queue } = await front.call("figures", null, never);
    return queue?.waiting === 0 && queue.taken === 0;
  });
}

/** Ids of an answer; that each token has its index is held on the way. */
async function idsOf(
  engine: Engine,
  job: AnswerJob,
  { signal = never, onIds = (_: readonly number[]): void => {} } = {},
): Promise<number[]> {
  const ids: number[] = [];
  let text = "";
  for await (const event of engine.answer(job, signal)) {
    if (event.kind !== "part") continue;
    assertEquals(event.at, ids.length);
    ids.push(...event.tokens.map(({ id }) => id));
    text += event.text;
    onIds(ids);
  }
  assertEquals(text, ids.map((id) => `${id} `).join(""));
  return ids;
}

async function failureOf(work: Promise<unknown>): Promise<JobFailure> {
  return (await assertRejects(() => work, JobError)).failure;
}

test("an answer is what the worker's engine gives, and so are results and failures", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  await using _worker = workerOf(server, new PacedEngine());
  await untilWorkers(front, 1);
  const job = jobOf(5);
  const same: AnswerEvent[] = await Array.fromAsync(new PacedEngine().answer(job, never));
  assertEquals(await Array.fromAsync(front.answer(job, never)), same);
  const many = Array.from({ length: 30 }, (_, seed) => jobOf(seed));
  assertEquals(await Promise.all(many.map((one) => idsOf(front, one))), many.map(pacedIds));
  const { vectors } = await front.call("embed", { model: "tiny", input: ["abc", ""] }, never);
  assertEquals(vectors, [Float32Array.of(3, 0.1, -0), Float32Array.of(0, 0.1, -0)]);
  const wrong = jobOf(1, { options: { temperature: -1 } });
  assertEquals(await failureOf(idsOf(front, wrong)), {
    ...{ status: 400, message: "Cannot use temperature -1", param: "temperature" },
  });
  await untilEmpty(front);
});

test("a front that stood still takes neither workers nor attempts for dead", async () => {
  const { now } = performance;
  let slept = 0;
  performance.now = () => now.call(performance) + slept;
  try {
    await using server = await NatsServer.start();
    await using front = frontOf(server);
    const engine = new PacedEngine();
    await using _worker = workerOf(server, engine);
    await untilWorkers(front, 1);
    slept += 1e9;
    const job = jobOf(6),
      onIds = (ids: readonly number[]) => void (ids.length === 5 && (slept += 1e9));
    assertEquals(await idsOf(front, job, { onIds }), pacedIds(job));
    assertEquals(engine.jobs.length, 1);
  } finally {
    performance.now = now;
  }
});

test("drawn answers without a seed get one, which every worker would use, greedy ones do not", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  await using _worker = workerOf(server, new PacedEngine());
  await untilWorkers(front, 1);
  const [start, ...rest] = await Array.fromAsync(
    front.answer(jobOf(0, { options: { maxTokens: 3, temperature: 1 } }), never),
  );
  assert(start!.kind === "start" && start.seed > 0);
  const ids = rest.flatMap((one) => one.kind === "part" ? one.tokens.map(({ id }) => id) : []);
  assertEquals(ids, pacedIds(jobOf(start.seed, { options: { seed: start.seed, maxTokens: 3 } })));
  const greedy = await Array.fromAsync(front.answer(jobOf(0, { options: {} }), never));
  assertEquals(greedy[0], { kind: "start", promptTokens: 3, seed: 0 });
});

test("who leaves an answer, or aborts it, ends it at the worker's next step", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const engine = new PacedEngine();
  await using worker = workerOf(server, engine);
  await untilWorkers(front, 1);
  engine.allow(2);
  for await (const event of front.answer(jobOf(1), never)) if (event.kind === "part") break;
  await until(() => engine.left === 1);
  engine.allow(2);
  const abort = new AbortController();
  const ids = await idsOf(front, jobOf(2), {
    signal: abort.signal,
    onIds: ({ length }) => length === 2 && abort.abort(),
  });
  assertEquals(ids, pacedIds(jobOf(2)).slice(0, 2));
  await until(() => engine.left === 2 && worker.running === 0);
  await untilEmpty(front);
});

test("a job that is left before anybody took it is taken out of the queue", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const engine = new PacedEngine();
  await using _worker = workerOf(server, engine, { places: 1 });
  await untilWorkers(front, 1);
  engine.allow(0);
  const abort = new AbortController();
  const answers = [1, 2, 3, 4].map((seed) => idsOf(front, jobOf(seed), { signal: abort.signal }));
  await until(async () => {
    const { queue } = await front.call("figures", null, never);
    return queue!.waiting + queue!.taken === 4 && queue!.waiting >= 1;
  });
  abort.abort();
  assertEquals(await Promise.all(answers), [[], [], [], []]);
  await untilEmpty(front);
});

test("jobs for several models go to the workers that serve them, others are refused", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const first = new PacedEngine(["hf:a/b.gguf", "c d*>"]), second = new PacedEngine(["é"]);
  await using _first = workerOf(server, first);
  await using _second = workerOf(server, second);
  await untilWorkers(front, 2);
  const names = (await front.call("models", null, never)).map(({ name }) => name).sort();
  assertEquals(names, ["c d*>", "hf:a/b.gguf", "é"]);
  const jobs = names.map((model, seed) => jobOf(seed, { model }));
  assertEquals(await Promise.all(jobs.map((job) => idsOf(front, job))), jobs.map(pacedIds));
  assertEquals([first.jobs.length, second.jobs.length], [2, 1]);
  const unknown = await failureOf(idsOf(front, jobOf(1, { model: "none" })));
  assertEquals([unknown.status, unknown.code, unknown.param], [404, "model_not_found", "model"]);
});

test("a prompt goes to the worker that holds its beginning, where that is free", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const engines = [new PacedEngine(), new PacedEngine()];
  await using _first = workerOf(server, engines[0]!, { places: 1 });
  await using _second = workerOf(server, engines[1]!, { places: 1 });
  await untilWorkers(front, 2);
  const text = "What was said before, word for word. ".repeat(20);
  const asked = (seed: number, end = "") => jobOf(seed, { input: { prompt: `${text}${end}` } });
  for (let i = 0; i < 5; i++) {
    await idsOf(front, asked(i, `And ${i}`));
    // Its place is free again when it says so.
    await untilEmpty(front);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const counts = engines.map(({ jobs }) => jobs.length).sort();
  assertEquals(counts, [0, 5]);
  for (const engine of engines) engine.allow(0);
  const answers = [10, 11].map((seed) => idsOf(front, asked(seed)));
  await until(() => engines.every(({ jobs }) => jobs.some(({ options }) => options.seed! >= 10)));
  for (const engine of engines) engine.allow(Infinity);
  assertEquals(await Promise.all(answers), [10, 11].map((seed) => pacedIds(jobOf(seed))));
});

test("a queue that is full refuses with 429, and when to come again", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server, { maxJobs: 3 });
  await front.ready;
  const engine = new PacedEngine();
  await using _worker = workerOf(server, engine);
  await untilWorkers(front, 1);
  engine.allow(0);
  const answers = [1, 2, 3].map((seed) => idsOf(front, jobOf(seed)));
  await until(() => engine.jobs.length === 3);
  const failure = await failureOf(idsOf(front, jobOf(4)));
  assertEquals([failure.status, failure.retryAfter], [429, 2]);
  engine.allow(Infinity);
  await Promise.all(answers);
});

test("prompts and results that are larger than a message go in pieces", async () => {
  await using server = await NatsServer.start(["max_payload: 16384"]);
  await using front = frontOf(server);
  const engine = new PacedEngine();
  await using _worker = workerOf(server, engine);
  await untilWorkers(front, 1);
  const prompt = "Größe ".repeat(20_000);
  assertEquals(await idsOf(front, jobOf(3, { input: { prompt } })), pacedIds(jobOf(3)));
  assertEquals(engine.jobs[0]!.input, { prompt });
  const input = Array.from({ length: 3_000 }, (_, i) => "x".repeat(i % 7));
  const { vectors } = await front.call("embed", { model: "tiny", input }, never);
  assertEquals(vectors.map(([length]) => length), input.map(({ length }) => length));
});

test("nobody who serves: 503, and when somebody comes it goes on", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server, { patienceMs: 600 });
  await front.ready;
  const none = await failureOf(idsOf(front, jobOf(1)));
  assertEquals([none.status, none.code, none.retryAfter], [503, "no_worker", 2]);
  const engine = new PacedEngine();
  const worker = workerOf(server, engine, { ackWaitMs: ACK_WAIT_MS.short });
  await untilWorkers(front, 1);
  engine.allow(0);
  const answer = failureOf(idsOf(front, jobOf(1)));
  await until(() => engine.jobs.length === 1);
  await worker[Symbol.asyncDispose]();
  assertEquals((await answer).code, "no_worker");
  await using _other = workerOf(server, new PacedEngine());
  await untilWorkers(front, 1);
  assertEquals(await idsOf(front, jobOf(1)), pacedIds(jobOf(1)));
});

test("NATS may be down at the start: 503 until it is there", async () => {
  await using server = new NatsServer();
  const notices: string[] = [];
  await using front = frontOf(server, { notice: (message) => void notices.push(message) });
  await using _worker = workerOf(server, new PacedEngine());
  const down = await failureOf(idsOf(front, jobOf(1)));
  assertEquals([down.status, down.code, down.retryAfter], [503, "queue_down", 2]);
  await until(() => notices.length > 0);
  assertMatch(
    notices[0]!,
    new RegExp(`cannot use NATS at 127.0.0.1:${server.port} \\(.*refused`, "i"),
  );
  await server.start();
  await front.ready;
  assertEquals(notices.length, 2);
  await untilWorkers(front, 1);
  assertEquals(await idsOf(front, jobOf(1)), pacedIds(jobOf(1)));
});

for (const forget of [false, true]) {
  const how = forget ? "and has forgotten everything" : "with what it stored";
  test(`answers go on when NATS comes back ${how}`, async () => {
    await using server = await NatsServer.start();
    const notices: string[] = [];
    await using front = frontOf(server, { notice: (message) => void notices.push(message) });
    const engine = new PacedEngine();
    await using _worker = workerOf(server, engine, { places: 2 });
    await untilWorkers(front, 1);
    engine.allow(6);
    let given = 0;
    const answers = [1, 2, 3, 4, 5].map((seed) =>
      idsOf(front, jobOf(seed), { onIds: () => given++ })
    );
    await until(() => given === 6);
    await server.stop({ forget });
    // Tokens that nobody hears.
    engine.allow(5);
    await until(() => notices.some((notice) => notice.includes("is gone")));
    assertEquals((await failureOf(idsOf(front, jobOf(9)))).code, "queue_down");
    await server.start();
    engine.allow(Infinity);
    const ids = await Promise.all(answers);
    assertEquals(ids, [1, 2, 3, 4, 5].map((seed) => pacedIds(jobOf(seed))));
    await untilEmpty(front);
  });
}

test("a NATS that stays away ends answers with 503", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server, { patienceMs: 300 });
  const engine = new PacedEngine();
  await using _worker = workerOf(server, engine);
  await untilWorkers(front, 1);
  engine.allow(2);
  const answer = failureOf(idsOf(front, jobOf(1)));
  await until(() => engine.jobs.length === 1);
  await server.stop();
  const { status, code, retryAfter } = await answer;
  assertEquals([status, code, retryAfter], [503, "queue_down", 2]);
});

/** Takes tickets as a worker that dies over each of them. */
async function dieOver(server: NatsServer): Promise<{ taken: number } & AsyncDisposable> {
  const { connect } = await importNpm<typeof import("@nats-io/transport-node")>(
    "@nats-io/transport-node",
  );
  const { jetstream } = await importNpm<typeof import("@nats-io/jetstream")>("@nats-io/jetstream");
  const connection = await connect({ servers: `127.0.0.1:${server.port}` });
  const consumer = await jetstream(connection).consumers.get(JOBS, "any_tiny");
  const messages = await consumer.consume();
  const deadly = {
    taken: 0,
    async [Symbol.asyncDispose]() {
      await messages.close();
      await connection.close();
    },
  };
  void (async () => {
    for await (const message of messages) {
      const { job, front } = message.json<Ticket>(), attempt = `a${deadly.taken++}`;
      const question = { ask: "begin", job, attempt, worker: attempt };
      const models = [{ name: "tiny" }], figures = { models: [] };
      const status = { worker: attempt, beatMs: ACK_WAIT_MS.short / 4, models, figures };
      connection.publish(SUBJECTS.status, encodeMessage(status));
      await connection.request(SUBJECTS.front(front), encodeMessage(question));
    }
  })();
  return deadly;
}

test("a job that kills its workers is given up after three, others go on", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const engine = new PacedEngine();
  await using worker = workerOf(server, engine, { places: 1 });
  await untilWorkers(front, 1);
  engine.allow(0);
  const busy = idsOf(front, jobOf(1));
  await until(() => worker.running === 1);
  await using deadly = await dieOver(server);
  const failure = await failureOf(idsOf(front, jobOf(3)));
  assertEquals([failure.status, failure.code], [500, "worker_died"]);
  assertEquals(deadly.taken >= 3, true);
  engine.allow(Infinity);
  assertEquals(await busy, pacedIds(jobOf(1)));
  await untilEmpty(front);
});

test("what others say on its subjects, or put into its stream, is left alone", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const engine = new PacedEngine();
  await using worker = workerOf(server, engine);
  await untilWorkers(front, 1);
  const { connect } = await importNpm<typeof import("@nats-io/transport-node")>(
    "@nats-io/transport-node",
  );
  const stranger = await connect({ servers: `127.0.0.1:${server.port}` });
  const id = await frontId(stranger, front);
  const texts = [
    "",
    "{",
    "null",
    "[]",
    "3",
    '{"ask":"begin"}',
    '{"ask":"alive"}',
    "x".repeat(1000),
  ];
  for (const text of texts) {
    for (const subject of [SUBJECTS.status, SUBJECTS.front(id), SUBJECTS.worker(worker.id)]) {
      stranger.publish(subject, text);
    }
    stranger.publish(SUBJECTS.frames({ front: id, job: "0", attempt: "x" }), text);
    stranger.publish(SUBJECTS.any("tiny"), text);
  }
  // A job of a front that is no more.
  stranger.publish(SUBJECTS.any("tiny"), encodeMessage({ front: "gone", job: "1" }));
  await stranger.flush();
  await stranger.close();
  assertEquals(await idsOf(front, jobOf(2)), pacedIds(jobOf(2)));
  await untilEmpty(front);
  assertEquals(engine.jobs.length, 1 + 1);
});

/** Whose tickets a front writes, as whoever listens in finds out. */
async function frontId(connection: NatsConnection, front: QueueEngine): Promise<string> {
  const heard = connection.subscribe(SUBJECTS.jobs, { max: 1 });
  await connection.flush();
  await idsOf(front, jobOf(1));
  for await (const message of heard) return message.json<Ticket>().front;
  throw new Error("no ticket came");
}

test("a worker that drains ends its jobs and takes no more; at the signal others get them", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const engines = [new PacedEngine(), new PacedEngine()];
  const first = workerOf(server, engines[0]!);
  await untilWorkers(front, 1);
  engines[0]!.allow(3);
  const answer = idsOf(front, jobOf(1));
  answer.catch(() => {}); // told below, and not where something else fails before
  await until(() => first.running === 1);
  await using _second = workerOf(server, engines[1]!);
  await untilWorkers(front, 2);
  const late = new AbortController();
  const drained = first.drain(late.signal);
  await untilWorkers(front, 1);
  assertEquals(await idsOf(front, jobOf(2)), pacedIds(jobOf(2)));
  assertEquals([engines[0]!.jobs.length, engines[1]!.jobs.length], [1, 1]);
  late.abort();
  await drained;
  await first[Symbol.asyncDispose]();
  assertEquals(await answer, pacedIds(jobOf(1)));
  assertEquals(engines[1]!.jobs[1]!.options.forced, pacedIds(jobOf(1)).slice(0, 3));
});

test("400 answers, a third of them left on the way, while workers come and go", async () => {
  await using server = await NatsServer.start();
  await using front = frontOf(server);
  const engines: PacedEngine[] = [], workers: QueueWorker[] = [];
  const come = async (): Promise<void> => {
    const engine = new PacedEngine();
    engines.push(engine);
    workers.push(workerOf(server, engine, { places: 6 }));
    await workers.at(-1)!.ready;
  };
  await come();
  await come();
  await untilWorkers(front, 2);
  const random = createRandom(7);
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < 400) {
      const seed = next++;
      if (seed % 100 === 99) {
        await come();
        await workers.shift()![Symbol.asyncDispose]();
      }
      const most = seed % 3 === 0 ? nextBits(random, 4) : Infinity;
      const abort = new AbortController();
      const ids = await idsOf(front, jobOf(seed), {
        signal: abort.signal,
        onIds: ({ length }) => length >= most && abort.abort(),
      });
      const whole = pacedIds(jobOf(seed));
      assertEquals(ids, whole.slice(0, Math.min(whole.length, ids.length)));
      if (most >= whole.length) assertEquals(ids.length, whole.length);
    }
  };
  await Promise.all(Array.from({ length: 24 }, client));
  await until(() => workers.every(({ running }) => running === 0));
  await untilEmpty(front);
  assertEquals(engines.length, 6);
  for (const worker of workers) await worker[Symbol.asyncDispose]();
});

Deno.test("a URL that is none of NATS is refused at once, and its password not told", () => {
  for (const url of ["http://host:4222", "nats://", "nats://user:secret@:x"]) {
    const error = assertThrows(() => new QueueEngine({ url }), TypeError, "nats://HOST:PORT");
    assertEquals(error.message.includes("secret"), false);
  }
});
