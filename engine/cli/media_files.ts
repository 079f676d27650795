// Pictures and sounds of commands: files by name, none of them larger than what can be one.

import { closing, readBytes } from "../byte_source.ts";
import { ResourceError } from "../errors.ts";
import type { Picture } from "../formats/media/picture.ts";
import { openFile } from "../io.ts";

/** No picture within the limits of the decoders has a longer file; a sound is in memory once more as samples. */
const MOST_BYTES = { picture: 2 ** 30, sound: 2 ** 32 } as const;

/**
 * The bytes of a file.
 *
 * @throws {SourceError} If it is not there. @throws {ResourceError} If it is too large for what it is to be.
 */
export async function mediaBytes(path: string, kind: keyof typeof MOST_BYTES): Promise<Uint8Array> {
  const source = openFile(path);
  using _source = closing(source);
  if (source.size > MOST_BYTES[kind]) {
    throw new ResourceError(`has ${source.size} bytes, which is too much for a ${kind}`, {
      file: path,
    });
  }
  return await readBytes(source, { length: source.size });
}

/**
 * Reads pictures in order.
 *
 * @throws {SourceError} If one is not there. @throws {FormatError | ResourceError} If one is broken or too large.
 */
export async function readPictures(paths: readonly string[]): Promise<Picture[]> {
  const { readPicture } = await import("../formats/media/read_picture.ts");
  const pictures: Picture[] = [];
  for (const file of paths) {
    pictures.push(await readPicture(await mediaBytes(file, "picture"), { file }));
  }
  return pictures;
}
