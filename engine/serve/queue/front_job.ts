// A job as its front has it: what is wanted, where its ticket lies, the attempt that is under way, and what has come of
// it. Knows nothing of NATS: the engine (queue_engine.ts) brings frames and asks for what to say.

import type { AnswerEvent } from "../engine.ts";
import { JobError } from "../job_error.ts";
import { ContinuedAnswer } from "./continued_answer.ts";
import {
  type AttemptMessage,
  decodeMessage,
  decodeResult,
  encodeMessage,
  joined,
  type QueuedWork,
  readFrame,
} from "./wire.ts";

/** A worker that is at a job. */
export interface Attempt {
  readonly id: string;
  readonly worker: string;
  /** What it is to do. */
  readonly body: Uint8Array;
  /** In pieces of so many bytes. */
  readonly chunkSize: number;
  /** It is heard of so often, in milliseconds. */
  readonly beatMs: number;
  /** When it was last heard of; by the clock of the front. */
  heardAt: number;
  /** Frames that have come, without a gap. */
  received: number;
  /** Up to which frame they were asked for again. */
  askedFrom: number;
  readonly pieces: Uint8Array[];
}

/** A job and its outcome. */
export class FrontJob {
  readonly id: string;
  readonly model: string;
  readonly work: QueuedWork;
  readonly prefixes: readonly string[];
  /** Place of its ticket in the stream, once it is there, and whose ticket it is if not everybody's. */
  ticket: { readonly sequence: number; readonly worker: string | undefined } | undefined;
  attempt: Attempt | undefined;
  /** A ticket is on its way to the queue. */
  isMoving = false;
  /** How often somebody began. */
  begun = 0;
  /** How many tickets it has had. */
  tickets = 0;
  /** Since when nobody is there to take it. */
  aloneSince: number | undefined;
  readonly #answer = new ContinuedAnswer();
  readonly #events: AnswerEvent[] = [];
  readonly #outcome = Promise.withResolvers<unknown>();
  #isOver = false;
  #error: unknown;
  #wake: (() => void) | undefined;

  constructor(
    { id, model, work, prefixes }: Pick<FrontJob, "id" | "model" | "work" | "prefixes">,
  ) {
    this.id = id;
    this.model = model;
    this.work = work;
    this.prefixes = prefixes;
    // Who wants it looks at it, or has left.
    this.#outcome.promise.catch(() => {});
  }

  /** Whether it has its end. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Result of a call. */
  get result(): Promise<unknown> {
    return this.#outcome.promise;
  }

  /** A worker begins; what was given before is forced upon it. */
  begin(
    { now, ...known }: Pick<Attempt, "id" | "worker" | "beatMs" | "chunkSize"> & {
      readonly now: number;
    },
  ): Attempt {
    this.begun++;
    this.aloneSince = undefined;
    this.#answer.restart();
    const body = encodeMessage(this.#workNow());
    return this.attempt = {
      ...known,
      ...{ body, heardAt: now, received: 0, askedFrom: -1, pieces: [] },
    };
  }

  /**
   * Takes a frame of the present attempt.
   *
   * @returns From which frame they have to come again, if one is missing.
   */
  take(frame: Uint8Array, attempt: Attempt): number | undefined {
    const read = readFrame(frame);
    if (!read || read.number < attempt.received) return undefined;
    if (read.number > attempt.received) {
      if (attempt.askedFrom === attempt.received) return undefined;
      return attempt.askedFrom = attempt.received;
    }
    attempt.received++;
    // The bytes are the connection's.
    attempt.pieces.push(read.isLast && attempt.pieces.length === 0 ? read.body : read.body.slice());
    if (read.isLast) this.#tell(joined(attempt.pieces.splice(0)));
    return undefined;
  }

  /** Ends it, with an error unless it is wanted no more. */
  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#outcome.reject(error ?? new JobError({ status: 503, message: "The job was given up" }));
    this.#wake?.();
  }

  /** What is told of an answer, as it comes. */
  async *events(): AsyncGenerator<AnswerEvent, void, void> {
    for (;;) {
      if (this.#events.length > 0) {
        yield this.#events.shift()!;
      } else if (this.#isOver) {
        if (this.#error !== undefined) throw this.#error;
        return;
      } else {
        await new Promise<void>((resolve) => this.#wake = resolve);
      }
    }
  }

  #workNow(): QueuedWork {
    const { work } = this, forced = this.#answer.ids;
    if (work.kind !== "answer" || forced.length === 0) return work;
    const { job } = work;
    return { kind: "answer", job: { ...job, options: { ...job.options, forced } } };
  }

  #tell(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const decode = this.work.kind === "call" ? decodeResult : decodeMessage;
    const message = decode<AttemptMessage>(bytes);
    if ("failure" in message) return this.end(new JobError(message.failure));
    if ("event" in message) {
      try {
        const event = this.#answer.take(message.event);
        if (event) this.#events.push(event);
        this.#wake?.();
      } catch (error) {
        this.end(error);
      }
      return;
    }
    if ("result" in message) this.#outcome.resolve(message.result);
    this.end();
  }
}
