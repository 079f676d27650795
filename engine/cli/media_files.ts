// Pictures and sounds of commands: files by name, addresses, or `-` for standard input, none of them larger than what can
// be one.

import { bytesAt, bytesOf, type MediaLimits, nameOf } from "../formats/media/media_bytes.ts";
import type { Picture } from "../formats/media/picture.ts";
import { UsageError } from "./args.ts";
import type { Context } from "./command.ts";
import type { Terminal } from "./terminal.ts";

/** No picture within the limits of the decoders has a longer file; a sound is in memory once more as samples. */
const MOST_BYTES = { picture: 2 ** 30, sound: 2 ** 32 } as const;

/** The bytes of a file, and what messages call it. */
export interface MediaFile {
  readonly bytes: Uint8Array;
  readonly file: string;
}

/**
 * Reads one.
 *
 * @throws {UsageError} If it is standard input, and that a keyboard.
 * @throws {SourceError} If it is not there. @throws {ResourceError} If it is too large for what it is to be.
 */
export async function readMedia(
  { terminal, signal }: Pick<Context, "terminal" | "signal">,
  { path, kind }: { readonly path: string; readonly kind: MediaLimits["kind"] },
): Promise<MediaFile> {
  const limits = { kind, most: MOST_BYTES[kind], signal };
  if (path !== "-") return { bytes: await bytesAt(path, limits), file: nameOf(path) };
  if (terminal.keyboard) throw new UsageError(`Nothing to read: pipe a ${kind} in`);
  const file = "standard input";
  return { bytes: await bytesOf(piecesOf(terminal), file, limits), file };
}

async function* piecesOf(terminal: Terminal): AsyncGenerator<Uint8Array> {
  for (let piece = await terminal.read(); piece; piece = await terminal.read()) yield piece;
}

/**
 * Reads pictures in order, as networks see them: what is transparent shows its colours.
 *
 * @throws {SourceError} If one is not there. @throws {FormatError | ResourceError} If one is broken or too large.
 */
export async function readPictures(
  context: Pick<Context, "terminal" | "signal">,
  paths: readonly string[],
): Promise<Picture[]> {
  const { readPicture } = await import("../formats/media/read_picture.ts");
  const pictures: Picture[] = [];
  for (const path of paths) {
    const { bytes, file } = await readMedia(context, { path, kind: "picture" });
    pictures.push(await readPicture(bytes, { file, alpha: "drop" }));
  }
  return pictures;
}
