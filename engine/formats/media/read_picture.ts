// Reads pictures of the kinds that there are on the web, told by their first bytes, never by their names.

import { FormatError, UnsupportedError } from "../../errors.ts";
import { refuseMisfetched } from "../misfetched.ts";
import { decodeJpeg, isJpeg } from "./jpeg.ts";
import { type Picture, type ReadPictureOptions, withAlpha } from "./picture.ts";
import { decodePng, isPng } from "./png.ts";
import { decodeWebp, isWebp } from "./webp.ts";
import { checkBytes, checkOptionKeys, type OptionKeys } from "../../option_keys.ts";

/** What is known and not read, by its beginning as Latin-1. */
const NOT_READ: Readonly<Record<string, RegExp>> = {
  GIF: /^GIF8[79]a/,
  BMP: /^BM[^]{4}\0{4}/,
  TIFF: /^(II\*\0|MM\0\*)/,
  "AVIF or HEIC": /^[^]{4}ftyp(avif|avis|heic|heix|mif1|msf1)/,
  "JPEG XL": /^(\xff\n|\0\0\0\fJXL )/,
  SVG: /^\s*(<\?xml[^]*)?<svg/,
};

const KEYS: OptionKeys<ReadPictureOptions> = { file: true, maxPixels: true, alpha: true };

/**
 * Reads a PNG, JPEG or WebP file as it is to be seen: turned as EXIF says, transparency laid on white.
 *
 * PNG is read by code of our own. For JPEG and WebP Deno fetches a package when the first one is read
 * (`@jsquash/jpeg`, `@jsquash/webp`: libjpeg and libwebp in WebAssembly); after that no network is needed.
 *
 * Of an animation the first picture is read.
 *
 * @returns Red, green, blue of each pixel; with `alpha: "keep"` opacity too.
 * @throws {FormatError} If it is no picture, damaged or cut off; nothing is made up for what is missing.
 * @throws {UnsupportedError} If it is of another kind.
 * @throws {ResourceError} If it has more than `maxPixels`, before memory is taken for them.
 * @throws {SourceError} If a package has to be fetched and cannot be.
 *
 * @example
 * ```ts
 * import { readPicture } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const file = "photo.jpg";
 * const { width, height, data } = await readPicture(await Deno.readFile(file), { file });
 * assertEquals([width, height, data.length], [22, 31, 3 * 22 * 31]);
 * ```
 * @category Pictures
 */
export async function readPicture(
  bytes: Uint8Array,
  options: ReadPictureOptions = {},
): Promise<Picture> {
  checkOptionKeys(options, { of: "readPicture()", known: KEYS });
  checkBytes(bytes, "a picture");
  return withAlpha(await readRgba(bytes, options), options.alpha ?? "white");
}

function readRgba(bytes: Uint8Array, options: ReadPictureOptions): Picture | Promise<Picture> {
  if (isPng(bytes)) return decodePng(bytes, options);
  if (isJpeg(bytes)) return decodeJpeg(bytes, options);
  if (isWebp(bytes)) return decodeWebp(bytes, options);
  const { file } = options;
  if (bytes.length === 0) {
    throw new FormatError("is empty", { file, remedy: "Give another file, or fetch it again" });
  }
  const start = bytes.subarray(0, 256);
  const beginning = Array.from(start, (byte) => String.fromCharCode(byte)).join("");
  const remedy = "Save it as PNG, JPEG or WebP";
  const known = Object.entries(NOT_READ).find(([, pattern]) => pattern.test(beginning));
  if (known) {
    throw new UnsupportedError(`${known[0]} pictures are not read`, { file, remedy });
  }
  refuseMisfetched(beginning, { file, kind: "picture" });
  const bytesShown = start.subarray(0, 8).toHex().replace(/..(?=.)/g, "$& ");
  throw new FormatError(`is no PNG, JPEG or WebP file: it begins with ${bytesShown}`, {
    ...{ file, remedy },
  });
}
