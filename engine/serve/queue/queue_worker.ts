// A worker: takes tickets out of the queue while it has places free, and does their jobs by an engine of its own. Says at
// every beat that it is there, which jobs it is at (so that JetStream does not give them to others) and asks their fronts
// whether they are still wanted.

import type { JsMsg } from "@nats-io/jetstream";
import type { Engine, EngineFigures, ServedModel } from "../engine.ts";
import { Attempt, type Fate } from "./attempt.ts";
import { ensureJobs, ensureModelConsumer, ensureOwnConsumer, JOBS } from "./jobs_stream.ts";
import { listen, type Nats, NatsLink, sleep } from "./nats_link.ts";
import {
  type AliveReply,
  CONSUMERS,
  decodeMessage,
  encodeMessage,
  SUBJECTS,
  type Ticket,
  type WorkerCommand,
  type WorkerStatus,
} from "./wire.ts";

/** Options of a worker. */
export interface QueueWorkerOptions {
  /** Where NATS is: `nats://host:4222`. */
  readonly url: string;
  /** Computes. It is the caller's to dispose of. */
  readonly engine: Engine;
  /** Names of its models that are to be served. */
  readonly models: readonly string[];
  /** Jobs at once. Default 8. */
  readonly places?: number;
  /** A job whose worker has been silent for so long is given to another one. Default 5000. */
  readonly ackWaitMs?: number;
  /** A ticket is given out so often at most. Default 20; fronts give jobs up earlier that kill workers. */
  readonly maxDeliver?: number;
  /** Told when NATS comes and goes, in a sentence. */
  readonly notice?: (message: string) => void;
}

const BEATS_PER_WAIT = 4;
/** A wish for a ticket is renewed so often. */
const PULL_MS = 5_000;
const PAUSE_MS = 200;
/** Beats without an answer after which a front is taken for gone. */
const MOST_SILENCE = 4;
const ASK_MS = 2_000;
/** What does not end in that time ends with the process. */
const LEAVE_MS = 3_000;
const MAX_JOBS = 10_000;

/** A ticket that was taken. */
interface Taken {
  readonly attempt: Attempt;
  /** As JetStream gave it the last time, and out of which stream. */
  message: JsMsg;
  stream: string;
}

/** Takes jobs from a queue. */
export class QueueWorker implements AsyncDisposable {
  /** By which fronts know it. */
  readonly id: string = crypto.randomUUID().slice(0, 8);
  readonly #options: Required<QueueWorkerOptions>;
  readonly #link: NatsLink;
  readonly #taken = new Map<string, Taken>();
  /** Ends of what is under way. */
  readonly #work = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #beatMs: number;
  #models: readonly ServedModel[] = [];
  #figures: EngineFigures = { models: [] };
  #count = 0;
  /** When the stream was made. */
  #stream = "";
  #isListening = false;
  #room = Promise.withResolvers<void>();

