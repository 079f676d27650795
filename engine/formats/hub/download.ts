// Fetches one URL into one file: several ranges at once, each tried again where it broke off, resumable
// across runs, verified and moved into place at the end. A server that ignores ranges gives one stream
// from the start. Content that changes under way (etag or length) restarts the file: pieces of two
// versions never mix.

import { SourceError } from "../../errors.ts";
import {
  checkResult,
  describeWriteError,
  type Expected,
  hashFile,
  type OpenOutput,
  openOutput,
} from "./output.ts";
import {
  createPartial,
  type Partial,
  partialPath,
  removePartial,
  resumePartial,
} from "./partial.ts";
import { type RangeReply, type RequestOptions, requestRange, TransientFailure } from "./http.ts";
import type { Range } from "./ranges.ts";
import { explainFailure, retry, type RetryOptions } from "./retry.ts";

/** What to fetch, where to, and how. */
export interface DownloadOptions extends RequestOptions, RetryOptions {
  /** Address of the file. */
  readonly url: string;
  /** Path that it gets; its folder must exist. */
  readonly target: string;
  /** What it must be. */
  readonly expected?: Expected | undefined;
  /** Called whenever bytes have been written; `received` includes earlier runs. */
  readonly onBytes?: ((received: number, total: number | undefined) => void) | undefined;
  /** Called while the finished file is hashed. */
  readonly onVerify?: ((done: number, total: number) => void) | undefined;
  /** Ranges fetched at once; 4 by default. */
  readonly connections?: number | undefined;
  /** Bytes of one range; 8 MiB by default. */
  readonly rangeBytes?: number | undefined;
  /** Opens the file to write; tests put a full disk here. */
  readonly openOutput?: OpenOutput | undefined;
}

/** A finished download. */
export interface Downloaded {
  /** Length of the file. */
  readonly bytes: number;
  /** Hexadecimal, lower case. */
  readonly sha256: string;
}

const SAVE_EVERY_MS = 1000;
const MAX_RESTARTS = 3;

/** The content on the server is not the one that was begun. */
const CHANGED = Symbol("changed");

/**
 * Downloads a file; on failure the partial file stays and the next call goes on with it, unless its bytes
 * are wrong.
 *
 * @throws {SourceError} If the file cannot be had or is not the expected one.
 * @throws {ResourceError} If the disk is full.
 */
export async function downloadFile(options: DownloadOptions): Promise<Downloaded> {
  const { url, target } = options;
  const open = options.openOutput ?? openOutput;
  for (let restarts = 0; restarts <= MAX_RESTARTS; restarts++) {
    const begun = restarts === 0 ? resumePartial(target, { url, open }) : undefined;
    const isWhole = begun?.missing().length === 0;
    if (isWhole) begun.close();
    if (!isWhole && await attempt(options, begun, open) === CHANGED) {
      removePartial(target);
      continue;
    }
    const result = await finish(options, begun !== undefined);
    if (result) return result;
  }
  throw new SourceError("the file changed on the server during every try", {
    file: url,
    remedy: "Try again later",
  });
}

/** One pass: everything that is missing, or `CHANGED`. */
async function attempt(
  options: DownloadOptions,
  begun: Partial | undefined,
  open: OpenOutput,
): Promise<void | typeof CHANGED> {
  const { url, rangeBytes = 8 << 20 } = options;
  let partial = begun;
  try {
    const [start, end] = begun?.missing()[0] ?? [0, rangeBytes];
    const first: Range = [start, Math.min(end, start + rangeBytes)];
    const reply = await retry(() => requestRange(url, first, options), options);
    if (reply.kind === "outside") return begun ? CHANGED : writeEmpty(options, reply, open);
    if (reply.kind === "whole") {
      begun?.close();
      return await fetchWhole(options, reply, open);
    }
    try {
      partial = takePart(options, { reply, begun, open });
    } catch (error) {
      await reply.cancel();
      throw error;
    }
    if (partial) return await fetchRanges(options, partial, reply);
    await reply.cancel();
    return CHANGED;
  } catch (error) {
    const kept = partial ? `; ${partial.received()} of ${partial.size} bytes are kept` : "";
    throw explainFailure(error, { url, kept });
  } finally {
    begun?.close();
    partial?.close();
  }
}

/** An empty file has no range at all. */
function writeEmpty({ target, url }: DownloadOptions, reply: RangeReply, open: OpenOutput): void {
  if (reply.total === 0) {
    return createPartial(target, { content: { url, etag: reply.etag, size: 0 }, open }).close();
  }
  throw new SourceError("the server has no such range", { file: url, remedy: "Try again later" });
}

/** The file that the reply belongs to: the one that was begun, a new one, or undefined if they differ. */
function takePart(
  { url, target, expected }: DownloadOptions,
  { reply: { total, etag }, begun, open }: {
    readonly reply: RangeReply;
    readonly begun: Partial | undefined;
    readonly open: OpenOutput;
  },
): Partial | undefined {
  const size = total!;
  if (expected?.bytes !== undefined && size !== expected.bytes) {
    begun?.close();
    removePartial(target);
    checkResult(url, { found: { bytes: size, sha256: "" }, expected: { bytes: expected.bytes } });
  }
  if (begun) return size === begun.size && etag === begun.etag ? begun : undefined;
  return createPartial(target, { content: { url, etag, size }, open });
}

