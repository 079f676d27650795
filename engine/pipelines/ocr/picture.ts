// Pictures on their way into a network: resizing as OpenCV's INTER_LINEAR does it (sample centres at half
// pixels, edges repeated), turning, padding, and the planes of numbers that PaddleOCR's networks take.

import type { Picture } from "../../formats/media/picture.ts";

/** A picture in which every pixel is black. */
export function blankPicture(width: number, height: number): Picture {
  return { width, height, data: new Uint8Array(3 * width * height) };
}

/** The picture at another size. */
export function resizeLinear(
  picture: Picture,
  { width, height }: { readonly width: number; readonly height: number },
): Picture {
  if (picture.width === width && picture.height === height) return picture;
  const result = blankPicture(width, height);
  const columns = taps(picture.width, width), rows = taps(picture.height, height);
  const stride = 3 * picture.width, { data } = picture;
  for (let y = 0, at = 0; y < height; y++) {
    const top = rows.low[y]! * stride, bottom = rows.high[y]! * stride, down = rows.weight[y]!;
    for (let x = 0; x < width; x++) {
      const left = 3 * columns.low[x]!, right = 3 * columns.high[x]!, across = columns.weight[x]!;
      for (let c = 0; c < 3; c++, at++) {
        const a = data[top + left + c]!, b = data[top + right + c]!;
        const d = data[bottom + left + c]!, e = data[bottom + right + c]!;
        const upper = a + (b - a) * across, lower = d + (e - d) * across;
        result.data[at] = Math.round(upper + (lower - upper) * down);
      }
    }
  }
  return result;
}

function taps(from: number, to: number) {
  const low = new Int32Array(to), high = new Int32Array(to), weight = new Float64Array(to);
  for (let i = 0; i < to; i++) {
    const at = Math.max(0, (i + 0.5) * from / to - 0.5), floor = Math.min(Math.floor(at), from - 1);
    low[i] = floor;
    high[i] = Math.min(floor + 1, from - 1);
    weight[i] = at - floor;
  }
  return { low, high, weight };
}

/** The picture turned by 180 degrees. */
export function turnAround({ width, height, data }: Picture): Picture {
  const result = blankPicture(width, height), pixels = width * height;
  for (let i = 0; i < pixels; i++) {
    result.data.set(data.subarray(3 * i, 3 * i + 3), 3 * (pixels - 1 - i));
  }
  return result;
}

/** The picture turned by 90 degrees, against the clock. */
export function turnLeft({ width, height, data }: Picture): Picture {
  const result = blankPicture(height, width);
  for (let y = 0; y < width; y++) {
    for (let x = 0; x < height; x++) {
      const from = 3 * (x * width + width - 1 - y);
      result.data.set(data.subarray(from, from + 3), 3 * (y * height + x));
    }
  }
  return result;
}

/** The picture with black rows above and below. */
export function padRows({ width, height, data }: Picture, rows: number): Picture {
  const result = blankPicture(width, height + 2 * rows);
  result.data.set(data, 3 * width * rows);
  return result;
}

/**
 * Writes blue, green and red planes with values from -1 to 1, rows `stride` values apart.
 *
 * @param target Three planes of `stride` × the picture's height.
 */
export function writePlanes(
  { width, height, data }: Picture,
  { target, stride = width }: {
    readonly target: Float32Array;
    readonly stride?: number | undefined;
  },
): void {
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let c = 0; c < 3; c++, at++) {
        target[((2 - c) * height + y) * stride + x] = data[at]! / 127.5 - 1;
      }
    }
  }
}

/** Rounds as Python does: halves to the even neighbour. */
export function roundEven(value: number): number {
  const floor = Math.floor(value);
  return value - floor === 0.5 ? floor + floor % 2 : Math.round(value);
}
