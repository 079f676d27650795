// Where a picture in a message comes from: a path, an address, bytes, pixels, or OpenAI's `image_url`, whose address may
// hold the file itself. Files are read as transformers reads them: what is transparent shows its colours.

import { bytesAt, nameOf } from "../../formats/media/media_bytes.ts";
import { checkPicture, type Picture } from "../../formats/media/picture.ts";
import { readPicture } from "../../formats/media/read_picture.ts";
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
  const bytes = await bytesAt(address, { kind: "picture", most: MOST_BYTES, signal });
  return await readPicture(bytes, { file: nameOf(address), alpha: "drop" });
}
