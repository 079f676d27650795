// Which part of a picture is to be painted: a mask's bright pixels. Latents outside of it are those of the picture, with
// as much noise as the step has; networks that were trained for it (nine channels) are shown mask and picture instead.

import type { Picture } from "../../formats/media/picture.ts";
import { resizePicture } from "../../pictures/resize.ts";
import type { Tensor } from "../../models/networks/network.ts";
import { planesOf } from "./autoencoder.ts";

/** A mask at the size of the picture and of its latents: 1 where it is to be painted. */
export interface Mask {
  readonly pixels: Float32Array;
  readonly latents: Float32Array;
}

/** Reads a mask: grey levels of 50 % and more are painted. Latents take its pixels at their corners, as in PyTorch. */
export function maskOf(
  picture: Picture,
  { width, height, factor }: {
    readonly width: number;
    readonly height: number;
    readonly factor: number;
  },
): Mask {
  const sized = picture.width === width && picture.height === height
    ? picture
    : resizePicture(picture, { width, height, filter: "lanczos" });
  const { data: planes } = planesOf(sized), count = width * height;
  const pixels = Float32Array.from({ length: count }, (_, i) => {
    // Luma as PIL's "L" weighs it, of numbers from -1 to 1.
    const grey = 0.299 * planes[i]! + 0.587 * planes[count + i]! + 0.114 * planes[2 * count + i]!;
    return grey >= 0 ? 1 : 0;
  });
  const columns = width / factor;
  const latents = Float32Array.from({ length: columns * (height / factor) }, (_, i) => {
    const row = Math.floor(i / columns) * factor, column = (i % columns) * factor;
    return pixels[row * width + column]!;
  });
  return { pixels, latents };
}

/** Planes of the picture, with nothing where it is to be painted. */
export function withoutMasked({ data, dims }: Tensor, { pixels }: Mask): Tensor {
  return { data: data.map((value, i) => value * (1 - pixels[i % pixels.length]!)), dims };
}