  /** @throws {TypeError} If the URL is none of NATS. */
  constructor(options: QueueWorkerOptions) {
    this.#options = {
      ...{ places: 8, ackWaitMs: 5_000, maxDeliver: 20, notice: () => {} },
      ...options,
    };
    this.#beatMs = this.#options.ackWaitMs / BEATS_PER_WAIT;
    this.#link = new NatsLink({
      ...{ url: options.url, name: `troodon worker ${this.id}`, notice: this.#options.notice },
      onUp: (nats) => this.#setUp(nats),
    });
    this.#timer = setInterval(() => void this.#beat().catch(() => {}), this.#beatMs);
  }

  /** Resolves when it takes jobs. */
  get ready(): Promise<void> {
    return this.#link.whenUp();
  }

  /** Jobs under way. */
  get running(): number {
    return this.#taken.size;
  }

  /** Takes no more jobs and waits for those under way, or until the signal fires, when others get them. */
  async drain(signal: AbortSignal): Promise<void> {
    this.#stopping.abort();
    this.#say();
    const given = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => given.resolve(), { once: true });
    if (signal.aborted) given.resolve();
    await Promise.race([Promise.all(this.#work), given.promise]);
  }

  /** Leaves at once; what is under way is given to others. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    this.#room.resolve();
    this.#say();
    for (const { attempt } of this.#taken.values()) attempt.giveBack();
    const done = new AbortController();
    void Promise.all(this.#work).then(() => done.abort());
    await sleep(LEAVE_MS, done.signal);
    if (this.#link.isUp) {
      const { manager, connection } = this.#link.use();
      await manager.consumers.delete(JOBS, CONSUMERS.own(this.id)).catch(() => {});
      await connection.flush().catch(() => {});
    }
    await this.#link[Symbol.asyncDispose]();
  }

  async #setUp({ connection, manager }: Nats): Promise<void> {
    const { models } = this.#options;
    this.#stream = await ensureJobs(manager, { maxJobs: MAX_JOBS });
    for (const model of models) await ensureModelConsumer(manager, model, this.#options);
    await ensureOwnConsumer(manager, this.id, this.#options);
    await this.#look();
    if (!this.#isListening) {
      listen(connection, SUBJECTS.worker(this.id), {
        take: ({ data }) => this.#obey(decodeMessage(data)),
      });
      listen(connection, SUBJECTS.hello, { take: () => this.#say() });
      for (const name of [CONSUMERS.own(this.id), ...models.map(CONSUMERS.any)]) {
        void this.#pull(name);
      }
      this.#isListening = true;
    }
    connection.publish(SUBJECTS.status, encodeMessage(this.#status()));
    await connection.flush();
  }

  // A ticket at a time while there is a place. Several wishes for the last place may be granted at once; then the
  // engine lets a job wait for one.
  async #pull(consumer: string): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (this.#taken.size >= this.#options.places) {
        await this.#room.promise;
        continue;
      }
      await this.#link.whenUp();
      try {
        const { stream } = this.#link.use();
        const message = await (await stream.consumers.get(JOBS, consumer)).next({
          expires: PULL_MS,
        });
        if (message) this.#take(message);
      } catch {
        // The link says what is wrong.
        await sleep(PAUSE_MS, signal);
      }
    }
  }

  #take(message: JsMsg): void {
    if (this.#stopping.signal.aborted) return message.nak();
    const ticket = ticketOf(message), stream = this.#stream;
    if (!ticket) return message.term();
    const key = `${ticket.front} ${ticket.job}`, again = this.#taken.get(key);
    if (again) return void Object.assign(again, { message, stream });
    const attempt = new Attempt({
      ...{ ticket, engine: this.#options.engine, link: this.#link, worker: this.id },
      id: `${this.id}-${this.#count++}`,
    });
    const taken = { attempt, message, stream };
    this.#taken.set(key, taken);
    this.#say();
    const end = attempt.run().then((fate) => this.#settle(taken, fate)).finally(() => {
      this.#taken.delete(key);
      this.#work.delete(end);
      this.#room.resolve();
      this.#room = Promise.withResolvers();
      this.#say();
    });
    this.#work.add(end);
  }

  // What is said of a ticket is said of its number, which in a stream that was made anew is another one's.
  async #settle(taken: Taken, fate: Fate): Promise<void> {
    // Who leaves does not wait: a ticket that comes again is dropped by who takes it then.
    if (!this.#stopping.signal.aborted) await this.#link.whenUp();
    if (!this.#link.isUp || taken.stream !== this.#stream) return;
    if (fate === "drop") taken.message.ack();
    if (fate === "return") taken.message.nak(PAUSE_MS);
    if (fate === "wait") taken.message.nak(2 * this.#beatMs);
  }

  #obey(command: WorkerCommand): void {
    for (const { attempt } of this.#taken.values()) {
      if (attempt.id !== command.attempt) continue;
      if (command.tell === "cancel") attempt.cancel();
      else attempt.resend(command.from);
    }
  }

  async #beat(): Promise<void> {
    await this.#look().catch(() => {});
    if (!this.#link.isUp) return;
    this.#say();
    const taken = [...this.#taken.values()];
    for (const { message, stream } of taken) if (stream === this.#stream) message.working();
    const begun = taken.map(({ attempt }) => attempt).filter(({ hasBegun }) => hasBegun);
    const byFront = Map.groupBy(begun, ({ ticket }) => ticket.front);
    await Promise.all([...byFront].map(([front, own]) => this.#askFront(front, own)));
  }

  async #askFront(front: string, attempts: readonly Attempt[]): Promise<void> {
    const question = {
      ask: "alive",
      attempts: attempts.map(({ ticket, id }) => [ticket.job, id]),
    };
    try {
      const { data } = await this.#link.use().connection.request(
        SUBJECTS.front(front),
        encodeMessage(question),
        { timeout: ASK_MS },
      );
      const gone = new Set(decodeMessage<AliveReply>(data).gone);
      for (const attempt of attempts) {
        attempt.silence = 0;
        if (gone.has(attempt.id)) attempt.cancel();
      }
    } catch {
      // A front that is gone wants nothing; one that is slow, or whose server has gone, may come back.
      if (!this.#link.isUp) return;
      for (const attempt of attempts) {
        if (++attempt.silence >= MOST_SILENCE) attempt.abandon();
      }
    }
  }

  async #look(): Promise<void> {
    const { engine, models } = this.#options, { signal } = this.#stopping;
    const served = await engine.call("models", null, signal);
    this.#models = served.filter(({ name }) => models.includes(name));
    this.#figures = await engine.call("figures", null, signal);
  }

  #say(): void {
    if (!this.#link.isUp) return;
    this.#link.use().connection.publish(SUBJECTS.status, encodeMessage(this.#status()));
  }

  #status(): WorkerStatus {
    return {
      ...{ worker: this.id, places: this.#options.places, running: this.#taken.size },
      ...{ beatMs: this.#beatMs, isLeaving: this.#stopping.signal.aborted },
      ...{ models: this.#models, figures: this.#figures },
    };
  }
}

function ticketOf(message: JsMsg): Ticket | undefined {
  try {
    const { job, front } = message.json<Ticket>();
    return typeof job === "string" && typeof front === "string" ? { job, front } : undefined;
  } catch {
    return undefined;
  }
}
