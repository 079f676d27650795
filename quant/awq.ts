// AWQ (Lin et al. 2024, arXiv 2306.00978): columns whose inputs are large are multiplied by a factor before they are
// rounded, and their inputs are divided by it, so that rounding hurts them less. The factors of a layer
// are a power of the size of its inputs, s = |x|^alpha, and alpha is searched for by the error of the outputs. Sizes
// are root mean squares, and errors come from the Gram matrix of the inputs, so no input need be kept.
// Who divides the inputs, a norm or a product before, is no matter of this file.

import { type EncodeOptions, formatBytes, type NumberFormat } from "./format.ts";
import type { Steps } from "./steps.ts";

/** One of the matrices that read the same inputs. */
export interface ScaledMatrix {
  readonly format: NumberFormat;
  /** Whole rows, a sample will do. */
  readonly values: Float32Array;
  readonly options?: EncodeOptions;
}

/** What was found. */
export interface InputScales {
  /** By column: what the matrices are multiplied and their inputs divided by; around 1. */
  readonly scales: Float32Array;
  readonly alpha: number;
  /** Square error of the outputs with these scales, divided by that without any. */
  readonly ratio: number;
}

const STEPS = 10;
// Columns whose inputs are next to nothing are not divided by it.
const LEAST = 1e-4;

/**
 * Searches for the scales of the inputs of some matrices, in steps of a row of one of them.
 *
 * @param gram Σ x xᵀ over the inputs, [columns, columns].
 */
export function* searchScales(
  matrices: readonly ScaledMatrix[],
  gram: Float32Array,
  columns: number,
): Steps<InputScales> {
  const sizes = Float64Array.from(
    { length: columns },
    (_, i) => Math.sqrt(Math.max(0, gram[i * columns + i]!)),
  );
  let best: InputScales = { scales: new Float32Array(columns).fill(1), alpha: 0, ratio: 1 };
  function* error(scales: Float32Array): Steps<number> {
    let sum = 0;
    for (const matrix of matrices) sum += yield* scaledError(matrix, scales, gram);
    return sum;
  }
  const plain = yield* error(best.scales);
  if (!(plain > 0)) return best;
  for (let step = 1; step <= STEPS; step++) {
    const alpha = step / STEPS;
    const scales = powers(sizes, alpha);
    const ratio = (yield* error(scales)) / plain;
    if (ratio < best.ratio) best = { scales, alpha, ratio };
  }
  return best;
}

/** Sizes to a power, their least and greatest as far below 1 as above. */
function powers(sizes: Float64Array, alpha: number): Float32Array {
  const greatest = sizes.reduce((most, size) => Math.max(most, size), 0);
  if (greatest === 0) return new Float32Array(sizes.length).fill(1);
  const raised = sizes.map((size) => Math.max(size, LEAST * greatest) ** alpha);
  const [least, most] = [Math.min(...raised), Math.max(...raised)];
  return Float32Array.from(raised, (size) => size / Math.sqrt(least * most));
}

/** Σ e H eᵀ over the rows, where e is what rounding the scaled row changes in the row. */
function* scaledError(
  { format, values, options }: ScaledMatrix,
  scales: Float32Array,
  gram: Float32Array,
): Steps<number> {
  const columns = scales.length;
  const scaled = values.map((value, i) => value * scales[i % columns]!);
  const bytes = new Uint8Array(formatBytes(format, values.length));
  format.encode!(scaled, bytes, options);
  const errors = new Float32Array(values.length);
  format.decode(bytes, errors);
  for (let i = 0; i < errors.length; i++) {
    errors[i] = (errors[i]! - scaled[i]!) / scales[i % columns]!;
  }
  let sum = 0;
  for (let at = 0; at < errors.length; at += columns) {
    yield;
    for (let i = 0; i < columns; i++) {
      const row = i * columns;
      let product = 0;
      for (let k = 0; k < columns; k++) product += gram[row + k]! * errors[at + k]!;
      sum += product * errors[at + i]!;
    }
  }
  return sum;
}