/** All missing ranges, several at once; the first one has been asked for already. */
async function fetchRanges(
  options: DownloadOptions,
  partial: Partial,
  firstReply: RangeReply,
): Promise<void | typeof CHANGED> {
  const { connections = 4, rangeBytes = 8 << 20 } = options;
  const queue = partial.missing().flatMap((range) => cut(range, rangeBytes));
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  let changed = false;
  let nextSave = performance.now() + SAVE_EVERY_MS;
  const onWritten = async () => {
    options.onBytes?.(partial.received(), partial.size);
    if (performance.now() < nextSave) return;
    nextSave = Infinity; // one save at a time
    await partial.save();
    nextSave = performance.now() + SAVE_EVERY_MS;
  };
  const work = async (opened: RangeReply | undefined) => {
    let reply = opened;
    for (let range = queue.shift(); range; range = queue.shift()) {
      const sound = await fetchRange({ ...options, signal }, {
        partial,
        range,
        opened: reply,
        onWritten,
      });
      reply = undefined;
      if (sound) continue;
      changed = true;
      stop.abort(CHANGED);
    }
  };
  const workers = Array.from(
    { length: Math.max(1, Math.min(connections, queue.length)) },
    (_, i) =>
      work(i === 0 ? firstReply : undefined).catch((error) => {
        stop.abort(error);
        throw error;
      }),
  );
  const results = await Promise.allSettled(workers);
  if (changed) return CHANGED;
  await partial.save().catch((error) => stop.abort(error));
  options.signal?.throwIfAborted();
  if (stop.signal.aborted) throw stop.signal.reason;
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}

function cut([start, end]: Range, length: number): Range[] {
  const count = Math.ceil((end - start) / length);
  return Array.from(
    { length: count },
    (_, i): Range => [start + i * length, Math.min(end, start + (i + 1) * length)],
  );
}

/** One range, with retries from where it broke off; false if the content is another one. */
function fetchRange(
  options: DownloadOptions,
  { partial, range: [start, end], opened, onWritten }: {
    readonly partial: Partial;
    readonly range: Range;
    readonly opened: RangeReply | undefined;
    readonly onWritten: () => Promise<void>;
  },
): Promise<boolean> {
  let position = start;
  let reply = opened;
  return retry(async (progress) => {
    const current = reply ?? await requestRange(options.url, [position, end], options);
    reply = undefined;
    const same = current.kind === "part" && current.total === partial.size &&
      current.etag === partial.etag;
    if (!same) {
      await current.cancel();
      return false;
    }
    for await (const chunk of current.chunks) {
      const wanted = chunk.subarray(0, end - position);
      partial.write(position, wanted);
      position += wanted.length;
      progress();
      await onWritten();
      if (position === end) {
        await current.cancel();
        return true;
      }
    }
    throw new TransientFailure("the connection ended early");
  }, options);
}

/** A server without ranges: one stream, from the start at every try. */
async function fetchWhole(
  options: DownloadOptions,
  firstReply: RangeReply,
  open: OpenOutput,
): Promise<void> {
  const { url, target, expected } = options;
  let reply: RangeReply | undefined = firstReply;
  await retry(async () => {
    removePartial(target);
    const current = reply ?? await requestRange(url, [0, Number.MAX_SAFE_INTEGER], options);
    reply = undefined;
    const total = expected?.bytes ?? current.total;
    const path = partialPath(target);
    const output = open(path);
    let position = 0;
    try {
      for await (const chunk of current.chunks) {
        position += chunk.length;
        if (expected?.bytes !== undefined && position > expected.bytes) {
          checkResult(url, {
            found: { bytes: position, sha256: "" },
            expected: { bytes: expected.bytes },
          });
        }
        output.write(position - chunk.length, chunk);
        options.onBytes?.(position, total);
      }
      if (current.kind === "outside" || position < (current.total ?? 0)) {
        throw new TransientFailure("the connection ended early");
      }
      await output.sync();
    } catch (error) {
      throw describeWriteError(error, { path, done: position, total });
    } finally {
      await current.cancel();
      output.close();
    }
  }, options);
}

/** Verifies and renames; undefined if the bytes of a resumed download are wrong and a fresh one may help. */
async function finish(options: DownloadOptions, resumed: boolean): Promise<Downloaded | undefined> {
  const { target, url, expected, signal, onVerify } = options;
  const path = partialPath(target);
  const { size } = Deno.statSync(path);
  const result = await hashFile(path, { signal, onBytes: (done) => onVerify?.(done, size) });
  try {
    checkResult(url, { found: result, expected: expected ?? {} });
  } catch (error) {
    removePartial(target);
    if (resumed) return undefined;
    throw error;
  }
  await Deno.rename(path, target);
  removePartial(target);
  return result;
}
