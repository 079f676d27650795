// Equations 1 and 2 of Inferflow: a block is spread between its least and greatest value.
//   ends:     q = round((w - min) / (max - min) * top),   w' = q * scale + min, scale = (max - min) / top
//   midpoint: q = trunc((w - min) / scale), scale = (max - min) / (top + 1), w' = the middle of the cell
// In float32, as the upstream program computes it. Blocks without extent get code 0 and are met exactly;
// there is no absolute threshold below which a scale counts as zero (upstream's 1e-5 flushes tiny blocks).

import { maximum, minimum } from "./extremes.ts";
import { storableScale } from "./finite.ts";

const f = Math.fround;

/** How a block is cut into levels. */
export interface AffineGrid {
  /** Greatest code that is stored. */
  readonly top: number;
  /** Steps between the ends; below `top` where upstream leaves the top code unused. Default `top`. */
  readonly steps?: number;
  /** Levels lie in the middle of cells instead of on the ends. */
  readonly midpoint?: boolean;
}

/** What a block of {@linkcode encodeAffine} decodes by: w' = code * scale + base. */
export interface AffineBlock {
  readonly scale: number;
  readonly base: number;
}

/** Cuts `codes.length` values from `start` on into codes, and returns what they decode by, unrounded. */
export function encodeAffine(
  values: Float32Array,
  start: number,
  codes: Uint8Array,
  { top, steps = top, midpoint = false }: AffineGrid,
): AffineBlock {
  const count = codes.length;
  const min = minimum(values, start, count);
  const range = f(maximum(values, start, count) - min);
  const scale = storableScale(f(range / (midpoint ? top + 1 : steps)));
  const inverse = scale === 0 ? 0 : f(1 / scale);
  const half = midpoint ? 0 : 0.5;
  for (let j = 0; j < count; j++) {
    codes[j] = Math.min(top, Math.floor(f(f(values[start + j]! - min) * inverse) + half));
  }
  return { scale, base: midpoint ? f(min + f(scale / 2)) : min };
}
