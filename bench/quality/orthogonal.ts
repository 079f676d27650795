// A seeded random orthogonal matrix that is cheap to multiply by: Q = (R ⊗ H) D, where D turns signs at
// random, H is the Hadamard matrix of the largest power of two in the width, over its root, and R is a
// random orthogonal matrix of the odd factor (QuaRot, arXiv 2404.00456, turns models the same way). A dense
// one would take fifty times as long for a vocabulary of 262,144 rows and mix values no better.
// A vector that is shorter than the width is continued by zeros: Q's first columns are then an isometry.

import { createRandom, nextDouble, type RandomState } from "../../engine/decode/sampling/random.ts";

/** An isometry from `size` to `width` dimensions. */
export interface Turn {
  readonly size: number;
  readonly width: number;
  /** Rows x of `size` values become rows Q x of `width` values. */
  rows(values: Float32Array): Float32Array;
}

/**
 * The isometry of a seed.
 *
 * @throws {RangeError} If the width is smaller than the size.
 */
export function createTurn(size: number, width: number, seed: number): Turn {
  if (width < size) throw new RangeError(`Cannot turn ${size} dimensions into ${width}`);
  const random = createRandom(seed);
  const signs = Float64Array.from({ length: size }, () => nextDouble(random) < 0.5 ? -1 : 1);
  const power = width & -width;
  const odd = width / power;
  const mixer = randomOrthogonal(odd, random).map((value) => value / Math.sqrt(power));
  const row = new Float64Array(width);
  const mixed = new Float64Array(width);
  return {
    size,
    width,
    rows(values) {
      const count = values.length / size;
      const out = new Float32Array(count * width);
      for (let n = 0; n < count; n++) {
        row.fill(0);
        for (let i = 0; i < size; i++) row[i] = values[n * size + i]! * signs[i]!;
        for (let start = 0; start < width; start += power) hadamard(row, start, power);
        mix(mixer, odd, power, row, mixed);
        out.set(mixed, n * width);
      }
      return out;
    },
  };
}

/** The fast Walsh–Hadamard transform, in place. */
function hadamard(row: Float64Array, start: number, length: number): void {
  for (let half = 1; half < length; half *= 2) {
    for (let block = start; block < start + length; block += 2 * half) {
      for (let i = block; i < block + half; i++) {
        const [a, b] = [row[i]!, row[i + half]!];
        row[i] = a + b;
        row[i + half] = a - b;
      }
    }
  }
}

/** y[i] = Σ R[i, j] x[j], where x and y are `odd` blocks of `power` values. */
function mix(
  mixer: Float64Array,
  odd: number,
  power: number,
  x: Float64Array,
  y: Float64Array,
): void {
  y.fill(0);
  for (let i = 0; i < odd; i++) {
    for (let j = 0; j < odd; j++) {
      const factor = mixer[i * odd + j]!;
      for (let k = 0; k < power; k++) y[i * power + k]! += factor * x[j * power + k]!;
    }
  }
}

/** Normal variates, made orthonormal row by row (Gram–Schmidt, twice for the sake of rounding). */
function randomOrthogonal(size: number, random: RandomState): Float64Array {
  const matrix = Float64Array.from({ length: size * size }, () => normal(random));
  const row = (i: number) => matrix.subarray(i * size, (i + 1) * size);
  for (let i = 0; i < size; i++) {
    for (let pass = 0; pass < 2; pass++) {
      for (let j = 0; j < i; j++) {
        const along = dot(row(i), row(j));
        for (let k = 0; k < size; k++) row(i)[k]! -= along * row(j)[k]!;
      }
    }
    const length = Math.sqrt(dot(row(i), row(i)));
    for (let k = 0; k < size; k++) row(i)[k]! /= length;
  }
  return matrix;
}

function normal(random: RandomState): number {
  const radius = Math.sqrt(-2 * Math.log(1 - nextDouble(random)));
  return radius * Math.cos(2 * Math.PI * nextDouble(random));
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
