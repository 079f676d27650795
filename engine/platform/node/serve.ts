// `Deno.serve` on node:http, as far as engine/serve/host/listen.ts uses it: requests and responses of the web platform,
// bodies as streams both ways, an orderly end.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { nodeModule } from "./node_module.ts";

const { createServer } = nodeModule<typeof import("node:http")>("node:http");
const { Readable } = nodeModule<typeof import("node:stream")>("node:stream");

type Handler = (request: Request) => Response | Promise<Response>;

interface ServeOptions {
  readonly hostname: string;
  readonly port: number;
}

function requestOf(message: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (let i = 0; i < message.rawHeaders.length; i += 2) {
    headers.append(message.rawHeaders[i]!, message.rawHeaders[i + 1]!);
  }
  const hasBody = message.method !== "GET" && message.method !== "HEAD";
  return new Request(new URL(message.url ?? "/", `http://${message.headers.host ?? "localhost"}`), {
    method: message.method ?? "GET",
    headers,
    signal,
    ...hasBody && { body: Readable.toWeb(message) as ReadableStream, duplex: "half" },
  } as RequestInit);
}

async function send(response: Response, target: ServerResponse): Promise<void> {
  target.writeHead(response.status, [...response.headers].flat());
  if (!response.body) return void target.end();
  const reader = response.body.getReader();
  target.on("close", () => void reader.cancel().catch(() => {}));
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return void target.end();
    if (!target.write(value) && !target.destroyed) {
      await new Promise<void>((resolve) => {
        target.once("drain", resolve).once("close", resolve);
      });
    }
  }
}

/**
 * Listens; unlike Deno's, to be awaited.
 *
 * @throws {Error} With the system's code, if the address cannot be had.
 */
export async function serve({ hostname, port }: ServeOptions, handler: Handler) {
  const server: Server = createServer((message, target) => {
    const ended = new AbortController();
    target.on("close", () => ended.abort());
    void Promise.resolve(handler(requestOf(message, ended.signal)))
      .then((response) => send(response, target))
      .catch(() => target.destroy());
  });
  const finished = new Promise<void>((resolve) => server.on("close", resolve));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, hostname, resolve);
  });
  const address = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeIdleConnections();
  };
  return {
    addr: { hostname: address.address, port: address.port },
    finished,
    shutdown(): Promise<void> {
      close();
      return finished;
    },
    /** Node can cut what is still open, too. */
    unref(): void {
      server.closeAllConnections();
      server.unref();
    },
  };
}
