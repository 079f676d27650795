// How far decoded values are from what was stored: magnitudes of the error and of its share in each value, as
// LlamaF has them (table IV and its text), and its root mean square as a share of that of the values. The mean
// magnitude is the MAE that TransformerLite compares E0M4 and INT4 by.

/**
 * Errors of a tensor or of many.
 * @category Number formats
 */
export interface ErrorStatistics {
  /** Values compared. */
  readonly count: number;
  /** Greatest magnitude of the error. */
  readonly max: number;
  /** Smallest magnitude. */
  readonly min: number;
  /** Mean magnitude. */
  readonly mean: number;
  /** Standard deviation of the magnitudes. */
  readonly std: number;
  /** Root mean square of the error, divided by that of the values; 0 where all values are 0. */
  readonly relative: number;
  /** Mean of each error as a share of its value, over values that are not 0: a few values near 0 decide it. */
  readonly eachMean: number;
  /** Standard deviation of these shares. */
  readonly eachStd: number;
}

/** Sums from which {@linkcode ErrorStatistics} follow. */
export interface ErrorSums {
  count: number;
  max: number;
  min: number;
  sum: number;
  squares: number;
  valueSquares: number;
  /** Values that are not 0, and sums over their relative errors. */
  nonZero: number;
  shares: number;
  shareSquares: number;
}

/** No values yet. */
export function createErrorSums(): ErrorSums {
  return {
    ...{ count: 0, max: 0, min: Infinity, sum: 0, squares: 0, valueSquares: 0 },
    ...{ nonZero: 0, shares: 0, shareSquares: 0 },
  };
}

/** Adds the errors of `decoded`. */
export function addErrors(
  sums: ErrorSums,
  { values, decoded }: { readonly values: Float32Array; readonly decoded: Float32Array },
): void {
  let { max, min, sum, squares, valueSquares, nonZero, shares, shareSquares } = sums;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    const error = Math.abs(decoded[i]! - value);
    if (error > max) max = error;
    if (error < min) min = error;
    sum += error;
    squares += error * error;
    valueSquares += value * value;
    if (value === 0) continue;
    const share = error / Math.abs(value);
    nonZero++;
    shares += share;
    shareSquares += share * share;
  }
  const count = sums.count + values.length;
  Object.assign(sums, { count, max, min, sum, squares, valueSquares });
  Object.assign(sums, { nonZero, shares, shareSquares });
}

const ADDED = [
  ...["count", "sum", "squares", "valueSquares", "nonZero", "shares", "shareSquares"] as const,
];

/** Adds other sums. */
export function mergeErrors(sums: ErrorSums, other: ErrorSums): void {
  sums.max = Math.max(sums.max, other.max);
  sums.min = Math.min(sums.min, other.min);
  for (const key of ADDED) sums[key] += other[key];
}

/** The statistics of sums. */
export function errorStatistics(
  { count, max, min, sum, squares, valueSquares, nonZero, shares, shareSquares }: ErrorSums,
): ErrorStatistics {
  const [mean, std] = meanAndSpread(count, sum, squares);
  const [eachMean, eachStd] = meanAndSpread(nonZero, shares, shareSquares);
  const relative = valueSquares === 0 ? 0 : Math.sqrt(squares / valueSquares);
  return { count, max, min: count === 0 ? 0 : min, mean, std, relative, eachMean, eachStd };
}

function meanAndSpread(count: number, sum: number, squares: number): [number, number] {
  if (count === 0) return [0, 0];
  const mean = sum / count;
  return [mean, Math.sqrt(Math.max(0, squares / count - mean * mean))];
}
