// A connection to NATS that is there or is not: it is tried again for ever, says when that changes, and what is done when
// it comes (streams, consumers) is done again whenever it comes back. The packages are imported here and nowhere else.

import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { ConnectionOptions, Msg, NatsConnection } from "@nats-io/transport-node";
import { unescaped } from "../../percent.ts";
import { JobError } from "../job_error.ts";
import { importNpm } from "../../npm_packages.ts";

/** NATS, while it is there. */
export interface Nats {
  readonly connection: NatsConnection;
  readonly stream: JetStreamClient;
  readonly manager: JetStreamManager;
}

/** Options of a link. */
export interface NatsLinkOptions {
  /** `nats://host:4222`, with `user:password@` or `token@` in front of the host; `tls://` for TLS. */
  readonly url: string;
  /** By which the server lists this client. */
  readonly name: string;
  /** Done whenever the server comes; the link is up when it is done. Subscriptions are still there when it comes back. */
  readonly onUp: (nats: Nats) => Promise<void>;
  /** Told what changes, in a sentence. */
  readonly notice: (message: string) => void;
}

const FIRST_WAIT = 250, LONGEST_WAIT = 2_000;
const RETRY_SECONDS = 2;
const DEFAULT_PAYLOAD = 2 ** 20;

/** A connection that comes and goes. */
export class NatsLink implements AsyncDisposable {
  readonly #options: NatsLinkOptions;
  /** The server without what is secret. */
  readonly place: string;
  readonly #closing = new AbortController();
  readonly #connecting: Promise<void>;
  #nats: Nats | undefined;
  #isUp = false;
  /** Counts connections: what was set up on one that is gone again is nothing. */
  #epoch = 0;
  #up = Promise.withResolvers<void>();
  /** What it last complained of. */
  #complaint = "";

  /** @throws {TypeError} If the URL is none of NATS. */
  constructor(options: NatsLinkOptions) {
    this.#options = options;
    const server = natsServer(options.url);
    this.place = server.servers;
    this.#connecting = this.#connect(server);
  }

  /** Whether the server is there, and all is set up. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** NATS. @throws {JobError} If it is not there. */
  use(): Nats {
    if (this.#isUp) return this.#nats!;
    throw new JobError({
      ...{ status: 503, code: "queue_down", retryAfter: RETRY_SECONDS },
      message: `The queue is not there: no NATS server at ${this.place}`,
    });
  }

  /** Most bytes of a message. */
  get maxPayload(): number {
    return this.#nats?.connection.info?.max_payload ?? DEFAULT_PAYLOAD;
  }

  /** Resolves when the server is there, or the link is closed. */
  whenUp(): Promise<void> {
    return this.#isUp || this.#closing.signal.aborted ? Promise.resolve() : this.#up.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#isUp = false;
    this.#up.resolve();
    await this.#connecting;
    // Draining waits for a server; where it is gone there is nothing to wait for.
    await this.#nats?.connection.close().catch(() => {});
  }

  async #connect(server: ServerOptions): Promise<void> {
    const packages = await this.#untilDone(loadPackages);
    if (!packages) return;
    const { connect, jetstream, jetstreamManager } = packages;
    const connection = await this.#untilDone(() =>
      connect({
        ...{ ...server, name: this.#options.name, reconnect: true, maxReconnectAttempts: -1 },
        ...{ reconnectTimeWait: FIRST_WAIT, reconnectJitter: FIRST_WAIT, timeout: 5_000 },
        ...{ pingInterval: 20_000, maxPingOut: 2 },
      })
    );
    if (!connection) return;
    if (this.#closing.signal.aborted) return await connection.close();
    const open = async () => ({
      connection,
      stream: jetstream(connection),
      manager: await jetstreamManager(connection),
    });
    void this.#watch(connection, open);
    await this.#setUp(open);
  }

  /** Until it works or the link is closed; says why it does not, once for each reason. */
  async #untilDone<T>(work: () => Promise<T>): Promise<T | undefined> {
    for (let wait = FIRST_WAIT; !this.#closing.signal.aborted; wait *= 2) {
      try {
        return await work();
      } catch (error) {
        const why = error instanceof Error ? error.message || error.name : String(error);
        this.#say(`cannot use NATS at ${this.place} (${why.split("\n")[0]}): trying again`);
      }
      await sleep(Math.min(wait, LONGEST_WAIT), this.#closing.signal);
    }
    return undefined;
  }

  async #setUp(open: () => Promise<Nats>): Promise<void> {
    const epoch = ++this.#epoch;
    await this.#untilDone(async () => {
      if (epoch !== this.#epoch) return;
      this.#nats ??= await open();
      await this.#options.onUp(this.#nats);
    });
    if (epoch !== this.#epoch || this.#closing.signal.aborted) return;
    this.#isUp = true;
    this.#up.resolve();
    this.#say(`connected to NATS at ${this.place}`);
  }

  async #watch(connection: NatsConnection, open: () => Promise<Nats>): Promise<void> {
    for await (const { type } of connection.status()) {
      if (this.#closing.signal.aborted) return;
      if (type === "disconnect") {
        if (this.#isUp) this.#up = Promise.withResolvers();
        this.#isUp = false;
        this.#epoch++;
        this.#say(`NATS at ${this.place} is gone: trying again`);
      }
      if (type !== "reconnect") continue;
      void this.#setUp(open);
    }
  }

  #say(message: string): void {
    if (message === this.#complaint || this.#closing.signal.aborted) return;
    this.#complaint = message;
    this.#options.notice(message);
  }
}

async function loadPackages() {
  const { connect } = await importNpm<typeof import("@nats-io/transport-node")>(
    "@nats-io/transport-node",
  );
  const { jetstream, jetstreamManager } = await importNpm<typeof import("@nats-io/jetstream")>(
    "@nats-io/jetstream",
  );
  return { connect, jetstream, jetstreamManager };
}

/** Listens to a subject; what cannot be read is none of ours, and is left alone. */
export function listen(
  connection: NatsConnection,
  subject: string,
  { take }: { readonly take: (message: Msg) => void },
): void {
  connection.subscribe(subject, {
    callback: (error, message) => {
      if (error) return;
      try {
        take(message);
      } catch {
        // Whatever it was, the next message may be good.
      }
    },
  });
}

type ServerOptions =
  & Required<Pick<ConnectionOptions, "servers">>
  & { readonly servers: string }
  & Pick<
    ConnectionOptions,
    "user" | "pass" | "token" | "tls"
  >;

const PROTOCOLS = ["nats:", "tls:"];
const DEFAULT_PORT = "4222";

/** Where a server is, and who we are there. @throws {TypeError} If the URL is none of NATS. */
export function natsServer(url: string): ServerOptions {
  const given = URL.parse(url.includes("://") ? url : `nats://${url}`);
  if (!given || !PROTOCOLS.includes(given.protocol) || given.hostname === "") {
    // What it holds may be a password.
    throw new TypeError("Cannot use the URL of NATS: it is nats://HOST:PORT or tls://HOST:PORT");
  }
  const { hostname, port, username, password, protocol } = given;
  const [user, pass] = [username, password].map(unescaped);
  return {
    servers: `${hostname}:${port || DEFAULT_PORT}`,
    ...user && pass ? { user, pass } : user ? { token: user } : {},
    ...protocol === "tls:" && { tls: {} },
  };
}

/** Waits, or until a signal fires. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
