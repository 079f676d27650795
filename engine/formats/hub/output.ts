// Files that a download writes. All writes go through `OutputFile`, so that a full disk becomes a
// ResourceError with numbers in one place, and so that tests can put a failing disk under it.

import { createHash } from "node:crypto";
import { FormatError, ResourceError, SourceError } from "../../errors.ts";

/**
 * A file being written at any position.
 * @category Hub
 */
export interface OutputFile {
  /** Writes all bytes at `offset`. */
  write(offset: number, bytes: Uint8Array): void;
  /** Sets the length. */
  truncate(size: number): void;
  /** Waits until the disk has it. */
  sync(): Promise<void>;
  /** Gives the file free; nothing can be written afterwards. */
  close(): void;
}

/**
 * Opens or creates a file for writing; replaced in tests.
 * @category Hub
 */
export type OpenOutput = (path: string) => OutputFile;

/** Opens or creates a file on disk. */
export function openOutput(path: string): OutputFile {
  const file = Deno.openSync(path, { write: true, create: true });
  return {
    write(offset: number, bytes: Uint8Array): void {
      // Seek and write are synchronous: several downloads share the file without getting mixed up.
      file.seekSync(offset, Deno.SeekMode.Start);
      for (let done = 0; done < bytes.length;) done += file.writeSync(bytes.subarray(done));
    },
    truncate: (size: number) => file.truncateSync(size),
    sync: () => file.syncData(),
    close: () => file.close(),
  };
}

/** Turns a full disk into a ResourceError and passes other errors on. */
export function describeWriteError(
  error: unknown,
  { path, done, total }: {
    readonly path: string;
    readonly done: number;
    readonly total?: number | undefined;
  },
): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  // Deno knows no code for EFBIG (27 on Linux and macOS alike).
  if (error instanceof Error && error.message.includes("(os error 27)")) {
    return new ResourceError(
      `the file system cannot hold a file of ${total ?? "that many"} bytes`,
      { file: path, remedy: "Set TROODON_CACHE to another disk", cause: error },
    );
  }
  if (code !== "ENOSPC" && code !== "EDQUOT") return error;
  const progress = total === undefined ? `${done} bytes` : `${done} of ${total} bytes`;
  return new ResourceError(`the disk is full after ${progress}`, {
    file: path,
    remedy:
      "Make room or set TROODON_CACHE to another disk, then run the same command again: it goes on",
    cause: error,
  });
}

/** What a finished file must be; unknown parts are not checked. */
export interface Expected {
  /** Length in bytes. */
  readonly bytes?: number | undefined;
  /** Hexadecimal, lower case. */
  readonly sha256?: string | undefined;
}

/** Length and sha256 of a file, read in pieces; `onBytes` hears how far it is. */
export async function hashFile(
  path: string,
  { signal, onBytes }: {
    readonly signal?: AbortSignal | undefined;
    readonly onBytes?: ((done: number) => void) | undefined;
  } = {},
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash("sha256");
  const buffer = new Uint8Array(1 << 20);
  let bytes = 0;
  using file = await Deno.open(path);
  for (;;) {
    signal?.throwIfAborted();
    const count = await file.read(buffer);
    if (count === null) return { bytes, sha256: hash.digest("hex") };
    hash.update(buffer.subarray(0, count));
    bytes += count;
    onBytes?.(bytes);
  }
}

/** Compares a result with what was expected. */
export function checkResult(
  name: string,
  { found, expected }: {
    readonly found: { readonly bytes: number; readonly sha256: string };
    readonly expected: Expected;
  },
): void {
  if (expected.bytes !== undefined && found.bytes !== expected.bytes) {
    throw new SourceError(`has ${found.bytes} bytes, must have ${expected.bytes}`, {
      file: name,
      remedy: "The source has another file than expected, nothing was kept",
    });
  }
  if (expected.sha256 !== undefined && found.sha256 !== expected.sha256) {
    throw new SourceError(`has the sha256 ${found.sha256}, must have ${expected.sha256}`, {
      file: name,
      remedy:
        "The bytes are wrong and were removed: run the same command again, or use another source",
    });
  }
}

/**
 * Writes a stream to `target`: first to `target.partial`, hashing on the way; then verified, flushed and
 * renamed, so that `target` is always whole. On any error the partial file is removed.
 *
 * @returns The sha256.
 */
export async function writeVerified(
  target: string,
  { chunks, expected }: { readonly chunks: AsyncIterable<Uint8Array>; readonly expected: Expected },
  options: { readonly open?: OpenOutput | undefined; onBytes?: (count: number) => void },
): Promise<string> {
  const partial = `${target}.partial`;
  const output = (options.open ?? openOutput)(partial);
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    output.truncate(0);
    for await (const chunk of chunks) {
      if (expected.bytes !== undefined && bytes + chunk.length > expected.bytes) {
        throw new FormatError(`is longer than the ${expected.bytes} bytes it must have`, {
          file: target,
        });
      }
      hash.update(chunk);
      output.write(bytes, chunk);
      bytes += chunk.length;
      options.onBytes?.(chunk.length);
    }
    const sha256 = hash.digest("hex");
    checkResult(target, { found: { bytes, sha256 }, expected });
    await output.sync();
    output.close();
    await Deno.rename(partial, target);
    return sha256;
  } catch (error) {
    try {
      output.close();
    } catch {
      // It was closed already: the rename failed.
    }
    await Deno.remove(partial).catch(() => {});
    throw describeWriteError(error, { path: partial, done: bytes, total: expected.bytes });
  }
}
