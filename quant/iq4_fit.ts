// What the encoders of IQ4_NL and IQ4_XS share: the sixteen levels, the nearest one, and the search for
// a block's scale, after ggml's reference (each value weighs its square; no importance matrix).

import { signedExtreme } from "./extremes.ts";
import { ZERO_LIMIT } from "./fit.ts";

const f = Math.fround;

/** Levels of IQ4_NL and IQ4_XS by code, in ascending order. */
export const IQ4_LEVELS: Int8Array = new Int8Array([
  ...[-127, -104, -83, -65, -49, -35, -22, -10],
  ...[1, 13, 25, 38, 53, 69, 89, 113],
]);

/** Code of the level nearest to `value`, the upper one of two as near. */
export function nearestLevel(value: number): number {
  let code = 0;
  while (code < 15 && 2 * value >= IQ4_LEVELS[code]! + IQ4_LEVELS[code + 1]!) code++;
  return code;
}

/** How {@linkcode fitIq4} searches. */
export interface Iq4Search {
  /** The level that the value furthest from zero is put on to begin with. */
  readonly first: number;
  /** How far, in levels, that place is then moved to either side. */
  readonly trials: number;
  /** By index of the value; default: its square. */
  readonly weights?: Float32Array | undefined;
}

/**
 * Fits `scale * level` to 32 values.
 *
 * @returns The scale, of either sign.
 */
export function fitIq4(
  values: Float32Array,
  start: number,
  { first, trials, weights }: Iq4Search,
): number {
  const extreme = signedExtreme(values, start, 32);
  if (Math.abs(extreme) < ZERO_LIMIT) return 0;
  let scale = 0;
  let best = 0;
  const tryInverse = (inverse: number, isFirst: boolean) => {
    let sumLX = 0;
    let sumL2 = 0;
    for (let i = start; i < start + 32; i++) {
      const x = values[i]!;
      const weight = weights ? weights[i]! : f(x * x);
      const weighted = f(weight * IQ4_LEVELS[nearestLevel(f(inverse * x))]!);
      sumLX = f(sumLX + f(weighted * x));
      sumL2 = f(sumL2 + f(weighted * IQ4_LEVELS[nearestLevel(f(inverse * x))]!));
    }
    if (!isFirst && !(sumL2 > 0 && f(sumLX * sumLX) > f(best * sumL2))) return;
    scale = sumL2 > 0 ? f(sumLX / sumL2) : 0;
    best = f(scale * sumLX);
  };
  tryInverse(f(1 / f(extreme / first)), true);
  for (let move = -trials; move <= trials && trials > 0; move++) {
    tryInverse(f((move + IQ4_LEVELS[0]!) / extreme), false);
  }
  return scale;
}
