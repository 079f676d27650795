// Another rate for a sound: a polyphase filter as scipy.signal.resample_poly has it with its default window, a sinc
// under Kaiser's window of beta 5.0, ten zero crossings to each side, silence beyond both ends.

/** Rates that sounds are read at, in samples a second. */
const RATES = { least: 1000, most: 768_000 } as const;
/** Zero crossings of the filter on each side, and the window's shape. */
const CROSSINGS = 10, BETA = 5;

/** @throws {RangeError} If no sound has this rate. */
export function checkRate(rate: number): void {
  if (Number.isInteger(rate) && rate >= RATES.least && rate <= RATES.most) return;
  throw new RangeError(
    `Cannot resample ${rate} Hz: rates are whole numbers from ${RATES.least} to ${RATES.most}`,
  );
}

/**
 * Two rates in samples a second.
 * @category Speech
 */
export interface Rates {
  /** The rate that a sound has. */
  readonly from: number;
  /** The rate that is wanted. */
  readonly to: number;
}

/**
 * Resamples a sound.
 *
 * @returns ceil(length · to / from) samples; the given ones where the rates are equal.
 * @throws {RangeError} If a rate is no whole number from 1,000 to 768,000.
 *
 * @example
 * ```ts
 * import { resample } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * const second = new Float32Array(44_100).fill(0.25);
 * assertEquals(resample(second, { from: 44_100, to: 16_000 }).length, 16_000);
 * ```
 * @category Speech
 */
export function resample(samples: Float32Array, { from, to }: Rates): Float32Array {
  checkRate(from);
  checkRate(to);
  if (from === to) return samples;
  const divisor = greatestDivisor(from, to), up = to / divisor, down = from / divisor;
  const half = CROSSINGS * Math.max(up, down);
  const filter = lowPass(half, up);
  const result = new Float32Array(Math.ceil(samples.length * up / down));
  for (let k = 0; k < result.length; k++) {
    // Sample i stands at i · up of the common rate, the result at k · down.
    const centre = k * down;
    const first = Math.max(0, Math.ceil((centre - half) / up));
    const last = Math.min(samples.length - 1, Math.floor((centre + half) / up));
    let sum = 0;
    for (let i = first, tap = half + centre - first * up; i <= last; i++, tap -= up) {
      sum += samples[i]! * filter[tap]!;
    }
    result[k] = sum;
  }
  return result;
}

/** 2 · half + 1 taps that let through what both rates hold, times `gain`. */
function lowPass(half: number, gain: number): Float64Array {
  const cut = CROSSINGS / half;
  const taps = Float64Array.from({ length: 2 * half + 1 }, (_, i) => {
    const x = i - half, y = Math.PI * cut * x;
    const sinc = x === 0 ? 1 : Math.sin(y) / y;
    return sinc * bessel(BETA * Math.sqrt(1 - (x / half) ** 2));
  });
  const sum = taps.reduce((a, b) => a + b, 0);
  return taps.map((tap) => tap * gain / sum);
}

/** The modified Bessel function of the first kind and order 0. */
function bessel(x: number): number {
  let term = 1, sum = 1;
  for (let k = 1; term > sum * 1e-17; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
