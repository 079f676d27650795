// T5's relative position bias (arXiv 1910.10683, §2.1) as a table by distance. Distances fall into classes:
// near ones each have their own, farther ones share, ever more coarsely, and from `farthest` on all are one.
// So a table from -farthest to +farthest says everything, and nothing about classes reaches a kernel.

/** What a table is made of. */
export interface RelativeBias {
  /** f32[buckets, heads] as stored. */
  readonly values: Float32Array;
  readonly buckets: number;
  readonly heads: number;
  /** Distance from which all are alike. */
  readonly farthest: number;
  /** An encoder's: keys behind the query have classes of their own; else they are never seen. */
  readonly isBidirectional: boolean;
}

/** Summands f32[heads, 2·farthest + 1]; column `farthest` is distance 0, later columns are keys ahead. */
export function relativeBiasTable(bias: RelativeBias): Float32Array {
  const { values, heads, farthest } = bias;
  const columns = 2 * farthest + 1;
  const table = new Float32Array(heads * columns);
  for (let column = 0; column < columns; column++) {
    const bucket = bucketOf(column - farthest, bias);
    for (let head = 0; head < heads; head++) {
      table[head * columns + column] = values[bucket * heads + head]!;
    }
  }
  return table;
}

/** Class of a distance (key - query), in float32 as the original computes it: borders depend on it. */
export function bucketOf(
  distance: number,
  { buckets, farthest, isBidirectional }: Omit<RelativeBias, "values" | "heads">,
): number {
  const count = isBidirectional ? Math.floor(buckets / 2) : buckets;
  const base = isBidirectional && distance > 0 ? count : 0;
  const size = isBidirectional ? Math.abs(distance) : Math.max(0, -distance);
  const exact = Math.floor(count / 2);
  if (size < exact) return base + size;
  const { fround, log } = Math;
  const share = fround(fround(log(fround(size / exact))) / fround(log(farthest / exact)));
  const coarse = exact + Math.floor(fround(share * (count - exact)));
  return base + Math.min(count - 1, coarse);
}
