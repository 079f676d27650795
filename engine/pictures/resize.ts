// Resizing as Pillow does it (src/libImaging/Resample.c): each pixel of the result is a weighted mean of those that it
// covers, in fixed point with 22 bits, columns first, rounded to 8 bits, then rows. Networks learnt from pictures made so,
// and other ways (no antialias, one pass) give other answers. Pillow 13 goes over rows first where that is less work;
// all versions before, and this, go over columns first.

import { ResourceError } from "../errors.ts";
import { checkPicture, MAX_PIXELS, type Picture } from "../formats/media/picture.ts";

/**
 * How a picture is sampled.
 * @category Pictures
 */
export type ResizeFilter = "nearest" | "box" | "bilinear" | "hamming" | "bicubic" | "lanczos";

/**
 * Options of {@linkcode resizePicture}.
 * @category Pictures
 */
export interface ResizeOptions {
  /** Pixels a row of the result. */
  readonly width: number;
  /** Rows of the result. */
  readonly height: number;
  /** Default "bicubic". */
  readonly filter?: ResizeFilter | undefined;
}

interface Filter {
  /** Pixels to each side that count, where the picture becomes larger. */
  readonly support: number;
  readonly weight: (x: number) => number;
}

const CUBIC = -0.5;

const FILTERS: Readonly<Record<Exclude<ResizeFilter, "nearest">, Filter>> = {
  box: { support: 0.5, weight: (x) => x > -0.5 && x <= 0.5 ? 1 : 0 },
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: {
    support: 1,
    weight: (x) => Math.abs(x) >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * Math.cos(Math.PI * x)),
  },
  bicubic: { support: 2, weight: (x) => cubic(Math.abs(x)) },
  lanczos: { support: 3, weight: (x) => x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0 },
};

const RESIZE_FILTERS: readonly ResizeFilter[] = [
  "nearest",
  ...Object.keys(FILTERS) as (keyof typeof FILTERS)[],
];

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Keys' cubic convolution. */
function cubic(x: number): number {
  if (x < 1) return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * CUBIC : 0;
}

/**
 * The picture at another size, sampled with antialias.
 *
 * Colours count by their opacity where there is a fourth channel.
 *
 * @throws {TypeError | RangeError} If it is no picture, a side is no whole number of 1 or more, or there is no such filter.
 * @throws {ResourceError} If it became larger than 100 million pixels, on its way there too.
 *
 * @example
 * ```ts
 * import { readPicture, resizePicture } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const picture = await readPicture(await Deno.readFile("page.png"));
 * const small = resizePicture(picture, { width: 64, height: 48 });
 * assertEquals(small.data.length, 3 * 64 * 48);
 * ```
 * @category Pictures
 */
export function resizePicture(
  picture: Picture,
  { width, height, filter = "bicubic" }: ResizeOptions,
): Picture {
  checkPicture(picture);
  for (const side of [width, height]) {
    if (!Number.isSafeInteger(side) || side < 1) {
      throw new RangeError(`A picture cannot be ${width} × ${height} pixels`);
    }
  }
  if (!RESIZE_FILTERS.includes(filter)) {
    throw new RangeError(`filter must be one of ${RESIZE_FILTERS.join(", ")}, not "${filter}"`);
  }
  if (picture.width === width && picture.height === height) return picture;
  // Columns are gone over first.
  if (width * Math.max(height, picture.height) > MAX_PIXELS) {
    throw new ResourceError(
      `a picture of ${picture.width} × ${picture.height} would become ${width} × ${height}, and ` +
        `${MAX_PIXELS} pixels are the limit`,
      { remedy: "Cut it to a shape that is less long" },
    );
  }
  if (filter === "nearest") return nearest(picture, { width, height });
  const kind = FILTERS[filter];
  if (picture.channels !== 4) return resample(picture, { width, height, kind });
  return divided(resample(multiplied(picture), { width, height, kind }));
}

function resample(
  picture: Picture,
  { width, height, kind }: {
    readonly width: number;
    readonly height: number;
    readonly kind: Filter;
  },
): Picture {
  const { channels = 3 } = picture;
  let { data } = picture;
  if (width !== picture.width) {
    const taps = tapsOf(picture.width, width, kind);
    data = columnsOf(data, taps, { rows: picture.height, from: picture.width, channels });
  }
  if (height !== picture.height) {
    data = rowsOf(data, tapsOf(picture.height, height, kind), width * channels);
  }
  return { width, height, channels, data };
}

/** Which pixels a pixel of the result covers, and how much each counts. */
interface Taps {
  readonly to: number;
  readonly first: Int32Array;
  readonly count: Int32Array;
  /** `most` for each pixel of the result. */
  readonly weights: Int32Array;
  readonly most: number;
}

