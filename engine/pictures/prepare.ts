// Pictures as numbers that networks take, by the steps of transformers' image processors: resized, the middle cut out,
// scaled, normalised, colour by colour.

import { UnsupportedError } from "../errors.ts";
import { checkPicture, type Picture, withAlpha } from "../formats/media/picture.ts";
import { centerCrop } from "./crop.ts";
import { type ImageProcessor, readImageProcessor, type WantedSize } from "./image_processor.ts";
import { resizePicture } from "./resize.ts";

/**
 * Pictures as a network takes them, `pixel_values`.
 * @category Pictures
 */
export interface PixelValues {
  /** Colour planes, picture by picture, row by row. */
  readonly data: Float32Array;
  /** [pictures, 3, height, width]. */
  readonly dims: readonly [number, number, number, number];
}

/**
 * Prepares pictures for a model as transformers' image processors do.
 *
 * @param config Content of the model's preprocessor_config.json.
 * @returns A tensor for the graph's input `pixel_values`. A fourth channel is dropped, as transformers does.
 * @throws {UnsupportedError} If the config names a processor that is not known.
 * @throws {FormatError} If the config has a wrong value.
 * @throws {TypeError | RangeError} If there are no pictures, one is none, or the config leaves them at different sizes.
 *
 * @example
 * ```ts
 * import { preparePictures, readPicture } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const picture = await readPicture(await Deno.readFile("page.png"));
 * const config = { image_processor_type: "CLIPImageProcessor" };
 * assertEquals(preparePictures([picture], config).dims, [1, 3, 224, 224]);
 * ```
 * @category Pictures
 */
export function preparePictures(
  pictures: readonly Picture[],
  config: Readonly<Record<string, unknown>>,
): PixelValues {
  const processor = readImageProcessor(config);
  if (processor.cut) {
    throw new UnsupportedError("makes several pictures of one, or pictures of several sizes", {
      file: "preprocessor_config.json",
      place: "image_processor_type",
      remedy: "Use chat() with the model that it is for",
    });
  }
  const sized = pictures.map((picture) => {
    checkPicture(picture);
    return sizedBy(processor, withAlpha(picture, "drop"));
  });
  const [first] = sized;
  if (!first) throw new RangeError("There is no picture to prepare");
  const { width, height } = first, values = 3 * width * height;
  const data = new Float32Array(sized.length * values);
  const tables = colourTables(processor);
  sized.forEach((picture, i) => {
    if (picture.width !== width || picture.height !== height) {
      throw new RangeError(
        `Pictures of different sizes (${width} × ${height}, ${picture.width} × ${picture.height}) ` +
          "cannot be one tensor. Prepare each by itself",
      );
    }
    writePlanes(picture, { tables, target: data.subarray(i * values, (i + 1) * values) });
  });
  return { data, dims: [sized.length, 3, height, width] };
}

/** A picture resized and cropped. */
export function sizedBy({ resize, crop }: ImageProcessor, picture: Picture): Picture {
  const resized = resize
    ? resizePicture(picture, { ...sizeFor(picture, resize.size), filter: resize.filter })
    : picture;
  return crop ? centerCrop(resized, crop) : resized;
}

function sizeFor(picture: Picture, wanted: WantedSize) {
  if (!("shortestEdge" in wanted)) return wanted;
  const { width, height } = picture, edge = wanted.shortestEdge;
  const longer = Math.trunc(edge * Math.max(width, height) / Math.min(width, height));
  return width <= height ? { width: edge, height: longer } : { width: longer, height: edge };
}

/** What each of the 256 values becomes, by colour. */
export function colourTables(processor: ImageProcessor): Float32Array[] {
  return [0, 1, 2].map((colour) => valuesOf(processor, colour));
}

/** In float32 from step to step, as numpy does it. */
function valuesOf({ scale, mean, deviation }: ImageProcessor, colour: number): Float32Array {
  const low = Math.fround(mean[colour]!), width = Math.fround(deviation[colour]!);
  return Float32Array.from(
    { length: 256 },
    (_, value) => Math.fround(Math.fround(value * scale) - low) / width,
  );
}

/** Writes the colours of a picture as numbers, plane by plane. */
export function writePlanes(
  { width, height, data }: Picture,
  { tables, target }: {
    readonly tables: readonly Float32Array[];
    readonly target: Float32Array;
  },
): void {
  const plane = width * height;
  for (let c = 0; c < 3; c++) {
    const table = tables[c]!;
    for (let i = 0, from = c, to = c * plane; i < plane; i++, from += 3) {
      target[to + i] = table[data[from]!]!;
    }
  }
}
