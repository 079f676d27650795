// A worker's attempt at a job: asks the front for the job, has it computed, and sends what comes of it in frames, which it
// keeps until the front has them all.

import type { Engine, EngineCalls } from "../engine.ts";
import { failureOf, JobError } from "../job_error.ts";
import { type NatsLink, sleep } from "./nats_link.ts";
import {
  type AttemptMessage,
  type BeginReply,
  decodeMessage,
  encodeMessage,
  type FrameReply,
  framesOf,
  type FrontQuestion,
  joined,
  type QueuedWork,
  SUBJECTS,
  type Ticket,
} from "./wire.ts";

/** What an attempt needs. */
export interface AttemptOptions {
  readonly id: string;
  readonly worker: string;
  readonly ticket: Ticket;
  readonly engine: Engine;
  readonly link: NatsLink;
}

/**
 * What becomes of a ticket: `drop`, its job is done, or nobody wants it; `return`, another worker shall try; `wait`, another
 * one may still be at it; `leave`, the front sees to it.
 */
export type Fate = "drop" | "return" | "wait" | "leave";

const ASK_MS = 2_000;
/** Questions that nobody answers, while the server is there, until the front is taken for gone. */
const MOST_SILENCE = 5;
const PAUSE_MS = 200;
const ENVELOPE = 1024;

/** Codes of failures that say that the engine has ended, in the middle of its jobs. */
const ENDS_OF_ENGINES: readonly (string | undefined)[] = ["worker_died", "closing"];

/** What goes wrong when a front is gone. */
class FrontGone extends Error {}

/** One job, once. */
export class Attempt {
  readonly id: string;
  readonly ticket: Ticket;
  /** Whether the front knows of it. */
  hasBegun = false;
  /** How often the front gave no sign in turn. */
  silence = 0;
  readonly #options: AttemptOptions;
  readonly #leave = new AbortController();
  readonly #frames: Uint8Array[] = [];
  #fate: Fate | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.id = options.id;
    this.ticket = options.ticket;
  }

  /** Ends it at the next step. The front sees to the ticket: nobody wants the job any more, or another worker has it. */
  cancel(): void {
    this.#fate ??= "leave";
    this.#leave.abort();
  }

  /** Ends it at the next step: its front is gone. */
  abandon(): void {
    this.#fate ??= "drop";
    this.#leave.abort();
  }

  /** Ends it at the next step; another worker is to do it. */
  giveBack(): void {
    this.#fate ??= "return";
    this.#leave.abort();
  }

  /** Sends frames again. */
  resend(from: number): void {
    const { link } = this.#options;
    if (!link.isUp) return;
    const { connection } = link.use();
    for (const frame of this.#frames.slice(from)) connection.publish(this.#subject, frame);
  }

  /** Does the job; never throws. */
  async run(): Promise<Fate> {
    try {
      await this.#begin();
    } catch (error) {
      // Somebody else shall try where this one has lost its way; where the front is gone, nobody.
      this.#fate ??= error instanceof FrontGone ? "drop" : "return";
    }
    this.#fate ??= "drop";
    if (this.#fate === "return") this.#release();
    return this.#fate;
  }

  /** So that who gets the ticket next need not wait until this one has been silent. */
  #release(): void {
    const { ticket: { front, job }, id: attempt } = this, { link } = this.#options;
    if (!this.hasBegun || !link.isUp) return;
    const question: FrontQuestion = { ask: "release", job, attempt };
    link.use().connection.publish(SUBJECTS.front(front), encodeMessage(question));
  }

  async #begin(): Promise<void> {
    const { job } = this.ticket, { worker } = this.#options;
    const begin = decodeMessage<BeginReply>(
      await this.#ask({ ask: "begin", job, attempt: this.id, worker }),
    );
    if (begin.state === "busy") this.#fate ??= "wait";
    if (begin.state !== "take") return;
    this.hasBegun = true;
    await this.#work(begin.chunks);
  }

  get #subject(): string {
    const { front, job } = this.ticket;
    return SUBJECTS.frames({ front, job, attempt: this.id });
  }

  async #work(chunks: number): Promise<void> {
    const { job } = this.ticket;
    const pieces: Uint8Array[] = [];
    for (let index = 0; index < chunks; index++) {
      const piece = await this.#ask({ ask: "chunk", job, attempt: this.id, index });
      // Another attempt has begun.
      if (piece.length === 0) return this.cancel();
      pieces.push(piece);
    }
    const last = await this.#compute(decodeMessage(joined(pieces)));
    this.#leave.signal.throwIfAborted();
    await this.#finish(last);
  }

  /** @returns What is told in the end. */
  async #compute(work: QueuedWork): Promise<AttemptMessage> {
    const { engine } = this.#options, { signal } = this.#leave;
    try {
      if (work.kind === "call") {
        const { call, argument } = work;
        return {
          result: await engine.call(call, argument as EngineCalls[typeof call]["argument"], signal),
        };
      }
      for await (const event of engine.answer(work.job, signal)) {
        if (signal.aborted) break;
        this.#send({ event });
      }
      return { done: true };
    } catch (error) {
      const failure = failureOf(error);
      // Not a fault of the job: another worker goes on.
      if (ENDS_OF_ENGINES.includes(failure.code)) throw error;
      return { failure };
    }
  }

  /** Puts a message into frames, and sends those that are not held back. */
  #send(message: AttemptMessage, { isHeld = false } = {}): void {
    const { link } = this.#options, from = this.#frames.length;
    const size = link.maxPayload - ENVELOPE;
    this.#frames.push(...framesOf(encodeMessage(message), { from, size }));
    if (!isHeld) this.resend(from);
  }

  // The last message is sent until the front says that it has everything.
  async #finish(message: AttemptMessage): Promise<void> {
    const from = this.#frames.length;
    this.#send(message, { isHeld: true });
    for (let next = from;;) {
      for (const frame of this.#frames.slice(next, -1)) this.#publish(frame);
      const { received } = decodeMessage<FrameReply>(
        await this.#request(this.#subject, this.#frames.at(-1)!),
      );
      if (received < 0 || received >= this.#frames.length) return;
      next = received;
    }
  }

  #publish(frame: Uint8Array): void {
    const { link } = this.#options;
    if (link.isUp) link.use().connection.publish(this.#subject, frame);
  }

  #ask(question: FrontQuestion): Promise<Uint8Array> {
    return this.#request(SUBJECTS.front(this.ticket.front), encodeMessage(question));
  }

  /** Asks until there is an answer. @throws {FrontGone} If nobody is there who could give one, or it is cancelled. */
  async #request(subject: string, payload: Uint8Array): Promise<Uint8Array> {
    const { link } = this.#options, { signal } = this.#leave;
    for (let silence = 0; silence < MOST_SILENCE && !signal.aborted;) {
      await link.whenUp();
      try {
        const { connection } = link.use();
        return (await connection.request(subject, payload, { timeout: ASK_MS })).data;
      } catch (error) {
        // The server went away in between, which is no silence of the front.
        if (!(error instanceof JobError) && link.isUp) silence++;
        await sleep(PAUSE_MS, signal);
      }
    }
    throw new FrontGone();
  }
}
