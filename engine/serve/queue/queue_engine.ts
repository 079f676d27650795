// The front: an engine that computes nothing. A job becomes a ticket in the queue; a worker takes it, asks here for the job
// and sends back what comes of it (wire.ts). The front keeps a job until it has its end: when its worker dies,
// JetStream gives the ticket to the next one, and the answer goes on behind the last token that came.
//
// Who watches what: silence of the one who took a ticket is seen by JetStream, which gives it out again; tickets
// that were sent to one worker alone, and those that JetStream has lost, are seen here, at every tick of a timer.

import type { Msg } from "@nats-io/transport-node";
import { isDrawn } from "../../decode/sampling/options.ts";
import type { AnswerEvent, AnswerJob, Engine, EngineCalls, EngineFigures } from "../engine.ts";
import { JobError, type JobFailure } from "../job_error.ts";
import { FrontJob } from "./front_job.ts";
import { ensureJobs, GIVEN_UP, JOBS, queueDepth } from "./jobs_stream.ts";
import { listen, type Nats, NatsLink } from "./nats_link.ts";
import { prefixHashes } from "./prefix_hashes.ts";
import { ListeningClock } from "./listening_clock.ts";
import { Roster } from "./roster.ts";
import {
  type AliveReply,
  type BeginReply,
  decodeMessage,
  encodeMessage,
  frameAddressOf,
  type FrameReply,
  type FrontQuestion,
  type QueuedWork,
  SUBJECTS,
  type Ticket,
  type WorkerCommand,
} from "./wire.ts";

/** Options of a front. */
export interface QueueEngineOptions {
  /** Where NATS is: `nats://host:4222`. */
  readonly url: string;
  /** Told when NATS comes and goes, in a sentence. */
  readonly notice?: (message: string) => void;
  /** Most tickets in the queue; more are refused with 429. Set by who makes the stream. Default 10000. */
  readonly maxJobs?: number;
  /** A job on which so many workers have died is given up. Default 3. */
  readonly maxAttempts?: number;
  /** How long a job waits where nobody is there to do it, and an answer for a queue that is gone. Default 30000. */
  readonly patienceMs?: number;
}

const TICK_MS = 250;
/**
 * Beats of silence: up to which nobody may take an attempt over, after which one is dead whose ticket JetStream would give
 * to nobody else, and after which JetStream should have given out any ticket again.
 */
const FRESH_BEATS = 2, DEAD_BEATS = 4, LOST_BEATS = 12;
const RETRY_SECONDS = 2;
const PUBLISH_MS = 5_000;
/** JetStream's code for a stream that is full. */
const STREAM_FULL = [10077, 10167];
/** What goes around a chunk or a frame in a message. */
const ENVELOPE = 1024;

/** Sends jobs to workers through a queue. */
export class QueueEngine implements Engine {
  readonly #link: NatsLink;
  readonly #options: Required<Omit<QueueEngineOptions, "url" | "notice">>;
  readonly #id = crypto.randomUUID().slice(0, 8);
  readonly #jobs = new Map<string, FrontJob>();
  readonly #clock = new ListeningClock(TICK_MS);
  readonly #roster = new Roster(() => this.#clock.now);
  readonly #timer: ReturnType<typeof setInterval>;
  #count = 0;
  /** When the stream was made. */
  #stream = "";
  #isListening = false;
  #isClosed = false;
  #downSince: number | undefined = 0;

