// What must hold for any bytes given to the reader of pictures: a picture comes out whose data are as long as its size
// says, and no larger than allowed, or one of our errors, of one line.

import { FormatError, ResourceError, UnsupportedError } from "../../engine/errors.ts";
import { readPicture } from "../../engine/formats/media/read_picture.ts";
import { fixturePath } from "./fixtures.ts";

const MAX_PIXELS = 1e6;

/** Reads `bytes`. */
export async function fuzzPicture(bytes: Uint8Array): Promise<void> {
  try {
    const { width, height, data } = await readPicture(bytes, { maxPixels: MAX_PIXELS });
    if (data.length === 3 * width * height && width * height <= MAX_PIXELS) return;
    throw new Error(`${width} × ${height} pixels in ${data.length} bytes`);
  } catch (error) {
    const ours = error instanceof FormatError || error instanceof UnsupportedError ||
      error instanceof ResourceError;
    if (!ours) throw error;
    if (error.message.includes("\n")) throw new Error(`Message of several lines: ${error.message}`);
  }
}

/** Good files of every kind. */
export function pictureSeeds(): Uint8Array[] {
  const files = [
    ...["decode/j420_progressive.jpg", "decode/orientation6.jpg", "decode/grey.jpg"],
    ...["decode/palette_trns.png", "decode/adam7.png", "decode/bit1.png"],
    ...["inputs/glyphs.webp", "inputs/glyphs_lossless.webp"],
  ];
  return files.map((file) => Deno.readFileSync(fixturePath(`pictures/${file}`)));
}
