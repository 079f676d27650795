// The inner loop of calibrated rounding: rows less a product of small and long matrices. Two rows and four
// factors at a time, so that what is loaded serves eight products; beyond that V8 runs out of registers.

/** Rows `from … from + rows` of a matrix, columns `first … last`. */
export interface RowRange {
  readonly rows: number;
  readonly from: number;
  readonly first: number;
  readonly last: number;
}

/** A matrix in memory. */
export interface Matrix {
  readonly data: Float64Array;
  /** Index of its first value, and how far rows are apart. */
  readonly at: number;
  readonly stride: number;
}

/**
 * target[r, i] -= Σ_k factors[r, k] · source[k, i] over `count` rows of `source`.
 *
 * @param range Rows of `target` and `factors`, columns of `target` and `source`.
 */
export function subtractProduct(
  target: Matrix,
  factors: Matrix,
  source: Matrix,
  count: number,
  { rows, from, first, last }: RowRange,
): void {
  if (first >= last) return;
  const t = target.data, f = factors.data, s = source.data, step = source.stride;
  const end = from + rows;
  for (let r = from; r < end; r += 2) {
    // An odd last row goes alone.
    const single = r + 1 === end;
    const ta = target.at + r * target.stride, tb = single ? ta : ta + target.stride;
    const fa = factors.at + r * factors.stride, fb = single ? fa : fa + factors.stride;
    let k = 0;
    for (; k + 3 < count; k += 4) {
      const s0 = source.at + k * step, s1 = s0 + step, s2 = s1 + step, s3 = s2 + step;
      const a0 = f[fa + k]!, a1 = f[fa + k + 1]!, a2 = f[fa + k + 2]!, a3 = f[fa + k + 3]!;
      if (single) {
        for (let i = first; i < last; i++) {
          t[ta + i]! -= a0 * s[s0 + i]! + a1 * s[s1 + i]! + a2 * s[s2 + i]! + a3 * s[s3 + i]!;
        }
        continue;
      }
      const b0 = f[fb + k]!, b1 = f[fb + k + 1]!, b2 = f[fb + k + 2]!, b3 = f[fb + k + 3]!;
      for (let i = first; i < last; i++) {
        const x0 = s[s0 + i]!, x1 = s[s1 + i]!, x2 = s[s2 + i]!, x3 = s[s3 + i]!;
        t[ta + i]! -= a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3;
        t[tb + i]! -= b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3;
      }
    }
    for (; k < count; k++) {
      const s0 = source.at + k * step, a = f[fa + k]!, b = single ? 0 : f[fb + k]!;
      for (let i = first; i < last; i++) {
        t[ta + i]! -= a * s[s0 + i]!;
        if (!single) t[tb + i]! -= b * s[s0 + i]!;
      }
    }
  }
}
