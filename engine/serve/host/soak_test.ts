// Thirty-two streams that come when they like, are cancelled or left at random, and are read slowly, round after round, on
// a worker whose model has few places and a small pool of cache rows. What each has read is what it reads alone; nothing is
// stuck; memory stays. Nothing looks at a clock: who waits, waits for turns of the event loop, so many as a seed says.

import { assert, assertEquals } from "@std/assert";
import { createRandom, nextDouble } from "../../decode/sampling/random.ts";
import { pause } from "../../pause.ts";
import { liveHeapBytes } from "../../../tests/support/heap.ts";
import { writeLongTiny } from "../../../tests/support/models.ts";
import type { AnswerEvent, AnswerJob, Engine } from "../engine.ts";
import { WorkerEngine } from "./worker_engine.ts";

const STREAMS = 32;
const WARM_ROUNDS = 10;
const ROUNDS = 20;
/** Most bytes that may be held in both threads beyond those after the first rounds. */
const MOST_GROWTH = 1 << 20;

const never = new AbortController().signal;

interface Stream {
  readonly job: AnswerJob;
  /** Parts after which it is given up, and how; Infinity: never. */
  readonly after: number;
  readonly isAbort: boolean;
  /** Turns before it comes, and between two parts. */
  readonly comes: number;
  readonly reads: number;
}

function randomStreams(seed: number): Stream[] {
  const random = createRandom(seed);
  const below = (limit: number) => Math.floor(nextDouble(random) * limit);
  const common = Array.from({ length: 70 }, () => 3 + below(280));
  return Array.from({ length: STREAMS }, (_, index) => {
    const own = Array.from({ length: 1 + below(30) }, () => 3 + below(280));
    const options = { maxTokens: 1 + below(40), ignoreEos: true, seed: index };
    return {
      job: {
        model: "tiny",
        input: { prompt: below(3) ? own : [...common, ...own] },
        options: { ...options, ...below(2) && { temperature: 1, topK: 20 } },
      },
      ...{ after: below(2) ? Infinity : below(12), isAbort: below(2) === 0 },
      ...{ comes: below(40), reads: below(4) ? 0 : below(9) },
    };
  });
}

/** Ids that a stream has read: all, or so many as it wanted to. */
async function run(engine: Engine, { job, after, isAbort, comes, reads }: Stream) {
  const wait = async (turns: number) => {
    for (let i = 0; i < turns; i++) await pause();
  };
  await wait(comes);
  const abort = new AbortController();
  const ids: number[] = [];
  let parts = 0;
  for await (const event of engine.answer(job, abort.signal)) {
    if (event.kind !== "part") continue;
    ids.push(...event.tokens.map(({ id }) => id));
    if (parts++ >= after) {
      if (!isAbort) break;
      abort.abort();
    }
    await wait(reads);
  }
  return ids;
}

Deno.test("32 streams with random cancels, round after round, have the answers of each alone, and memory stays", async () => {
  await using file = await writeLongTiny();
  const options = { device: "wasm", threads: 1, contextLength: 192, batch: 40 } as const;
  const entry = (more: object) => ({
    name: "tiny",
    source: file.path,
    options: { ...options, ...more },
  });
  const rounds = [1, 2, 3].map(randomStreams);
  const solo = new Map<Stream, readonly number[]>();
  {
    // With no kept texts: rows of others' would be found.
    await using alone = new WorkerEngine({ entries: [entry({ sessions: 1, cacheTokens: 192 })] });
    const idsOf = (events: readonly AnswerEvent[]) =>
      events.flatMap((event) => event.kind === "part" ? event.tokens.map(({ id }) => id) : []);
    for (const stream of rounds.flat()) {
      solo.set(stream, idsOf(await Array.fromAsync(alone.answer(stream.job, never))));
    }
  }
  using heaps = openHeaps();
  const settings = { entries: [entry({ sessions: 5, cacheTokens: 384 })] };
  await using engine = new WorkerEngine(settings, { createWorker: heaps.createWorker });
  let before = 0;
  for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
    if (round === WARM_ROUNDS) before = await heaps.bytes();
    const streams = rounds[round % rounds.length]!;
    const read = await Promise.all(streams.map((stream) => run(engine, stream)));
    for (const [index, stream] of streams.entries()) {
      const whole = solo.get(stream)!, ids = read[index]!;
      if (stream.after === Infinity) assertEquals(ids, whole, `stream ${index} of round ${round}`);
      else assertEquals(ids, whole.slice(0, ids.length), `stream ${index} of round ${round}`);
    }
  }
  for (let asked = 0;; asked++) {
    const [figures] = (await engine.call("figures", null, never)).models;
    if (figures!.running + figures!.waiting === 0) break;
    assert(asked < 100, `${figures!.running} answers are stuck, ${figures!.waiting} wait`);
  }
  const growth = await heaps.bytes() - before;
  assert(growth < MOST_GROWTH, `${growth} bytes more after ${ROUNDS} rounds`);
});

/** What this thread's heap and that of a worker hold. */
function openHeaps() {
  const asked = new BroadcastChannel("heap asked");
  const told = new BroadcastChannel("heap told");
  return {
    createWorker: () =>
      new Worker(new URL("../../../tests/support/engine_worker.ts", import.meta.url), {
        type: "module",
      }),
    async bytes(): Promise<number> {
      const there = new Promise<number>((resolve) => told.onmessage = ({ data }) => resolve(data));
      asked.postMessage(undefined);
      return await there + liveHeapBytes();
    },
    [Symbol.dispose]() {
      asked.close();
      told.close();
    },
  };
}
