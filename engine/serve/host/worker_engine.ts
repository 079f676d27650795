// An engine in a worker: the thread that asks stays free, whatever is computed. Jobs go over as plain data, events come
// back as they are made (messages.ts). When the worker dies, its jobs fail with 503, and the next job finds a new one.

import { makeThreadsFor } from "../../../wasm/threads.ts";
import type { AnswerEvent, AnswerJob, Engine, EngineCalls } from "../engine.ts";
import { JobError } from "../job_error.ts";
import {
  type Reply,
  type Request,
  WINDOW,
  type WorkerOpening,
  type WorkerSettings,
} from "./messages.ts";

/** Somebody who waits for replies. */
interface Job {
  take(reply: Exclude<Reply, { readonly kind: "closed" }>): void;
  fail(error: JobError): void;
}

/** A worker at work. */
interface Running {
  readonly worker: Worker;
  readonly port: MessagePort;
  readonly jobs: Map<number, Job>;
  readonly closed: PromiseWithResolvers<void>;
  /** Ends the threads that were made for it. */
  readonly endThreads: () => void;
}

/** Options besides the worker's settings. */
export interface WorkerEngineOptions {
  /** Makes a worker that speaks as messages.ts says. Default: this package's own. */
  readonly createWorker?: () => Worker;
  /** Told when a worker has died. */
  readonly onDeath?: (message: string) => void;
  /**
   * Whether the process exits as soon as this is closed: then the worker, which has nothing left to do, is left to that. One
   * that is ended takes the system's GPU libraries down, and so does the process: both at once break it off.
   */
  readonly isLast?: boolean;
}

/** Computes in a worker. */
export class WorkerEngine implements Engine {
  readonly #settings: Promise<WorkerSettings>;
  readonly #options: Required<WorkerEngineOptions>;
  #running: Running | undefined;
  #isClosed = false;
  #ids = 0;

  /** Starts the worker, whose code is read while settings may still be made. */
  constructor(
    settings: WorkerSettings | Promise<WorkerSettings>,
    options: WorkerEngineOptions = {},
  ) {
    this.#settings = Promise.resolve(settings);
    this.#options = { createWorker, onDeath: () => {}, isLast: false, ...options };
    this.#running = this.#start();
  }

