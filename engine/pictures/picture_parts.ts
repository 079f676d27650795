// What a network that sees is shown of a picture: it as a whole at a fixed size, or cut into tiles with the whole behind
// them (Idefics3, SmolVLM), or once at about its own size (Qwen2-VL). As transformers' image processors do it
// (models/idefics3/image_processing_idefics3.py, models/qwen2_vl/image_processing_qwen2_vl.py).

import { type Picture, withAlpha } from "../formats/media/picture.ts";
import type { ImageProcessor, PictureCut } from "./image_processor.ts";
import { sizedBy } from "./prepare.ts";
import { type ResizeFilter, resizePicture } from "./resize.ts";

/** The parts of a picture. */
export interface PictureParts {
  /** Tiles row by row, then the whole; or the whole alone. */
  readonly parts: readonly Picture[];
  /** How many rows and columns of tiles there are; absent: none. */
  readonly tiles?: { readonly rows: number; readonly columns: number } | undefined;
}

/** transformers' bound of an edge, above which pictures of tiles are made smaller. */
const MOST_EDGE = 4096;
/** Longer shapes have no size of their own. */
const MOST_RATIO = 200;

/**
 * Cuts a picture as a processor says.
 *
 * @throws {RangeError} If it is 200 times as long as it is wide, and may keep its shape.
 */
export function partsOf(processor: ImageProcessor, picture: Picture): PictureParts {
  const plain = withAlpha(picture, "drop"), { cut } = processor;
  if (!cut) return { parts: [sizedBy(processor, plain)] };
  const { rule, filter } = cut;
  if (rule.kind === "tiles") return tilesOf(plain, { rule, filter });
  return { parts: [resizePicture(plain, { ...freeSize(plain, rule), filter })] };
}

interface Size {
  readonly width: number;
  readonly height: number;
}

function tilesOf(
  picture: Picture,
  { rule: { longestEdge, side, splits }, filter }: {
    readonly rule: Extract<PictureCut, { readonly kind: "tiles" }>;
    readonly filter: ResizeFilter;
  },
): PictureParts {
  const resized = resizePicture(picture, { ...byLongestEdge(picture, longestEdge), filter });
  const whole = (from: Picture) => resizePicture(from, { width: side, height: side, filter });
  if (!splits) return { parts: [whole(resized)] };
  const full = resizePicture(resized, { ...wholeTiles(resized, side), filter });
  const rows = full.height / side, columns = full.width / side;
  if (rows === 1 && columns === 1) return { parts: [full] };
  const tiles = Array.from({ length: rows * columns }, (_, i) =>
    square(full, {
      side,
      x: i % columns * side,
      y: Math.floor(i / columns) * side,
    }));
  return { parts: [...tiles, whole(full)], tiles: { rows, columns } };
}

/** The longer edge as it is asked for, the other one by its share and even. */
function byLongestEdge({ width, height }: Size, edge: number): Size {
  const ratio = width / height, even = (length: number) => length + length % 2;
  const size = width >= height
    ? { width: edge, height: even(Math.trunc(edge / ratio)) }
    : { width: even(Math.trunc(edge * ratio)), height: edge };
  return below({ width: Math.max(1, size.width), height: Math.max(1, size.height) });
}

function below(size: Size): Size {
  const { width, height } = size, ratio = width / height;
  if (Math.max(width, height) <= MOST_EDGE) return size;
  return width >= height
    ? { width: MOST_EDGE, height: Math.max(1, Math.trunc(MOST_EDGE / ratio)) }
    : { width: Math.max(1, Math.trunc(MOST_EDGE * ratio)), height: MOST_EDGE };
}

/** Both edges as whole tiles, by the longer one. */
function wholeTiles({ width, height }: Size, side: number): Size {
  const ratio = width / height, up = (length: number) => Math.ceil(length / side) * side;
  if (width >= height) {
    const wide = up(width);
    return { width: wide, height: up(Math.trunc(wide / ratio)) };
  }
  const high = up(height);
  return { width: up(Math.trunc(high * ratio)), height: high };
}

function square(
  { width, data }: Picture,
  { x, y, side }: { readonly x: number; readonly y: number; readonly side: number },
): Picture {
  const rows = new Uint8Array(3 * side * side);
  for (let row = 0; row < side; row++) {
    const from = 3 * ((y + row) * width + x);
    rows.set(data.subarray(from, from + 3 * side), 3 * row * side);
  }
  return { width: side, height: side, data: rows };
}

/** Sides that are multiples of a step, their product within bounds. */
function freeSize(
  { width, height }: Size,
  { least, most, step }: Extract<PictureCut, { readonly kind: "free" }>,
): Size {
  if (Math.max(width, height) > MOST_RATIO * Math.min(width, height)) {
    throw new RangeError(
      `Cannot show a picture of ${width} × ${height} pixels: one edge is more than ${MOST_RATIO} times the other`,
    );
  }
  const sides = (each: (length: number) => number) => ({
    width: each(width) * step,
    height: each(height) * step,
  });
  // A side below half a step is none here, so that the picture has too few pixels.
  const near = sides((length) => toEven(length / step)), pixels = near.width * near.height;
  if (pixels > most) {
    const shrink = Math.sqrt(width * height / most);
    return sides((length) => Math.max(1, Math.floor(length / shrink / step)));
  }
  if (pixels >= least) return near;
  const grow = Math.sqrt(least / (width * height));
  return sides((length) => Math.ceil(length * grow / step));
}

/** Rounded, halves to the even number, as Python does. */
function toEven(value: number): number {
  const floor = Math.floor(value), rest = value - floor;
  return rest === 0.5 ? floor + floor % 2 : Math.round(value);
}
