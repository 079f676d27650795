// Pictures of commands: files by name.

import { closing, readBytes } from "../byte_source.ts";
import { ResourceError } from "../errors.ts";
import type { Picture } from "../formats/media/picture.ts";
import { readPicture } from "../formats/media/read_picture.ts";
import { openFile } from "../io.ts";

/** No picture within the limits of the decoders has a longer file. */
const MOST_BYTES = 1 << 30;

/**
 * Reads pictures in order.
 *
 * @throws {SourceError} If one is not there. @throws {FormatError | ResourceError} If one is broken or too large.
 */
export async function readPictures(paths: readonly string[]): Promise<Picture[]> {
  const pictures: Picture[] = [];
  for (const path of paths) {
    const source = openFile(path);
    using _source = closing(source);
    if (source.size > MOST_BYTES) {
      throw new ResourceError(`has ${source.size} bytes, which is too much for a picture`, {
        file: path,
      });
    }
    const bytes = await readBytes(source, { offset: 0, length: source.size });
    pictures.push(await readPicture(bytes, { file: path }));
  }
  return pictures;
}
