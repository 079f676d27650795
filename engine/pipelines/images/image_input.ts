// Pictures on their way into a model that looks at them: prepared as its files say, or given as the tensor that comes of
// that.

import type { PictureTower } from "../../decode/pictures/tower.ts";
import { LoadedModel } from "../../decode/loaded_model.ts";
import type { Model } from "../../decode/model.ts";
import type { ImageGraph } from "./image_graph.ts";
import { UnsupportedError } from "../../errors.ts";
import type { Picture } from "../../formats/media/picture.ts";
import { type PixelValues, preparePictures } from "../../pictures/prepare.ts";

/**
 * Pictures, or the tensor that {@linkcode preparePictures} makes of them.
 * @category Pictures
 */
export type ImageInput = Picture | readonly Picture[] | PixelValues;

/**
 * Options of all that looks at pictures.
 * @category Pictures
 */
export interface ImageOptions {
  /** Stops between two pieces of a long step, with its reason. */
  readonly signal?: AbortSignal;
}

/**
 * A model that looks at pictures, or a graph that does.
 * @category Pictures
 */
export type VisionModel = Model | ImageGraph;

/**
 * The encoder of pictures of a model.
 *
 * @param use What for, for the message.
 * @throws {TypeError} If the model is none of this library.
 * @throws {UnsupportedError} If it looks at no pictures.
 */
export function towerOf(model: VisionModel, use: string): PictureTower {
  if (model instanceof Object && "tower" in model) return model.tower;
  if (!(model instanceof LoadedModel)) {
    throw new TypeError(
      `Cannot ${use}: give a model from load(), or a graph from loadImageGraph()`,
    );
  }
  model.checkUsable();
  const { tower, name } = model.runtime;
  if (tower) return tower;
  throw new UnsupportedError(`cannot ${use}: it is a model of texts`, {
    file: name,
    remedy: "Load a model of pictures, such as hf:openai/clip-vit-base-patch32",
  });
}

/**
 * Pictures as a tower takes them.
 *
 * @throws {TypeError} If one is no picture.
 * @throws {RangeError} If there is none, its data are of another length, or a tensor has another number of channels or size than the tower takes.
 * @throws {UnsupportedError} If the model's files do not say how pictures are prepared.
 */
export function pixelsOf(tower: PictureTower, images: ImageInput): PixelValues {
  const pixels = images instanceof Object && "dims" in images ? images : prepared(tower, images);
  const { data, dims } = pixels, [count, ...sizes] = dims;
  if (dims.length !== 4 || data.length !== dims.reduce((product, size) => product * size, 1)) {
    throw new RangeError(
      `Cannot look at a tensor [${dims}] of ${data.length} values: it is [pictures, channels, height, width]`,
    );
  }
  if (count === 0) throw new RangeError("There is no picture to look at");
  const wrong = tower.pixels.some((size, i) => size !== undefined && size !== sizes[i]);
  if (wrong) {
    const wanted = tower.pixels.map((size) => size ?? "any").join(", ");
    throw new RangeError(
      `Cannot look at pictures [${sizes.join(", ")}]: ${tower.name} takes [${wanted}] ` +
        "(channels, height, width)",
    );
  }
  return pixels;
}

function prepared(
  { processor, name }: PictureTower,
  images: Picture | readonly Picture[],
): PixelValues {
  if (!processor) {
    throw new UnsupportedError("does not say how pictures are prepared for it", {
      file: name,
      place: "preprocessor_config.json",
      remedy: "Put that file beside the weights, or give the tensor that preparePictures() makes",
    });
  }
  return preparePictures([images].flat() as readonly Picture[], processor);
}