const BITS = 22, HALF = 1 << (BITS - 1);

function tapsOf(from: number, to: number, { support, weight }: Filter): Taps {
  const scale = from / to, stretch = Math.max(1, scale), reach = support * stretch;
  const most = Math.ceil(reach) * 2 + 1;
  const first = new Int32Array(to), count = new Int32Array(to), weights = new Int32Array(to * most);
  const exact = new Float64Array(most);
  for (let i = 0; i < to; i++) {
    const centre = (i + 0.5) * scale;
    const low = Math.max(0, Math.trunc(centre - reach + 0.5));
    const length = Math.min(from, Math.trunc(centre + reach + 0.5)) - low;
    let sum = 0;
    for (let k = 0; k < length; k++) {
      sum += exact[k] = weight((k + low - centre + 0.5) / stretch);
    }
    for (let k = 0; k < length; k++) {
      const share = sum === 0 ? exact[k]! : exact[k]! / sum;
      weights[i * most + k] = Math.trunc(share * (1 << BITS) + (share < 0 ? -0.5 : 0.5));
    }
    first[i] = low;
    count[i] = length;
  }
  return { to, first, count, weights, most };
}

function columnsOf(
  data: Uint8Array,
  { to, first, count, weights, most }: Taps,
  { rows, from, channels }: {
    readonly rows: number;
    readonly from: number;
    readonly channels: number;
  },
): Uint8Array {
  // Clamped and, as the values are whole, not rounded.
  const result = new Uint8ClampedArray(rows * to * channels);
  for (let y = 0, at = 0; y < rows; y++) {
    for (let x = 0; x < to; x++) {
      const start = (y * from + first[x]!) * channels, end = x * most + count[x]!;
      for (let c = 0; c < channels; c++, at++) {
        let sum = HALF;
        for (let k = x * most, i = start + c; k < end; k++, i += channels) {
          sum = sum + Math.imul(weights[k]!, data[i]!) | 0;
        }
        result[at] = sum >> BITS;
      }
    }
  }
  return new Uint8Array(result.buffer);
}

function rowsOf(
  data: Uint8Array,
  { to, first, count, weights, most }: Taps,
  rowLength: number,
): Uint8Array {
  const result = new Uint8ClampedArray(to * rowLength), sums = new Int32Array(rowLength);
  for (let y = 0; y < to; y++) {
    sums.fill(HALF);
    for (let k = 0; k < count[y]!; k++) {
      const weight = weights[y * most + k]!, start = (first[y]! + k) * rowLength;
      for (let i = 0; i < rowLength; i++) sums[i]! += Math.imul(weight, data[start + i]!);
    }
    const start = y * rowLength;
    for (let i = 0; i < rowLength; i++) result[start + i] = sums[i]! >> BITS;
  }
  return new Uint8Array(result.buffer);
}

function nearest(
  picture: Picture,
  { width, height }: { readonly width: number; readonly height: number },
): Picture {
  const { channels = 3 } = picture, data = new Uint8Array(width * height * channels);
  const columns = nearestOf(picture.width, width), rows = nearestOf(picture.height, height);
  for (let y = 0, at = 0; y < height; y++) {
    const row = rows[y]! * picture.width;
    for (let x = 0; x < width; x++) {
      const from = (row + columns[x]!) * channels;
      for (let c = 0; c < channels; c++, at++) data[at] = picture.data[from + c]!;
    }
  }
  return { width, height, channels, data };
}

// The steps are summed up, as Pillow does: where a centre falls between two pixels, this decides.
function nearestOf(from: number, to: number): Int32Array {
  const result = new Int32Array(to), scale = from / to;
  for (let i = 0, at = scale * 0.5; i < to; i++, at += scale) {
    result[i] = Math.min(from - 1, Math.floor(at));
  }
  return result;
}

/** With colours multiplied by opacity, rounded. */
function multiplied({ width, height, data }: Picture): Picture {
  const result = data.slice();
  for (let i = 0; i < data.length; i += 4) {
    for (let c = 0; c < 3; c++) {
      const product = data[i + c]! * data[i + 3]! + 128;
      result[i + c] = (product >> 8) + product >> 8;
    }
  }
  return { width, height, channels: 4, data: result };
}

/** With colours divided by opacity. */
function divided({ width, height, data }: Picture): Picture {
  const result = data.slice();
  for (let i = 0; i < data.length; i += 4) {
    const alpha = data[i + 3]!;
    if (alpha === 0 || alpha === 255) continue;
    for (let c = 0; c < 3; c++) {
      result[i + c] = Math.min(255, Math.trunc(255 * data[i + c]! / alpha));
    }
  }
  return { width, height, channels: 4, data: result };
}
