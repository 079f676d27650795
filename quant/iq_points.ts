// What the decoders of the IQ2 and IQ3 formats share: writing one grid point with signs, and the rule
// that lets them store eight signs in seven bits.

import type { Grid } from "./iq_grids.ts";

/** Eight sign bits from the seven stored ones: the eighth makes the number of minus signs even. */
export function completeSigns(stored: number): number {
  let parity = stored ^ (stored >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return stored | ((parity & 1) << 7);
}

/**
 * Writes `scale` times a grid point.
 *
 * @param signs Bit i set negates coordinate i.
 */
export function writePoint(
  out: Float32Array,
  at: number,
  grid: Grid,
  point: number,
  scale: number,
  signs: number,
): void {
  const { dimensions, coordinates } = grid;
  for (let i = 0; i < dimensions; i++) {
    const value = scale * coordinates[point * dimensions + i]!;
    out[at + i] = (signs >> i) & 1 ? -value : value;
  }
}
