// A box of a picture as a picture of its own: the projective map that takes the result's corners to the
// box's (Heckbert, "Fundamentals of Texture Mapping and Image Warping", 1989), sampled by cubic convolution
// with a = -0.75, edges repeated, as OpenCV's warpPerspective does.

import type { Picture } from "../../formats/media/picture.ts";
import { blankPicture } from "./picture.ts";
import type { Corners, Point } from "./rectangle.ts";

/** What is inside the box, upright, as wide and high as the box's longer sides. */
export function cropBox(picture: Picture, box: Corners): Picture {
  const [a, b, c, d] = box;
  const width = Math.trunc(Math.max(length(a, b), length(c, d)));
  const height = Math.trunc(Math.max(length(a, d), length(b, c)));
  const result = blankPicture(Math.max(1, width), Math.max(1, height));
  const map = squareTo(box);
  const sampled = new Float64Array(3);
  for (let y = 0, at = 0; y < result.height; y++) {
    for (let x = 0; x < result.width; x++, at += 3) {
      sampleCubic(picture, map(x / result.width, y / result.height), sampled);
      for (let i = 0; i < 3; i++) {
        result.data[at + i] = Math.min(255, Math.max(0, Math.round(sampled[i]!)));
      }
    }
  }
  return result;
}

function length([a, b]: Point, [c, d]: Point): number {
  return Math.hypot(a - c, b - d);
}

/** Takes the unit square to four corners. */
function squareTo(
  [[x0, y0], [x1, y1], [x2, y2], [x3, y3]]: Corners,
): (u: number, v: number) => Point {
  const dx1 = x1 - x2, dx2 = x3 - x2, sx = x0 - x1 + x2 - x3;
  const dy1 = y1 - y2, dy2 = y3 - y2, sy = y0 - y1 + y2 - y3;
  const det = dx1 * dy2 - dx2 * dy1;
  const g = (sx * dy2 - dx2 * sy) / det, h = (dx1 * sy - sx * dy1) / det;
  const a = x1 - x0 + g * x1, b = x3 - x0 + h * x3;
  const d = y1 - y0 + g * y1, e = y3 - y0 + h * y3;
  return (u, v) => {
    const w = g * u + h * v + 1;
    return [(a * u + b * v + x0) / w, (d * u + e * v + y0) / w];
  };
}

function sampleCubic({ width, height, data }: Picture, [x, y]: Point, result: Float64Array): void {
  const left = Math.floor(x), top = Math.floor(y);
  const across = cubicWeights(x - left), down = cubicWeights(y - top);
  result.fill(0);
  for (let j = 0; j < 4; j++) {
    const row = Math.min(height - 1, Math.max(0, top + j - 1)) * width;
    for (let i = 0; i < 4; i++) {
      const at = 3 * (row + Math.min(width - 1, Math.max(0, left + i - 1)));
      const weight = across[i]! * down[j]!;
      for (let c = 0; c < 3; c++) result[c]! += weight * data[at + c]!;
    }
  }
}

const A = -0.75;

// Keys' cubic convolution at 1 + t, t, 1 - t; the fourth makes the sum 1.
function cubicWeights(t: number): readonly number[] {
  const outer = ((A * (t + 1) - 5 * A) * (t + 1) + 8 * A) * (t + 1) - 4 * A;
  const near = ((A + 2) * t - (A + 3)) * t * t + 1;
  const s = 1 - t, far = ((A + 2) * s - (A + 3)) * s * s + 1;
  return [outer, near, far, 1 - outer - near - far];
}
