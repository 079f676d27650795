// Cuts the middle out of a picture.

import { checkPicture, type Picture } from "../formats/media/picture.ts";

/**
 * The middle of a picture; where it is smaller, black around it. Of an odd rest the larger half is right and below, as
 * transformers' `center_crop` has it.
 *
 * @throws {TypeError | RangeError} If it is no picture, or a side is no whole number of 1 or more.
 *
 * @example
 * ```ts
 * import { centerCrop } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const row = { width: 3, height: 1, data: Uint8Array.of(1, 1, 1, 2, 2, 2, 3, 3, 3) };
 * assertEquals([...centerCrop(row, { width: 1, height: 1 }).data], [2, 2, 2]);
 * ```
 * @category Pictures
 */
export function centerCrop(
  picture: Picture,
  { width, height }: { readonly width: number; readonly height: number },
): Picture {
  checkPicture(picture);
  if (!(Number.isSafeInteger(width) && Number.isSafeInteger(height) && width > 0 && height > 0)) {
    throw new RangeError(`A picture cannot be ${width} × ${height} pixels`);
  }
  const { channels = 3 } = picture, data = new Uint8Array(width * height * channels);
  const left = Math.floor((picture.width - width) / 2);
  const top = Math.floor((picture.height - height) / 2);
  const start = Math.max(0, left), length = Math.min(picture.width, left + width) - start;
  for (let y = Math.max(0, -top); y < Math.min(height, picture.height - top); y++) {
    const from = ((y + top) * picture.width + start) * channels;
    const row = picture.data.subarray(from, from + length * channels);
    data.set(row, (y * width + start - left) * channels);
  }
  return { width, height, channels, data };
}
