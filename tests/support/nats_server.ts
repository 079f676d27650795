// A NATS server with JetStream for a test: on a free port, with its store in a temporary folder that is kept while the
// server is stopped and started again.

import type { Need } from "./skip.ts";

const PATHS = ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"];
const PROGRAM = PATHS.find((path) => {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
});

/** For `testWith`. */
export const NATS_SERVER: Need = {
  what: "the program nats-server",
  present: PROGRAM !== undefined,
  remedy: "apt-get install nats-server",
};

/** Ports that systems give to nobody who asks for any, as all other servers of tests do. */
const PORTS = { first: 10_000, count: 20_000 };

/** A port that was free just now, and stays so as long as nobody asks for that very one. */
function freePort(): number {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    try {
      Deno.listen({ port, hostname: "127.0.0.1" }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

/** The server. */
export class NatsServer implements AsyncDisposable {
  readonly port: number = freePort();
  readonly #folder = Deno.makeTempDirSync({ prefix: "troodon-nats-" });
  readonly #lines: readonly string[];
  #child: Deno.ChildProcess | undefined;

  /** @param lines More lines of its configuration. */
  constructor(lines: readonly string[] = []) {
    this.#lines = lines;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** Starts a server, and waits until it takes connections. */
  static async start(lines: readonly string[] = []): Promise<NatsServer> {
    const server = new NatsServer(lines);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const configuration = `${this.#folder}/nats.conf`;
    await Deno.writeTextFile(
      configuration,
      [
        `listen: "127.0.0.1:${this.port}"`,
        `jetstream { store_dir: "${this.#folder}/store" }`,
        ...this.#lines,
      ].join("\n"),
    );
    this.#child = new Deno.Command(PROGRAM!, {
      args: ["-c", configuration],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    for (;;) {
      try {
        using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
        await connection.read(new Uint8Array(16));
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  /** Stops it; what lies in its store stays, unless it is to forget. */
  async stop({ forget = false } = {}): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.status;
    this.#child = undefined;
    if (forget) await Deno.remove(`${this.#folder}/store`, { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
