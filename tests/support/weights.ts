// Random matrices in every number format, for kernel tests: any codes, and scales that are ordinary,
// negative, zero, subnormal or large, but finite. Seeded, so a failure can be repeated.

import { formatBytes, getFormat } from "../../quant/mod.ts";
import { f16ToF32, f32ToF16 } from "../../quant/half.ts";

/** A generator of numbers in [0, 1), xorshift. */
export function random(seed: number): () => number {
  let state = (seed * 2654435761 + 1) | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Normally distributed numbers, now and then scaled far up or down in a run of 32. */
export function randomValues(count: number, seed: number): Float32Array {
  const next = random(seed);
  const values = new Float32Array(count);
  let size = 1;
  for (let i = 0; i < count; i++) {
    if (i % 32 === 0) size = next() < 0.1 ? 10 ** (8 * next() - 4) : 1;
    values[i] = size * (next() + next() + next() + next() - 2);
  }
  return values;
}

/** Offsets of the half-float scales in a block. */
const SCALES: Readonly<Record<string, readonly number[]>> = {
  F16: [0],
  Q4_0: [0],
  Q4_1: [0, 2],
  Q5_0: [0],
  Q5_1: [0, 2],
  Q8_0: [0],
  Q2_K: [80, 82],
  Q3_K: [108],
  Q4_K: [0, 2],
  Q5_K: [0, 2],
  Q6_K: [208],
};

/** A matrix as a file stores it, and its numbers. */
export interface RandomWeight {
  readonly bytes: Uint8Array;
  readonly values: Float32Array;
}

/** A random matrix; `extreme` makes every code bit 1 and mixes in the scales that hurt most. */
export function randomWeight(
  format: string,
  rows: number,
  columns: number,
  seed: number,
  extreme = false,
): RandomWeight {
  const record = getFormat(format);
  const bytes = new Uint8Array(formatBytes(record, rows * columns));
  const next = random(seed);
  const view = new DataView(bytes.buffer);
  if (format === "F32" || format === "BF16") {
    record.encode!(randomValues(rows * columns, seed), bytes);
  } else {
    for (let i = 0; i < bytes.length; i++) bytes[i] = extreme ? 255 : Math.floor(256 * next());
    for (let block = 0; block < bytes.length; block += record.blockBytes) {
      if (format === "NB4") writeWideScales(view, block, next, extreme);
      else for (const at of SCALES[format]!) view.setUint16(block + at, scale(next, extreme), true);
      // -128, which encoders never write
      if (extreme && format === "Q8_0") bytes.fill(128, block + 2, block + 34);
    }
  }
  const values = new Float32Array(rows * columns);
  record.decode(bytes, values);
  return { bytes, values };
}

// Half-float values, so that a product with a code is exact and all ways to multiply agree.
function writeWideScales(
  view: DataView,
  block: number,
  next: () => number,
  extreme: boolean,
): void {
  for (const at of [0, 4]) view.setFloat32(block + at, f16ToF32(scale(next, extreme)), true);
}

function scale(next: () => number, extreme: boolean): number {
  const kind = next();
  const sign = next() < 0.5 ? 0x8000 : 0;
  if (kind < 0.05) return sign;
  if (kind < 0.1) return sign | Math.floor(1024 * next());
  if (extreme && kind < 0.4) return sign | 0x7bff;
  return sign | f32ToF16(0.001 + 0.1 * next());
}
