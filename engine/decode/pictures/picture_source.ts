// Where a picture in a message comes from: a path, an address, bytes, pixels, or OpenAI's `image_url`, whose address may
// hold the file itself. Files are read as transformers reads them: what is transparent shows its colours.

import { closing, joinBytes, readBytes } from "../../byte_source.ts";
import { FormatError, ResourceError, SourceError } from "../../errors.ts";
import { checkPicture, type Picture } from "../../formats/media/picture.ts";
import { readPicture } from "../../formats/media/read_picture.ts";
import { openFile } from "../../io.ts";
import type { ContentPart } from "../../text/chat_template.ts";

/**
 * A picture as messages hold it: a path, an address (file:, data:, http:, https:), the bytes of a file, or pixels.
 * @category Pictures
 */
export type PictureSource = string | URL | Uint8Array | Picture;

/** Bytes of a file of a picture, at most. */
const MOST_BYTES = 128 * 2 ** 20;

/** The picture of a part of a message; undefined if it is of another type. @throws {TypeError} If it has none. */
export function pictureOf(part: ContentPart | undefined): PictureSource | undefined {
  if (part?.type !== "image" && part?.type !== "image_url") return undefined;
  const { image, image_url: address } = part;
  const found = image ?? (address as { readonly url?: unknown } | undefined)?.url ?? address ??
    part.url ?? part.path;
  if (isSource(found)) return found;
  throw new TypeError(
    `Cannot use a part of type "${part.type}": it has no image, which is a path, a URL, bytes or a picture`,
  );
}

/** Whether a value is a picture, or where one is. */
function isSource(value: unknown): value is PictureSource {
  return typeof value === "string" || value instanceof URL || value instanceof Uint8Array ||
    isPixels(value);
}

function isPixels(value: unknown): value is Picture {
  return (value as Partial<Picture> | null | undefined)?.data instanceof Uint8Array;
}

/**
 * Reads a picture.
 *
 * @throws {SourceError} If it is not there. @throws {FormatError | ResourceError} As `readPicture`.
 */
export async function readSource(
  source: PictureSource,
  signal?: AbortSignal,
): Promise<Picture> {
  if (isPixels(source)) {
    checkPicture(source);
    return source;
  }
  if (source instanceof Uint8Array) return await readPicture(source, { alpha: "drop" });
  const address = String(source);
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(address)?.[1]?.toLowerCase();
  const bytes = scheme === "data"
    ? dataOf(address)
    : scheme === "http" || scheme === "https"
    ? await fetched(address, signal)
    : await fileBytes(scheme === "file" ? decodeURIComponent(new URL(address).pathname) : address);
  const file = scheme === "data" ? "data: URL" : address;
  return await readPicture(bytes, { file, alpha: "drop" });
}

async function fileBytes(path: string): Promise<Uint8Array> {
  const source = openFile(path);
  using _source = closing(source);
  checkBytes(source.size, path);
  return await readBytes(source, { length: source.size });
}

/** @throws {ResourceError} If a file is too large for one of a picture. */
function checkBytes(bytes: number, file: string): void {
  if (bytes <= MOST_BYTES) return;
  throw new ResourceError(`has ${bytes} bytes, and ${MOST_BYTES} are the limit of a picture`, {
    file,
  });
}

const DATA = /^data:[^,]*?;base64,/i;

/** Bytes of a data: URL in base64. */
function dataOf(address: string): Uint8Array {
  const [head] = DATA.exec(address) ?? [];
  try {
    if (head !== undefined) return Uint8Array.fromBase64(address.slice(head.length));
  } catch {
    // Said below.
  }
  throw new FormatError("is no picture in base64", { file: "data: URL" });
}

async function fetched(address: string, signal: AbortSignal | undefined): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(address, { ...signal && { signal } });
  } catch (cause) {
    signal?.throwIfAborted();
    throw new SourceError("cannot be fetched", { file: address, cause });
  }
  if (!response.ok) {
    await response.body?.cancel();
    throw new SourceError(`cannot be fetched: ${response.status} ${response.statusText}`, {
      file: address,
    });
  }
  const stated = Number(response.headers.get("content-length") ?? 0);
  if (stated > MOST_BYTES) await response.body?.cancel();
  checkBytes(stated, address);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    checkBytes(bytes += piece.length, address);
    pieces.push(piece);
  }
  return joinBytes(pieces);
}
