// What an encoder must not store: NaN and infinities, and scales that overflow 16 bits. A block with one
// such number decodes to nothing but such numbers, so the value is refused where it stands. Also what
// becomes of scales that 16 bits hold badly.

import { f32ToF16 } from "./half.ts";

const LARGEST_F16 = 65504;

/** Index of the first NaN or infinity in `values`, or -1. */
export function findNonFinite(values: Float32Array): number {
  // A sum is finite only if all its terms are, so most values are judged in runs.
  for (let start = 0; start < values.length; start += 256) {
    const end = Math.min(start + 256, values.length);
    let sum = 0;
    for (let i = start; i < end; i++) sum += values[i]!;
    if (Number.isFinite(sum)) continue;
    for (let i = start; i < end; i++) if (!Number.isFinite(values[i]!)) return i;
  }
  return -1;
}

/**
 * Refuses NaN and infinities.
 *
 * @throws {RangeError} With the index of the first one in `values`.
 */
export function checkFinite(format: string, values: Float32Array): void {
  const index = findNonFinite(values);
  if (index < 0) return;
  throw new RangeError(`Cannot store value ${index} as ${format}: it is ${values[index]}`);
}

/**
 * The binary16 code of a scale or offset.
 *
 * @param start Index of the first value of its block, for the message.
 * @throws {RangeError} If it is beyond 65504 in magnitude.
 */
export function parameterCode(format: string, value: number, start: number): number {
  if (Math.abs(value) <= LARGEST_F16) return f32ToF16(value);
  throw new RangeError(
    `Cannot store the block from value ${start} as ${format}: its scale or offset ${value} is beyond ` +
      `${LARGEST_F16}, the greatest 16-bit float`,
  );
}

/**
 * A scale that 16 bits can hold well: one among the subnormals is rounded up to the next of them, since
 * one rounded down could clip a block of tiny values to a half.
 */
export function storableScale(scale: number): number {
  const magnitude = Math.abs(scale);
  if (magnitude >= 2 ** -14) return scale;
  return Math.sign(scale) * Math.ceil(magnitude * 2 ** 24) * 2 ** -24;
}
