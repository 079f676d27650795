// embedImage(): one vector a picture; of CLIP and SigLIP it lies in the space of embed()'s vectors of texts.

import { UnsupportedError } from "../../errors.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { unitVector } from "../vectors.ts";
import {
  type ImageInput,
  type ImageOptions,
  pixelsOf,
  towerOf,
  type VisionModel,
} from "./image_input.ts";

/**
 * Options of {@linkcode embedImage}.
 * @category Pictures
 */
export interface EmbedImageOptions extends ImageOptions {
  /** Whether vectors are scaled to length 1, so that their product is the cosine. Default true. */
  readonly normalize?: boolean;
}

const KEYS: OptionKeys<EmbedImageOptions> = { normalize: true, signal: true };

/**
 * Vectors of pictures, near each other where the pictures are alike, and with CLIP or SigLIP near those that
 * {@linkcode embed} makes of texts that describe them.
 *
 * @param model CLIP, SigLIP, ViT, DINOv2 or another encoder of pictures, or a graph of {@linkcode loadImageGraph}.
 * @param images A picture or several, or the tensor that {@linkcode preparePictures} makes of them.
 * @returns One vector for each picture.
 * @throws {UnsupportedError} If the model looks at no pictures or gives no vectors of them.
 * @throws {RangeError} If a tensor has the wrong shape.
 *
 * @example
 * ```ts
 * import { embedImage, load, readPicture } from "@troodon/troodon";
 * import { assertAlmostEquals } from "@std/assert";
 *
 * using model = await load("classifier");
 * const picture = await readPicture(await Deno.readFile("page.png"));
 * const [vector] = await embedImage(model, picture);
 * assertAlmostEquals(Math.hypot(...vector!), 1, 1e-6);
 * ```
 * @category Pictures
 */
export async function embedImage(
  model: VisionModel,
  images: ImageInput,
  options: EmbedImageOptions = {},
): Promise<Float32Array[]> {
  checkOptionKeys(options, { of: "embedImage()", known: KEYS });
  const { normalize = true, signal } = options;
  const tower = towerOf(model, "embed pictures");
  if (!tower.hasVectors) {
    throw new UnsupportedError("cannot embed pictures: it gives scores alone", {
      file: tower.name,
    });
  }
  const vectors: Float32Array[] = [];
  await tower.encode(pixelsOf(tower, images), {
    read: ({ vector }) =>
      void vectors.push(normalize ? unitVector(vector.slice()) : vector.slice()),
    signal,
  });
  return vectors;
}