  async *answer(job: AnswerJob, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void> {
    if (signal.aborted) return;
    const running = this.#get(), id = ++this.#ids;
    const inbox = new Inbox();
    const cancel = () => send(running, { kind: "cancel", id });
    running.jobs.set(id, inbox);
    try {
      send(running, { kind: "answer", id, job });
      signal.addEventListener("abort", cancel);
      for (let read = 1;; read++) {
        const event = await inbox.next();
        if (!event) return;
        if (read % (WINDOW / 2) === 0) send(running, { kind: "more", id, count: WINDOW / 2 });
        yield event;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
      // Left before the end: what still comes is for nobody.
      if (running.jobs.delete(id) && !inbox.isOver) cancel();
    }
  }

  async call<K extends keyof EngineCalls>(
    kind: K,
    argument: EngineCalls[K]["argument"],
    signal: AbortSignal,
  ): Promise<EngineCalls[K]["result"]> {
    signal.throwIfAborted();
    const running = this.#get(), id = ++this.#ids;
    const { promise, resolve, reject } = Promise.withResolvers<EngineCalls[K]["result"]>();
    const cancel = () => {
      send(running, { kind: "cancel", id });
      reject(signal.reason);
    };
    running.jobs.set(id, {
      take: (reply) =>
        reply.kind === "done"
          ? resolve(reply.result as EngineCalls[K]["result"])
          : reply.kind === "failed" && reject(new JobError(reply.failure)),
      fail: reject,
    });
    try {
      send(running, { kind: "call", id, name: kind, argument });
      signal.addEventListener("abort", cancel);
      return await promise;
    } finally {
      signal.removeEventListener("abort", cancel);
      running.jobs.delete(id);
    }
  }

  /** Ends what is under way, with errors, and the worker. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const running = this.#running;
    if (!running) return;
    send(running, { kind: "close" });
    await running.closed.promise;
    this.#end(running, new JobError(CLOSING));
  }

  #get(): Running {
    if (this.#isClosed) throw new JobError(CLOSING);
    return this.#running ??= this.#start();
  }

  #start(): Running {
    const worker = this.#createWorker();
    const { port1: port, port2 } = new MessageChannel();
    const threads = new MessageChannel();
    const running: Running = {
      ...{ worker, port, jobs: new Map(), closed: Promise.withResolvers() },
      endThreads: makeThreadsFor(threads.port1),
    };
    worker.onmessage = ({ data }: MessageEvent<readonly Reply[]>) => {
      for (const reply of data) {
        if (reply.kind === "closed") running.closed.resolve();
        else running.jobs.get(reply.id)?.take(reply);
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.#die(running, event.message);
    };
    this.#settings.then(
      (settings) => {
        const opening: WorkerOpening = { settings, port: port2, threads: threads.port2 };
        worker.postMessage(opening, [port2, threads.port2]);
      },
      // Whoever made the settings knows what is wrong with them.
      (cause) =>
        this.#end(
          running,
          new JobError({ status: 503, message: (cause as Error).message }, { cause }),
        ),
    );
    return running;
  }

  #createWorker(): Worker {
    try {
      return this.#options.createWorker();
    } catch (cause) {
      const message = `Cannot start the thread that computes: ${(cause as Error).message}`;
      throw new JobError({ status: 503, message, code: "worker_died", retryAfter: 1 }, { cause });
    }
  }

  #die(running: Running, reason: string): void {
    if (this.#running !== running) return;
    const message = `The thread that computes has died: ${reason}`;
    this.#end(running, new JobError({ status: 503, message, code: "worker_died", retryAfter: 1 }));
    this.#options.onDeath(message);
  }

  #end(running: Running, error: JobError): void {
    this.#running = undefined;
    if (!this.#isClosed || !this.#options.isLast) running.worker.terminate();
    running.endThreads();
    running.port.close();
    running.closed.resolve();
    for (const job of [...running.jobs.values()]) job.fail(error);
    running.jobs.clear();
  }
}

const CLOSING = { status: 503, message: "The server is shutting down", code: "closing" } as const;

/** Events that have come and were not read; no more than the window. */
class Inbox implements Job {
  readonly #events: AnswerEvent[] = [];
  #error: JobError | undefined;
  #wake: (() => void) | undefined;
  /** Whether nothing more will come. */
  isOver = false;

  take(reply: Exclude<Reply, { readonly kind: "closed" }>): void {
    if (reply.kind === "event") this.#events.push(reply.event);
    else this.isOver = true;
    if (reply.kind === "failed") this.#error = new JobError(reply.failure);
    this.#wake?.();
  }

  fail(error: JobError): void {
    this.isOver = true;
    this.#error = error;
    this.#wake?.();
  }

  /** The next event; undefined at the end. @throws {JobError} */
  async next(): Promise<AnswerEvent | undefined> {
    while (this.#events.length === 0 && !this.isOver) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    if (this.#events.length === 0 && this.#error) throw this.#error;
    return this.#events.shift();
  }
}

/**
 * The worker looks into its port between steps; where it rests, the second message wakes it.
 *
 * @throws {JobError} If the request is not plain data.
 */
function send({ port, worker }: Running, request: Request): void {
  try {
    port.postMessage(request);
  } catch (cause) {
    const message = `Cannot use what is no plain data: ${(cause as Error).message}`;
    throw new JobError({ status: 400, message }, { cause });
  }
  worker.postMessage(undefined);
}

function createWorker(): Worker {
  return new Worker(new URL("./worker.ts", import.meta.url), {
    type: "module",
    name: "troodon-engine",
  });
}