  /** @throws {TypeError} If the URL is none of NATS. */
  constructor({ url, notice = () => {}, ...options }: QueueEngineOptions) {
    this.#options = { maxJobs: 10_000, maxAttempts: 3, patienceMs: 30_000, ...options };
    const onUp = (nats: Nats) => this.#setUp(nats);
    this.#link = new NatsLink({ url, name: `troodon front ${this.#id}`, notice, onUp });
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Whether NATS is there. */
  get isUp(): boolean {
    return this.#link.isUp;
  }

  /** Resolves when NATS is there. */
  get ready(): Promise<void> {
    return this.#link.whenUp();
  }

  async *answer(job: AnswerJob, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void> {
    const queued = await this.#queue(job.model, { kind: "answer", job: seeded(job) }, signal);
    const leave = (): void => this.#end(queued);
    signal.addEventListener("abort", leave);
    try {
      yield* queued.events();
    } finally {
      signal.removeEventListener("abort", leave);
      this.#end(queued);
    }
  }

  async call<K extends keyof EngineCalls>(
    kind: K,
    argument: EngineCalls[K]["argument"],
    signal: AbortSignal,
  ): Promise<EngineCalls[K]["result"]> {
    // The compiler does not see that kind, argument and result go together.
    if (kind === "models") return this.#roster.models() as EngineCalls[K]["result"];
    if (kind === "figures") return await this.#figures() as EngineCalls[K]["result"];
    const { model } = argument as { readonly model: string };
    const job = await this.#queue(model, { kind: "call", call: kind, argument }, signal);
    const leave = (): void => this.#end(job, signal.reason);
    signal.addEventListener("abort", leave);
    try {
      return await job.result as EngineCalls[K]["result"];
    } finally {
      signal.removeEventListener("abort", leave);
      this.#end(job);
    }
  }

  /** Gives up what is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const job of this.#jobs.values()) {
      this.#fail(job, { status: 503, message: "The server is shutting down", code: "closing" });
    }
    if (this.#link.isUp) await this.#link.use().connection.flush().catch(() => {});
    await this.#link[Symbol.asyncDispose]();
  }

  async #setUp({ connection, manager }: Nats): Promise<void> {
    const stream = await ensureJobs(manager, this.#options);
    const isOther = stream !== this.#stream;
    this.#stream = stream;
    if (!this.#isListening) {
      const hear = (subject: string, take: (message: Msg) => void): void =>
        listen(connection, subject, { take });
      hear(SUBJECTS.front(this.#id), (message) => this.#reply(message));
      hear(
        SUBJECTS.frames({ front: this.#id, job: "*", attempt: "*" }),
        (message) => this.#takeFrame(message),
      );
      hear(SUBJECTS.status, (message) => this.#roster.note(decodeMessage(message.data)));
      hear(GIVEN_UP, (message) => this.#takeGivenUp(decodeMessage(message.data)));
      this.#isListening = true;
    }
    this.#roster.isDeaf = false;
    this.#downSince = undefined;
    for (const job of this.#jobs.values()) {
      if (job.attempt) job.attempt.heardAt = this.#clock.now;
      // It lay in a stream that is no more.
      if (isOther) job.ticket = undefined;
    }
    connection.publish(SUBJECTS.hello);
    await connection.flush();
  }

  // A job on its way.
  async #queue(model: string, work: QueuedWork, signal: AbortSignal): Promise<FrontJob> {
    signal.throwIfAborted();
    if (this.#isClosed) throw new JobError({ status: 503, message: "The server is shutting down" });
    this.#link.use();
    if (!this.#roster.serves(model)) throw new JobError(this.#nobodyServes(model));
    const prefixes = work.kind === "answer" ? prefixHashes(work.job) : [];
    const job = new FrontJob({ id: `${(this.#count++).toString(36)}`, model, work, prefixes });
    this.#jobs.set(job.id, job);
    try {
      await this.#publish(job, this.#roster.holder(prefixes));
    } catch (error) {
      this.#jobs.delete(job.id);
      throw this.#queueError(error);
    }
    return job;
  }

  async #publish(job: FrontJob, worker: string | undefined): Promise<void> {
    const ticket: Ticket = { job: job.id, front: this.#id };
    const subject = worker === undefined ? SUBJECTS.any(job.model) : SUBJECTS.own(worker);
    job.ticket = undefined;
    job.isMoving = true;
    try {
      const { seq } = await this.#link.use().stream.publish(subject, encodeMessage(ticket), {
        msgID: `${this.#id}-${job.id}-${job.tickets++}`,
        timeout: PUBLISH_MS,
      });
      job.ticket = { sequence: seq, worker };
    } finally {
      job.isMoving = false;
    }
  }

  #queueError(error: unknown): JobError {
    if (error instanceof JobError) return error;
    const code = (error as { readonly code?: number }).code ?? 0;
    const [message] = (error instanceof Error ? error.message : String(error)).split("\n");
    return new JobError(
      STREAM_FULL.includes(code)
        ? {
          status: 429,
          message: "Too many requests: the queue is full",
          retryAfter: RETRY_SECONDS,
        }
        : {
          ...{ status: 503, code: "queue_down", retryAfter: RETRY_SECONDS },
          message: `The queue at ${this.#link.place} does not take the job: ${message}`,
        },
      { cause: error },
    );
  }

  #nobodyServes(model: string): JobFailure {
    const models = this.#roster.models();
    if (models.length > 0 && !this.#roster.knows(model)) {
      const names = models.map(({ name }) => name).join(", ");
      const message = `There is no model "${model}": workers serve ${names}`;
      return { status: 404, message, param: "model", code: "model_not_found" };
    }
    return {
      ...{ status: 503, code: "no_worker", retryAfter: RETRY_SECONDS },
      message: `No worker is there that serves ${model}`,
    };
  }

  // What a worker asks.
  #reply(message: Msg): void {
    const question = decodeMessage<FrontQuestion>(message.data);
    if (question.ask === "begin") {
      message.respond(encodeMessage(this.#begin(question)));
    } else if (question.ask === "chunk") {
      const { attempt } = this.#jobs.get(question.job) ?? {};
      const at = question.index * (attempt?.chunkSize ?? 0);
      message.respond(
        attempt?.id === question.attempt
          ? attempt.body.subarray(at, at + attempt.chunkSize)
          : undefined,
      );
    } else if (question.ask === "release") {
      const { attempt } = this.#jobs.get(question.job) ?? {};
      // As if it had been silent for as long as it takes.
      if (attempt?.id === question.attempt) attempt.heardAt -= FRESH_BEATS * attempt.beatMs;
    } else if (question.ask === "alive") {
      const now = this.#clock.now;
      const gone = question.attempts.filter(([id, own]) => {
        const { attempt } = this.#jobs.get(id) ?? {};
        if (attempt?.id !== own) return true;
        attempt.heardAt = now;
        // What was asked for again may be lost, too.
        attempt.askedFrom = -1;
        return false;
      });
      const reply: AliveReply = { gone: gone.map(([, attempt]) => attempt) };
      message.respond(encodeMessage(reply));
    }
  }

  #begin(
    { job: id, attempt, worker }: FrontQuestion & { readonly ask: "begin" },
  ): BeginReply {
    const job = this.#jobs.get(id), now = this.#clock.now;
    if (!job) return { state: "gone" };
    const { attempt: other } = job;
    const isFresh = other && now - other.heardAt < FRESH_BEATS * other.beatMs;
    if (isFresh && other.worker !== worker) return { state: "busy" };
    if (job.begun >= this.#options.maxAttempts) {
      this.#giveUp(job);
      return { state: "gone" };
    }
    if (other) this.#tell(other.worker, { tell: "cancel", attempt: other.id });
    const chunkSize = this.#link.maxPayload - ENVELOPE, beatMs = this.#roster.beatMs(worker);
    const { body } = job.begin({ id: attempt, worker, beatMs, chunkSize, now });
    this.#roster.remember(worker, job.prefixes);
    return { state: "take", chunks: Math.ceil(body.length / chunkSize) };
  }

  #takeFrame(message: Msg): void {
    const { job: id, attempt: own } = frameAddressOf(message.subject);
    const job = this.#jobs.get(id), attempt = job?.attempt;
    if (!job || attempt?.id !== own) {
      const none: FrameReply = { received: -1 };
      if (message.reply) message.respond(encodeMessage(none));
      return;
    }
    attempt.heardAt = this.#clock.now;
    const from = job.take(message.data, attempt);
    if (from !== undefined) {
      this.#tell(attempt.worker, { tell: "resend", attempt: own, from });
    }
    if (message.reply) {
      const reply: FrameReply = { received: attempt.received };
      message.respond(encodeMessage(reply));
    }
  }

  // JetStream has given a ticket out as often as it may.
  #takeGivenUp({ stream_seq: sequence }: { readonly stream_seq: number }): void {
    for (const job of this.#jobs.values()) {
      if (job.ticket?.sequence === sequence) this.#giveUp(job);
    }
  }

  #giveUp(job: FrontJob): void {
    this.#fail(job, {
      ...{ status: 500, code: "worker_died" },
      message: `The job was given up: ${job.begun} workers that took it did not end it`,
    });
  }

  #fail(job: FrontJob, failure: JobFailure): void {
    this.#end(job, new JobError(failure));
  }

  /** Nobody wants it any more: its worker is told, and its ticket is taken out of the queue. */
  #end(job: FrontJob, error?: unknown): void {
    const wasOver = job.isOver;
    job.end(error);
    if (!this.#jobs.delete(job.id) || wasOver) return;
    if (job.attempt) this.#tell(job.attempt.worker, { tell: "cancel", attempt: job.attempt.id });
    this.#removeTicket(job);
  }

  /** Who is to take it finds out that it is gone, so it does not matter where this fails. */
  #removeTicket({ ticket }: FrontJob): void {
    if (!ticket || !this.#link.isUp) return;
    const { manager } = this.#link.use();
    manager.streams.deleteMessage(JOBS, ticket.sequence, false).catch(() => {});
  }

  #tell(worker: string, command: WorkerCommand): void {
    if (!this.#link.isUp) return;
    this.#link.use().connection.publish(SUBJECTS.worker(worker), encodeMessage(command));
  }

  #tick(): void {
    this.#clock.turn();
    const now = this.#clock.now, { patienceMs } = this.#options;
    if (!this.#link.isUp) {
      this.#downSince ??= now;
      this.#roster.isDeaf = true;
      if (now - this.#downSince < patienceMs) return;
      for (const job of this.#jobs.values()) {
        this.#fail(job, {
          ...{ status: 503, code: "queue_down", retryAfter: RETRY_SECONDS },
          message: `The queue at ${this.#link.place} has been gone for ${patienceMs / 1000} s`,
        });
      }
      return;
    }
    for (const job of this.#jobs.values()) this.#watch(job, now);
  }

  // Tickets that JetStream does not give out again, or not by itself.
  #watch(job: FrontJob, now: number): void {
    const { attempt, ticket } = job;
    if (job.isOver || job.isMoving) return;
    const isOwn = ticket?.worker !== undefined;
    const silence = attempt ? (now - attempt.heardAt) / attempt.beatMs : 0;
    const isLost = attempt
      ? silence > (isOwn ? DEAD_BEATS : LOST_BEATS)
      : !ticket || isOwn && !this.#roster.isAlive(ticket.worker!);
    if (isLost) return void this.#move(job);
    if (attempt && silence < DEAD_BEATS || this.#roster.serves(job.model)) {
      job.aloneSince = undefined;
      return;
    }
    job.aloneSince ??= now;
    if (now - job.aloneSince < this.#options.patienceMs) return;
    this.#fail(job, this.#nobodyServes(job.model));
  }

  // To whoever is free.
  async #move(job: FrontJob): Promise<void> {
    if (job.begun >= this.#options.maxAttempts) return this.#giveUp(job);
    this.#removeTicket(job);
    job.attempt = undefined;
    try {
      await this.#publish(job, undefined);
    } catch {
      // It has no ticket now, so the next tick tries again.
    }
  }

  async #figures(): Promise<EngineFigures> {
    const models = this.#roster.figures();
    const workers = this.#roster.alive().length;
    if (!this.#link.isUp) return { models };
    try {
      const { waiting, taken } = await queueDepth(this.#link.use().manager);
      return { models, queue: { waiting, taken, workers } };
    } catch {
      // It went while it was asked.
      return { models };
    }
  }
}

/** Every worker that has a part in a drawn answer draws the same numbers; a seed would make a greedy one drawn. */
function seeded(job: AnswerJob): AnswerJob {
  const { options } = job;
  const hasSeed = options.seed !== undefined && options.seed !== -1;
  if (hasSeed || !isDrawn({ ...options })) return job;
  // 32 bits, which every client can read.
  return { ...job, options: { ...options, seed: crypto.getRandomValues(new Uint32Array(1))[0]! } };
}
