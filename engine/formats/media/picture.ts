// What pictures are once they are read, and what becomes of them before anybody looks: how many pixels there may be,
// what transparency lies on, and which way is up.

import { ResourceError } from "../../errors.ts";
import { type Broken, brokenAs } from "./broken.ts";

/**
 * A picture with 8 bits a channel.
 * @category Pictures
 */
export interface Picture {
  /** Pixels a row. */
  readonly width: number;
  /** Rows. */
  readonly height: number;
  /** 3: red, green, blue; 4: and opacity, by which they are not multiplied. Absent: 3. */
  readonly channels?: 3 | 4;
  /** The channels of each pixel, row by row from the top. */
  readonly data: Uint8Array;
}

/**
 * What becomes of transparency: laid on white; dropped, so that colours show which nobody was to see, as in
 * transformers and PIL's `convert("RGB")`; or kept as a fourth channel.
 * @category Pictures
 */
export type AlphaMode = "white" | "drop" | "keep";

/**
 * Options of whatever reads a picture.
 * @category Pictures
 */
export interface ReadPictureOptions {
  /** For messages: the file's name. */
  readonly file?: string | undefined;
  /** More are refused by the file's header, before anything is unpacked; default 100 million. */
  readonly maxPixels?: number | undefined;
  /** Default "white". */
  readonly alpha?: AlphaMode | undefined;
}

/** A picture as decoders give it: four channels. */
export interface RgbaPicture extends Picture {
  readonly channels: 4;
}

/** Most pixels of a picture, where nobody asks for more. */
export const MAX_PIXELS = 100_000_000;

/** The error of a file that breaks the rules of its kind of pictures. */
export const brokenPicture: Broken = brokenAs(
  "The picture is damaged or cut short: fetch it again, or save it anew",
);

/**
 * Refuses what is no picture.
 *
 * @throws {TypeError} If it is something else: a path or the bytes of a file, as a rule.
 * @throws {RangeError} If its data are not as long as its sizes say, or it has no pixels.
 */
export function checkPicture(value: unknown): asserts value is Picture {
  const { width, height, channels = 3, data } = (value ?? {}) as Partial<Picture>;
  if (!(data instanceof Uint8Array)) {
    throw new TypeError(
      "Cannot use this as a picture: give what readPicture() returns, or { width, height, data } with a Uint8Array",
    );
  }
  const isWhole = [width, height].every((side) => Number.isSafeInteger(side) && side! > 0);
  const fits = (channels === 3 || channels === 4) && data.length === width! * height! * channels;
  if (isWhole && fits) return;
  throw new RangeError(
    `Cannot use a picture of ${width} × ${height} pixels with ${data.length} bytes: 3 a pixel are needed, ` +
      "with channels: 4 as many as that",
  );
}

/**
 * Refuses a picture by its header.
 *
 * @throws {ResourceError} If it has more pixels than it may have.
 */
export function checkPixels(
  { width, height }: { readonly width: number; readonly height: number },
  { file, maxPixels = MAX_PIXELS }: ReadPictureOptions,
): void {
  if (width * height <= maxPixels) return;
  throw new ResourceError(
    `${width} × ${height} are ${width * height} pixels, and ${maxPixels} are the limit`,
    { file, place: "header", remedy: "Make it smaller, or raise maxPixels" },
  );
}

/** Without a fourth channel, if that is not wanted. */
export function withAlpha(picture: Picture, mode: AlphaMode): Picture {
  const { width, height, channels = 3, data } = picture;
  if (mode === "keep" || channels === 3) return picture;
  const pixels = width * height, rgb = new Uint8Array(3 * pixels);
  for (let i = 0, from = 0, to = 0; i < pixels; i++, from += 4, to += 3) {
    const alpha = mode === "drop" ? 255 : data[from + 3]!;
    for (let c = 0; c < 3; c++) {
      const value = data[from + c]!;
      rgb[to + c] = alpha === 255 ? value : Math.round(255 + (value - 255) * alpha / 255);
    }
  }
  return { width, height, channels: 3, data: rgb };
}

/**
 * Turns and mirrors a picture as a camera noted that it has to be.
 *
 * @param orientation 1 to 8, as EXIF's tag 274 has it (TIFF 6.0, Orientation): what the first row and the first column
 *   of the data are once it hangs right. 1 and what is no orientation change nothing.
 */
export function orient(picture: RgbaPicture, orientation: number): RgbaPicture {
  if (!(orientation >= 2 && orientation <= 8)) return picture;
  const { width, height, data } = picture;
  const isTurned = orientation >= 5;
  const [w, h] = isTurned ? [height, width] : [width, height];
  // Where in the data the result begins, and how far apart its neighbours lie there.
  const isMirroredX = [2, 3, 7, 8].includes(orientation);
  const isMirroredY = [3, 4, 6, 7].includes(orientation);
  const right = isMirroredX ? -1 : 1, down = isMirroredY ? -width : width;
  const start = (isMirroredX ? width - 1 : 0) + (isMirroredY ? (height - 1) * width : 0);
  const [across, along] = isTurned ? [down, right] : [right, down];
  const from = new Uint32Array(data.buffer, data.byteOffset, width * height);
  const to = new Uint32Array(w * h);
  for (let y = 0, i = 0; y < h; y++) {
    for (let x = 0, at = start + y * along; x < w; x++, i++, at += across) to[i] = from[at]!;
  }
  return { width: w, height: h, channels: 4, data: new Uint8Array(to.buffer) };
}
