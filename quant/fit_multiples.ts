// One scale for many: the scales and minima of a super-block's parts are themselves stored in few bits, as
// multiples of a super-scale. Where parts weigh differently, the super-scale is searched for around the
// obvious one, least squares at each trial.

/** Super-scale and the multiples of it. */
export interface Multiples {
  readonly unit: number;
  readonly codes: Uint8Array;
}

const TRIALS = 9;

/**
 * Fits `unit * code` to `parts`, none of them negative.
 *
 * @param weights How much each part counts.
 * @param top Greatest code.
 */
export function fitMultiples(parts: Float32Array, weights: Float32Array, top: number): Multiples {
  const greatest = Math.max(0, ...parts);
  if (greatest === 0) return { unit: 0, codes: new Uint8Array(parts.length) };
  let best = Infinity, unit = greatest / top;
  for (let trial = -TRIALS; trial <= TRIALS; trial++) {
    const inverse = (top + 0.1 * trial) / greatest;
    let products = 0, squares = 0;
    parts.forEach((part, i) => {
      const code = codeOf(part * inverse, top);
      products += weights[i]! * part * code;
      squares += weights[i]! * code * code;
    });
    if (squares === 0) continue;
    const fitted = products / squares;
    const error = errorOf(parts, weights, fitted, top);
    if (error < best) [best, unit] = [error, fitted];
  }
  return { unit, codes: Uint8Array.from(parts, (part) => codeOf(part / unit, top)) };
}

function errorOf(parts: Float32Array, weights: Float32Array, unit: number, top: number): number {
  return parts.reduce((sum, part, i) => {
    const error = part - unit * codeOf(part / unit, top);
    return sum + weights[i]! * error * error;
  }, 0);
}

function codeOf(multiple: number, top: number): number {
  return Math.max(0, Math.min(top, Math.round(multiple)));
}
