// How far decoded values are from what was stored: magnitudes of the error, as LlamaF's table IV has them,
// and its root mean square as a share of that of the values.

/** Errors of a tensor or of many. */
export interface ErrorStatistics {
  /** Values compared. */
  readonly count: number;
  /** Greatest, smallest and mean magnitude of the error, and the standard deviation of magnitudes. */
  readonly max: number;
  readonly min: number;
  readonly mean: number;
  readonly std: number;
  /** Root mean square of the error, divided by that of the values; 0 where all values are 0. */
  readonly relative: number;
}

/** Sums from which {@linkcode ErrorStatistics} follow. */
export interface ErrorSums {
  count: number;
  max: number;
  min: number;
  sum: number;
  squares: number;
  valueSquares: number;
}

/** No values yet. */
export function createErrorSums(): ErrorSums {
  return { count: 0, max: 0, min: Infinity, sum: 0, squares: 0, valueSquares: 0 };
}

/** Adds the errors of `decoded`. */
export function addErrors(sums: ErrorSums, values: Float32Array, decoded: Float32Array): void {
  let { max, min, sum, squares, valueSquares } = sums;
  for (let i = 0; i < values.length; i++) {
    const error = Math.abs(decoded[i]! - values[i]!);
    if (error > max) max = error;
    if (error < min) min = error;
    sum += error;
    squares += error * error;
    valueSquares += values[i]! * values[i]!;
  }
  Object.assign(sums, { count: sums.count + values.length, max, min, sum, squares, valueSquares });
}

/** Adds other sums. */
export function mergeErrors(sums: ErrorSums, other: ErrorSums): void {
  sums.max = Math.max(sums.max, other.max);
  sums.min = Math.min(sums.min, other.min);
  for (const key of ["count", "sum", "squares", "valueSquares"] as const) sums[key] += other[key];
}

/** The statistics of sums. */
export function errorStatistics(
  { count, max, min, sum, squares, valueSquares }: ErrorSums,
): ErrorStatistics {
  if (count === 0) return { count, max: 0, min: 0, mean: 0, std: 0, relative: 0 };
  const mean = sum / count;
  const std = Math.sqrt(Math.max(0, squares / count - mean * mean));
  const relative = valueSquares === 0 ? 0 : Math.sqrt(squares / valueSquares);
  return { count, max, min, mean, std, relative };
}
