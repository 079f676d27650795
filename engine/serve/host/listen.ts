// The socket of a server: it listens at once, before anybody can be answered, and closes in an orderly way.

import { ResourceError } from "../../errors.ts";

/** What answers requests. */
export interface RequestHandler {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Lets nobody in any more, and resolves when all who are in have their answers. */
  drain(): Promise<void>;
}

/** A socket that is listened to. */
export interface Listener {
  /** Where, for people and clients: `http://127.0.0.1:8080`. */
  readonly url: string;
  /**
   * Stops accepting, and lets those under way finish.
   *
   * @param limitMs Most time for that.
   * @returns Whether all have finished in time.
   */
  drain(limitMs: number): Promise<boolean>;
  /** Waits a second for what was answered to go out; what is still open then keeps no process alive. */
  close(): Promise<void>;
}

/** Time for the last bytes of answers to go out. */
const FLUSH_MS = 1000;

/**
 * Listens. Requests that come before the handler is made wait for it.
 *
 * @throws {ResourceError} If the address cannot be had, with what to do.
 */
export async function listen(
  handler: Promise<RequestHandler>,
  { hostname, port }: { readonly hostname: string; readonly port: number },
): Promise<Listener> {
  const server = await open(
    { hostname, port },
    async (request) => await (await handler).fetch(request),
  );
  const { addr } = server;
  return {
    url: `http://${
      addr.hostname.includes(":") ? `[${addr.hostname}]` : addr.hostname
    }:${addr.port}`,
    async drain(limitMs) {
      void server.shutdown();
      return await inTime(handler.then((one) => one.drain()), limitMs);
    },
    async close() {
      // Connections may stay open as long as their clients like, and Deno has no way to cut them after `shutdown`: a signal
      // of Deno.serve throws then where nobody can catch it.
      void server.shutdown();
      if (!await inTime(server.finished, FLUSH_MS)) server.unref();
    },
  };
}

async function open(
  options: Deno.ServeTcpOptions,
  handle: (request: Request) => Promise<Response>,
): Promise<Deno.HttpServer<Deno.NetAddr>> {
  try {
    // Deno listens within the call; on Node (engine/platform/node/serve.ts) it is awaited.
    return await Deno.serve({ ...options, onListen: () => {} }, handle);
  } catch (cause) {
    throw new ResourceError(
      `cannot listen at ${options.hostname}, port ${options.port}: ${reasonOf(cause)}`,
      { remedy: "Take another --port, or 0 for any that is free", cause },
    );
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Deno.errors.AddrInUse) return "it is in use";
  if (error instanceof Deno.errors.AddrNotAvailable) return "this machine has no such address";
  if (error instanceof Deno.errors.PermissionDenied) return "the system does not permit it";
  return (error as Error).message;
}

/** Whether something comes to its end in time. */
async function inTime(work: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([work.then(() => true, () => true), promise]);
  } finally {
    clearTimeout(timer);
  }
}
