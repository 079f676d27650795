// The bytes of a picture or a sound, wherever it is: a path, or an address (file:, data:, http:, https:).

import { closing, joinBytes, readBytes } from "../../byte_source.ts";
import { FormatError, ResourceError, SourceError, TroodonError } from "../../errors.ts";
import { openFile, pathOf } from "../../io.ts";
import { permissionError } from "../hub/http.ts";

/** What is read, and what it may be. */
export interface MediaLimits {
  readonly kind: "picture" | "sound";
  /** Bytes at most. */
  readonly most: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads all of it.
 *
 * @throws {SourceError} If it is not there. @throws {FormatError} If a data: URL holds no base64.
 * @throws {ResourceError} If it is too large for what it is to be.
 */
export async function bytesAt(address: string, limits: MediaLimits): Promise<Uint8Array> {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(address)?.[1]?.toLowerCase();
  if (scheme === "data") return dataOf(address, limits);
  if (scheme === "http" || scheme === "https") return await fetched(address, limits);
  const path = pathOf(address);
  const source = openFile(path);
  using _source = closing(source);
  checkBytes(source.size, path, limits);
  return await readBytes(source, { length: source.size });
}

/**
 * All pieces of a stream, one behind the other.
 *
 * @throws {ResourceError} As `bytesAt`.
 */
export async function bytesOf(
  pieces: AsyncIterable<Uint8Array>,
  file: string,
  limits: MediaLimits,
): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    checkBytes(bytes += piece.length, file, limits);
    all.push(piece);
  }
  return joinBytes(all);
}

function checkBytes(bytes: number, file: string, { kind, most }: MediaLimits): void {
  if (bytes <= most) return;
  throw new ResourceError(`has ${bytes} bytes, which is too much for a ${kind}`, { file });
}

const DATA = /^data:[^,]*?;base64,/i;

/** Bytes of a data: URL in base64. */
function dataOf(address: string, { kind }: MediaLimits): Uint8Array {
  const [head] = DATA.exec(address) ?? [];
  try {
    if (head !== undefined) return Uint8Array.fromBase64(address.slice(head.length));
  } catch {
    // Said below.
  }
  throw new FormatError(`is no ${kind} in base64`, { file: "data: URL" });
}

async function fetched(address: string, limits: MediaLimits): Promise<Uint8Array> {
  const { signal } = limits;
  try {
    const response = await fetch(address, { ...signal && { signal } });
    if (!response.ok) {
      await response.body?.cancel();
      throw new SourceError(`cannot be fetched: ${response.status} ${response.statusText}`, {
        file: address,
      });
    }
    const stated = Number(response.headers.get("content-length") ?? 0);
    if (stated > limits.most) await response.body?.cancel();
    checkBytes(stated, address, limits);
    return response.body ? await bytesOf(response.body, address, limits) : new Uint8Array();
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof TroodonError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw permissionError(address, cause) ??
      new SourceError(`cannot be fetched: ${why}`, { file: address, cause });
  }
}

/** The name of a source in messages: a data: URL is long. */
export function nameOf(address: string): string {
  return /^data:/i.test(address) ? "data: URL" : address;
}
