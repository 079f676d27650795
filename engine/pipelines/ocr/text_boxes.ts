// From a map of how probable text is at each pixel to boxes around lines of text: the post-processing of
// differentiable binarization (Liao et al., "Real-time Scene Text Detection with Differentiable
// Binarization", 2020), with the constants of PP-OCRv4: threshold, dilation by one pixel, connected parts,
// smallest rectangle, mean score, growth by area / outline. Outlines of holes, which OpenCV lists too, are
// left out: inside a hole there is no text.

import {
  convexHull,
  type Corners,
  inOrder,
  isInside,
  measure,
  type Point,
  smallestRectangle,
} from "./rectangle.ts";
import { roundEven } from "./picture.ts";

/**
 * The settings of PP-OCRv4: the probability from which a pixel is text, the mean of them from which a box is kept, and its
 * growth: outwards by this × area / outline.
 */
const PIXEL_THRESHOLD = 0.3, BOX_THRESHOLD = 0.5, UNCLIP = 1.6;

/** Probabilities, row by row. */
export interface TextMap {
  readonly width: number;
  readonly height: number;
  readonly data: Float32Array;
}

const SMALLEST_SIDE = 3;
const MOST_BOXES = 1000;
const ARC_STEPS = 64;

/**
 * Boxes in pixels of a picture of `width` × `height`, in reading order: rows from the top, in a row from
 * the left.
 */
export function textBoxes(
  map: TextMap,
  { width, height }: { readonly width: number; readonly height: number },
): Corners[] {
  const boxes = connectedParts(map, PIXEL_THRESHOLD).slice(0, MOST_BOXES).flatMap((part) => {
    const { corners, shortSide } = smallestRectangle(part);
    if (shortSide < SMALLEST_SIDE || meanInside(map, corners) < BOX_THRESHOLD) return [];
    const grown = smallestRectangle(grow(corners, UNCLIP));
    if (grown.shortSide < SMALLEST_SIDE + 2) return [];
    const scaled = grown.corners.map(([x, y]): Point => [
      clamp(roundEven(x / map.width * width), width),
      clamp(roundEven(y / map.height * height), height),
    ]);
    const box = inOrder(scaled as unknown as Corners)
      .map(([x, y]): Point => [clamp(x, width - 1), clamp(y, height - 1)]) as unknown as Corners;
    return distance(box[0], box[1]) < 4 || distance(box[0], box[3]) < 4 ? [] : [box];
  });
  return readingOrder(boxes);
}

function clamp(value: number, most: number): number {
  return Math.min(Math.max(value, 0), most);
}

function distance([a, b]: Point, [c, d]: Point): number {
  return Math.hypot(a - c, b - d);
}

/** Ends of the rows of each connected part; diagonal neighbours are connected. */
function connectedParts({ width, height, data }: TextMap, threshold: number): Point[][] {
  const mask = new Uint8Array(width * height);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      // Dilation by a square of 2 × 2 that reaches to the left and up.
      mask[i] = Number(
        data[i]! > threshold || (x > 0 && data[i - 1]! > threshold) ||
          (y > 0 && (data[i - width]! > threshold || (x > 0 && data[i - width - 1]! > threshold))),
      );
    }
  }
  const parts: Point[][] = [], stack: number[] = [];
  for (let start = 0; start < mask.length; start++) {
    if (!mask[start]) continue;
    const part: Point[] = [];
    mask[start] = 0;
    stack.push(start);
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      const x = at % width, y = (at - x) / width;
      part.push([x, y]);
      for (let row = Math.max(0, y - 1); row <= Math.min(height - 1, y + 1); row++) {
        for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column++) {
          const next = row * width + column;
          if (!mask[next]) continue;
          mask[next] = 0;
          stack.push(next);
        }
      }
    }
    parts.push(convexHull(part));
  }
  return parts;
}

function meanInside({ width, height, data }: TextMap, corners: Corners): number {
  const box = corners.map(([x, y]): Point => [Math.trunc(x), Math.trunc(y)]) as unknown as Corners;
  const xs = box.map(([x]) => clamp(x, width - 1)), ys = box.map(([, y]) => clamp(y, height - 1));
  let sum = 0, count = 0;
  for (let y = Math.min(...ys); y <= Math.max(...ys); y++) {
    for (let x = Math.min(...xs); x <= Math.max(...xs); x++) {
      if (!isInside([x, y], box)) continue;
      sum += data[y * width + x]!;
      count++;
    }
  }
  return count === 0 ? 0 : sum / count;
}

// The outline moved outwards, corners round, on whole pixels.
function grow(corners: Corners, factor: number): Point[] {
  const { area, length } = measure(corners);
  const reach = area * factor / length;
  const [[ax, ay], [bx, by]] = corners;
  const angle = Math.atan2(by - ay, bx - ax);
  return corners.flatMap(([x, y]) =>
    Array.from({ length: ARC_STEPS }, (_, i): Point => {
      const at = angle + 2 * Math.PI * i / ARC_STEPS;
      return [
        Math.round(Math.trunc(x) + reach * Math.cos(at)),
        Math.round(Math.trunc(y) + reach * Math.sin(at)),
      ];
    })
  );
}

const SAME_ROW = 10;

// Boxes whose tops are near each other are one row.
function readingOrder(boxes: readonly Corners[]): Corners[] {
  const sorted = [...boxes].sort(([[ax, ay]], [[bx, by]]) => ay - by || ax - bx);
  for (let i = 0; i + 1 < sorted.length; i++) {
    for (let j = i; j >= 0; j--) {
      const [[ax, ay]] = sorted[j]!, [[bx, by]] = sorted[j + 1]!;
      if (Math.abs(by - ay) >= SAME_ROW || bx >= ax) break;
      [sorted[j], sorted[j + 1]] = [sorted[j + 1]!, sorted[j]!];
    }
  }
  return sorted;
}
