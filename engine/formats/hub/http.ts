// One HTTP request for a range of bytes, with every outcome told apart: partial content, a server that
// ignores ranges, a range past the end, errors that pass by themselves, and errors that do not. A request
// that sends nothing for a while is given up. Redirects are followed (Hugging Face sends files to a CDN).

import { SourceError } from "../../errors.ts";
import type { Range } from "./ranges.ts";

/** A failure worth another try; only inside formats/hub. */
export class TransientFailure extends Error {
  /** Seconds that the server asks to wait. */
  readonly retryAfter: number | undefined;

  /** Takes what went wrong, and how long the server asks to wait. */
  constructor(message: string, options: { cause?: unknown; retryAfter?: number | undefined } = {}) {
    super(message, { cause: options.cause });
    this.name = "TransientFailure";
    this.retryAfter = options.retryAfter;
  }
}

/** How requests are made. */
export interface RequestOptions {
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Ends the request with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte after which a connection is given up; 30,000 by default. */
  readonly idleMs?: number | undefined;
}

/** An answer to a request for a range. */
export interface RangeReply {
  /** `part`: the range asked for; `whole`: all of it from 0; `outside`: there is no such range. */
  readonly kind: "part" | "whole" | "outside";
  /** Length of the whole file, if the server says so. */
  readonly total: number | undefined;
  /** Identity of the content, if the server says so. */
  readonly etag: string | undefined;
  /** The bytes; chunks may be reused by the stream, so they are used up before the next is asked for. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Gives the connection up. */
  cancel(): Promise<void>;
}

const PERMANENT: Readonly<Record<number, readonly [what: string, remedy: string]>> = {
  401: ["the server wants a login", "Set HF_TOKEN to a token that may read the model"],
  403: ["the server refuses access", "Accept the model's terms on its page and set HF_TOKEN"],
  404: ["there is no such file on the server", "Check owner, name, file and revision"],
  410: ["the file was removed from the server", "Use another source"],
  451: ["the server may not give the file out", "Use another source"],
};

/**
 * Asks for bytes `[start, end)` of a URL.
 *
 * @throws {SourceError} If trying again is no use.
 * @throws {TransientFailure} If it may be.
 */
export async function requestRange(
  url: string,
  [start, end]: Range,
  options: RequestOptions = {},
): Promise<RangeReply> {
  const watch = watchIdle(options);
  let response: Response;
  try {
    response = await fetch(url, {
      headers: {
        ...options.headers,
        "range": `bytes=${start}-${end - 1}`,
        "accept-encoding": "identity",
      },
      signal: watch.signal,
    });
  } catch (error) {
    watch.stop();
    throw describeFetchError(url, { error, watched: watch.signal, signal: options.signal });
  }
  const cancel = async () => {
    watch.stop();
    await response.body?.cancel().catch(() => {});
  };
  const etag = response.headers.get("etag") ?? undefined;
  const chunks = readBody(url, { response, watch, signal: options.signal });
  if (response.status === 206) {
    const total = contentRangeTotal(response, start);
    if (total === undefined) {
      await cancel();
      throw new SourceError("the server sent another range than it was asked for", {
        file: url,
        remedy: "Use another source",
      });
    }
    return { kind: "part", total, etag, chunks, cancel };
  }
  if (response.status === 200) {
    const length = response.headers.get("content-length");
    return {
      kind: "whole",
      total: length === null ? undefined : Number(length),
      etag,
      chunks,
      cancel,
    };
  }
  await cancel();
  if (response.status === 416) {
    const total = /^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1];
    return { kind: "outside", total: total ? Number(total) : undefined, etag, chunks, cancel };
  }
  throw statusError(url, response);
}

/**
 * Asks for the headers of a URL; a redirect is not followed, since its own headers are what is wanted.
 *
 * @throws {SourceError} If trying again is no use.
 * @throws {TransientFailure} If it may be.
 */
