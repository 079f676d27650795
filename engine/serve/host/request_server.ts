// The worker's side: requests in, replies out, an engine behind. It knows neither worker nor port, so it can be tested
// without either.

import { pause } from "../../pause.ts";
import type { Engine } from "../engine.ts";
import { failureOf } from "../job_error.ts";
import { type Reply, type Request, WINDOW } from "./messages.ts";

interface Job {
  readonly abort: AbortController;
  /** Events that the reader can take. */
  credit: number;
  /** Goes on when there is credit again. */
  resume: (() => void) | undefined;
}

/** Answers requests. */
export class RequestServer {
  readonly #engine: Engine;
  readonly #post: (replies: readonly Reply[]) => void;
  readonly #jobs = new Map<number, Job>();
  #replies: Reply[] = [];
  #isClosing = false;

  /** @param post Takes all replies of a turn. */
  constructor(engine: Engine, post: (replies: readonly Reply[]) => void) {
    this.#engine = engine;
    this.#post = post;
  }

  /** Takes a request; nothing is thrown, what fails is replied. */
  receive(request: Request): void {
    switch (request.kind) {
      case "answer":
        return void this.#answer(request);
      case "call":
        return void this.#call(request);
      case "close":
        return void this.#close();
    }
    const job = this.#jobs.get(request.id);
    if (!job) return; // It has ended meanwhile.
    if (request.kind === "more") job.credit += request.count;
    else job.abort.abort(new DOMException("The reader has left", "AbortError"));
    job.resume?.();
  }

  async #answer({ id, job: asked }: Request & { readonly kind: "answer" }): Promise<void> {
    const job = this.#open(id);
    const { signal } = job.abort;
    try {
      for await (const event of this.#engine.answer(asked, signal)) {
        this.#reply({ kind: "event", id, event });
        job.credit--;
        while (job.credit <= 0 && !signal.aborted && !this.#isClosing) {
          await new Promise<void>((resolve) => job.resume = resolve);
        }
      }
      this.#reply({ kind: "done", id });
    } catch (error) {
      this.#reply({ kind: "failed", id, failure: failureOf(error) });
    } finally {
      this.#jobs.delete(id);
    }
  }

  async #call({ id, name, argument }: Request & { readonly kind: "call" }): Promise<void> {
    const { signal } = this.#open(id).abort;
    try {
      this.#reply({ kind: "done", id, result: await this.#engine.call(name, argument, signal) });
    } catch (error) {
      this.#reply({ kind: "failed", id, failure: failureOf(error) });
    } finally {
      this.#jobs.delete(id);
    }
  }

  async #close(): Promise<void> {
    this.#isClosing = true;
    const closed = this.#engine[Symbol.asyncDispose]();
    // Who waits for its reader hears of it, too.
    for (const { resume } of this.#jobs.values()) resume?.();
    await closed;
    this.#reply({ kind: "closed" });
  }

  #open(id: number): Job {
    const job = { abort: new AbortController(), credit: WINDOW, resume: undefined };
    this.#jobs.set(id, job);
    return job;
  }

  #reply(reply: Reply): void {
    this.#replies.push(reply);
    if (this.#replies.length === 1) void this.#flush();
  }

  /** Behind all that this turn has to say. */
  async #flush(): Promise<void> {
    await pause();
    const replies = this.#replies;
    this.#replies = [];
    this.#post(replies);
  }
}
