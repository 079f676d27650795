// Encodes runs of rows on several threads, which is most of the work of `quantize`. A run is sent to the worker that
// has been idle longest; results are taken in the order of the rows, so that what is written and summed up does not
// depend on threads. Workers start with the first tensor that is worth it. Where none may be started (they are
// modules of their own, and need permission to read them) the calling thread does it all. It also does all that GPTQ
// rounds: a factor of columns² is too large for a copy a thread, and V8 takes twice as long to round with one in shared
// memory (654 ms became 1283 for 128 rows of 1,024).

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
  /** Starts the workers unless they run; called before a tensor of so many runs. */
  prepare(runs: number): Promise<void>;
  [Symbol.dispose](): void;
}

/** A worker takes some 30 MB and as many milliseconds to start: few runs are done sooner without. */
const LEAST_RUNS = 8;
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

/** A pool of at most so many threads; default as many as there are processors. */
export function createEncodePool(threads: number = navigator.hardwareConcurrency): EncodePool {
  const count = Math.min(threads, MOST_THREADS);
  let encoders: Encoder[] = [];
  let isTried = count < 2;
  return {
    get depth() {
      return Math.max(1, 2 * encoders.length);
    },
    async prepare(runs) {
      if (isTried || runs < LEAST_RUNS) return;
      isTried = true;
      encoders = await startEncoders(count);
    },
    async encode(job, values) {
      const encoder = encoders.toSorted((a, b) => a.waiting - b.waiting)[0];
      if (!encoder || job.factor) return { ...encodeRun(job, values), values };
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
      for (const { worker } of encoders) worker.terminate();
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
