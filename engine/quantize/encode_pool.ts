// Encodes runs of rows on several threads, which is most of the work of `quantize`. A run is sent to the worker that
// has been idle longest; results are taken in the order of the rows, so that what is written and summed up does not
// depend on threads. Workers start with the first run that is worth it. Where none may be started (they are
// modules of their own, and need permission to read them) the calling thread does it all. It also does all that GPTQ
// rounds: a factor of columns² is too large for a copy a thread, and V8 takes twice as long to round with one in shared
// memory.

import { mayReadModule } from "../io.ts";
import { type EncodedRun, type EncodeJob, encodeRun } from "./encode_run.ts";
import type { RunOrder, RunReply } from "./encode_worker.ts";

/** A run that was encoded, with the values that it was made of. */
export interface PooledRun extends EncodedRun {
  readonly values: Float32Array<ArrayBuffer>;
}

/** Threads that encode. */
export interface EncodePool {
  /** Runs that are worth to be sent before the first is awaited. */
  readonly depth: number;
  /**
   * Encodes a run; its values are taken away and come back with the result.
   *
   * @throws {RangeError} If the format cannot hold them.
   */
  encode(job: EncodeJob, values: Float32Array<ArrayBuffer>): Promise<PooledRun>;
  /** Called before a tensor of so many runs: few are not worth a thread. */
  prepare(runs: number): void;
  [Symbol.dispose](): void;
}

/** A worker takes some 20 MB and as many milliseconds to start: few runs are done sooner without. */
const LEAST_RUNS = 8;
/** Formats whose runs take less are not sent: q8_0 took as long with two threads, e0m4 longer, q4_k 0.55 of the time. */
const SLOW_MS = 15;
/** Beyond these the calling thread, which reads, compares and writes, is what they wait for. */
const MOST_THREADS = 4;

interface Encoder {
  readonly worker: Worker;
  /** What it was told to do last. */
  job: EncodeJob | undefined;
  /** Ends with the runs that it was sent. */
  last: Promise<unknown>;
  waiting: number;
}

/**
 * A pool.
 *
 * @param threads At most so many; default as many as there are processors.
 * @param slowMs Formats whose first run takes longer are worth a thread.
 */
export function createEncodePool(
  threads: number = navigator.hardwareConcurrency,
  slowMs: number = SLOW_MS,
): EncodePool {
  const count = Math.min(threads, MOST_THREADS);
  const slow = new Map<string, boolean>();
  let encoders: Encoder[] | undefined;
  let isLarge = false;

  function encodeHere(job: EncodeJob, values: Float32Array<ArrayBuffer>): PooledRun {
    const start = performance.now();
    const run = encodeRun(job, values);
    if (!slow.has(job.format)) slow.set(job.format, performance.now() - start > slowMs);
    return { ...run, values };
  }

  return {
    get depth() {
      return Math.max(1, 2 * (encoders?.length ?? 0));
    },
    prepare(runs) {
      isLarge = runs >= LEAST_RUNS;
    },
    async encode(job, values) {
      const isSent = count > 1 && isLarge && !job.factor && slow.get(job.format);
      if (!isSent) return encodeHere(job, values);
      encoders ??= await startEncoders(count);
      const encoder = encoders.toSorted((a, b) => a.waiting - b.waiting)[0];
      if (!encoder) return encodeHere(job, values);
      encoder.waiting++;
      const result = encoder.last.then(() => send(encoder, job, values));
      encoder.last = result.catch(() => {});
      try {
        return await result;
      } finally {
        encoder.waiting--;
      }
    },
    [Symbol.dispose]() {
      for (const { worker } of encoders ?? []) worker.terminate();
      encoders = [];
    },
  };
}

/** All of them, or none. */
async function startEncoders(count: number): Promise<Encoder[]> {
  const url = new URL("./encode_worker.ts", import.meta.url);
  if (!mayReadModule(url)) return [];
  const started: Worker[] = [];
  try {
    return await Promise.all(Array.from({ length: count }, async () => {
      const worker = new Worker(url, { type: "module" });
      started.push(worker);
      await answerOf(worker);
      return { worker, job: undefined, last: Promise.resolve(), waiting: 0 };
    }));
  } catch {
    for (const worker of started) worker.terminate();
    return [];
  }
}

async function send(
  encoder: Encoder,
  job: EncodeJob,
  values: Float32Array<ArrayBuffer>,
): Promise<PooledRun> {
  const order: RunOrder = { values, ...encoder.job !== job && { job } };
  encoder.job = job;
  const answer = answerOf(encoder.worker);
  encoder.worker.postMessage(order, [values.buffer]);
  const reply = await answer as RunReply;
  if ("problem" in reply) throw new RangeError(reply.problem);
  return reply;
}

/** The next message of a worker; its fault is ours. */
function answerOf(worker: Worker): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(`A thread that encodes has failed: ${event.message}`));
  };
  return promise;
}
