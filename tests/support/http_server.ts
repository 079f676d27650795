// A server of a scripted engine, or of another one, for the time of a test.

import { type App, createApp } from "../../engine/serve/http/app.ts";
import type { AppOptions, LogEntry } from "../../engine/serve/http/app_options.ts";
import { ScriptedEngine } from "./scripted_engine.ts";
import type { Need } from "./skip.ts";

/** For tests that ask by curl. */
export const CURL: Need = { what: "curl", present: hasCurl(), remedy: "apt-get install curl" };

function hasCurl(): boolean {
  try {
    return new Deno.Command("curl", { args: ["--version"] }).outputSync().success;
  } catch {
    return false;
  }
}

/** What a test has of a server. */
export interface TestServer {
  readonly app: App;
  readonly engine: ScriptedEngine;
  readonly log: LogEntry[];
  /** Asks without a socket. */
  readonly ask: (path: string, body?: unknown, init?: RequestInit) => Promise<Response>;
}

/** A server without a socket. */
export async function testServer(
  engine: ScriptedEngine = new ScriptedEngine(),
  options: Partial<AppOptions> = {},
): Promise<TestServer> {
  const log: LogEntry[] = [];
  const app = await createApp({ engine, log: (entry) => log.push(entry), ...options });
  const ask = async (path: string, body?: unknown, init: RequestInit = {}) =>
    await app.fetch(
      new Request(`http://localhost${path}`, {
        ...body !== undefined && {
          method: "POST",
          body: typeof body === "string" || body instanceof Uint8Array
            ? body as BodyInit
            : JSON.stringify(body),
        },
        ...init,
      }),
    );
  return { app, engine, log, ask };
}

/** Serves on a port of its own while `use` runs. */
export async function withServer(
  { fetch }: Pick<App, "fetch">,
  use: (address: string, port: number) => Promise<void>,
): Promise<void> {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, fetch);
  try {
    const { port } = server.addr;
    await use(`http://127.0.0.1:${port}`, port);
  } finally {
    await server.shutdown();
  }
}

/** Data of server-sent events, each as JSON but the last word. */
export async function eventsOf(response: Response): Promise<unknown[]> {
  const text = await response.text();
  if (!text.endsWith("\n\n")) throw new Error(`does not end with a blank line: ${text}`);
  return text.trimEnd().split("\n\n").map((block) => {
    const data = block.split("\n").filter((line) => line.startsWith("data: "))
      .map((line) => line.slice(6)).join("\n");
    return data === "[DONE]" ? data : JSON.parse(data);
  });
}