export async function requestHead(url: string, options: RequestOptions = {}): Promise<Response> {
  const watch = watchIdle(options);
  try {
    const response = await fetch(url, {
      method: "HEAD",
      redirect: "manual",
      headers: { ...options.headers },
      signal: watch.signal,
    });
    await response.body?.cancel();
    if (response.status >= 400) throw statusError(url, response);
    return response;
  } catch (error) {
    throw describeFetchError(url, { error, watched: watch.signal, signal: options.signal });
  } finally {
    watch.stop();
  }
}

/**
 * Asks for a small document, whole, with its Link header.
 *
 * @throws {SourceError} If trying again is no use.
 * @throws {TransientFailure} If it may be.
 */
export async function requestPage(
  url: string,
  options: RequestOptions = {},
): Promise<{ readonly bytes: Uint8Array; readonly link: string | null }> {
  const watch = watchIdle(options);
  try {
    const response = await fetch(url, { headers: { ...options.headers }, signal: watch.signal });
    if (!response.ok) {
      await response.body?.cancel();
      throw statusError(url, response);
    }
    return { bytes: await response.bytes(), link: response.headers.get("link") };
  } catch (error) {
    throw describeFetchError(url, { error, watched: watch.signal, signal: options.signal });
  } finally {
    watch.stop();
  }
}

/** Error of an answer that is neither a success nor a redirect. */
function statusError(url: string, response: Response): Error {
  const { status } = response;
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const retryAfter = secondsToWait(response.headers.get("retry-after"));
    return new TransientFailure(`the server answers ${status}`, { retryAfter });
  }
  const [what, remedy] = PERMANENT[status] ??
    ["the server does not give the file", "Check the address"];
  const cause = status === 404 || status === 410 ? new Deno.errors.NotFound(what) : undefined;
  return new SourceError(`${what} (${status})`, { file: url, remedy, cause });
}

/** What Retry-After asks for, a number of seconds or a date; undefined if it asks for nothing. */
export function secondsToWait(header: string | null, now: number = Date.now()): number | undefined {
  const text = header?.trim() ?? "";
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : (Date.parse(text) - now) / 1000;
  return seconds > 0 ? seconds : undefined;
}

function contentRangeTotal(response: Response, start: number): number | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  if (!match || Number(match[1]) !== start) return undefined;
  return Number(match[3]);
}

interface Watch {
  readonly signal: AbortSignal;
  /** A sign of life. */
  touch(): void;
  stop(): void;
}

function watchIdle({ signal, idleMs = 30_000 }: RequestOptions): Watch {
  const controller = new AbortController();
  const giveUp = () =>
    controller.abort(new TransientFailure(`no data came for ${Math.round(idleMs / 1000)} s`));
  let timer = setTimeout(giveUp, idleMs);
  return {
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
    touch() {
      clearTimeout(timer);
      timer = setTimeout(giveUp, idleMs);
    },
    stop: () => clearTimeout(timer),
  };
}

async function* readBody(
  url: string,
  { response, watch, signal }: {
    readonly response: Response;
    readonly watch: Watch;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<Uint8Array> {
  if (!response.body) return watch.stop();
  try {
    for await (const chunk of response.body) {
      watch.touch();
      yield chunk;
    }
  } catch (error) {
    throw describeFetchError(url, { error, watched: watch.signal, signal });
  } finally {
    watch.stop();
  }
}

function describeFetchError(
  url: string,
  { error, watched, signal }: {
    readonly error: unknown;
    readonly watched: AbortSignal;
    readonly signal: AbortSignal | undefined;
  },
): unknown {
  if (signal?.aborted) return signal.reason;
  if (watched.aborted) return watched.reason;
  if (!(error instanceof TypeError)) return permissionError(url, error) ?? error;
  return new TransientFailure(`the connection failed (${error.message})`, { cause: error });
}

/** The error for an address that Deno may not reach; undefined for what went wrong otherwise. */
export function permissionError(url: string, error: unknown): SourceError | undefined {
  if (!(error instanceof Deno.errors.NotCapable)) return undefined;
  const host = /"([^"]+)"/.exec(error.message)?.[1] ?? new URL(url).host;
  return new SourceError(`Deno may not reach ${host}`, {
    file: url,
    remedy: `Run with --allow-net=${host}, or fetch the file by other means and give its path`,
    cause: error,
  });
}
