// Outliers: the weights of greatest magnitude of a matrix, as many as a share of it, which a policy takes out
// before the rest is rounded, so that scales need not reach them (Inferflow's delta tensors, spec IF-13).
// What is chosen is exact, also among equals, and takes two passes over the values and memory for those that
// share the upper half of the limit's bits.

/** Largest share that may be taken out. */
export const MOST_OUTLIERS = 0.05;

/** Finds the limit: give all values to `count`, then all again to `collect`, then ask. */
export interface OutlierSearch {
  count(values: Float32Array): void;
  collect(values: Float32Array): void;
  limit(): OutlierLimit;
}

/** Values above `magnitude` are outliers, and of those equal to it the first `ties`. */
export interface OutlierLimit {
  readonly magnitude: number;
  readonly ties: number;
}

/**
 * Begins to look for the `wanted` values of greatest magnitude. NaN counts as none.
 *
 * @param wanted Positive.
 */
export function searchOutliers(wanted: number): OutlierSearch {
  // The upper half of a positive float32 orders like the number.
  const histogram = new Float64Array(1 << 16);
  const candidates: number[] = [];
  let bin = -1, above = 0;
  const bits = (values: Float32Array) =>
    new Uint32Array(values.buffer, values.byteOffset, values.length);
  const binOf = (word: number) => (word & 0x7fffffff) >>> 16;

  function findBin(): void {
    above = 0;
    for (bin = histogram.length - 1; bin > 0 && above + histogram[bin]! < wanted; bin--) {
      above += histogram[bin]!;
    }
  }

  return {
    count(values) {
      const words = bits(values);
      for (let i = 0; i < words.length; i++) histogram[binOf(words[i]!)]!++;
    },
    collect(values) {
      if (bin < 0) findBin();
      const words = bits(values);
      for (let i = 0; i < words.length; i++) {
        if (binOf(words[i]!) === bin) candidates.push(Math.abs(values[i]!));
      }
    },
    limit() {
      candidates.sort((a, b) => b - a);
      const rest = wanted - above;
      const magnitude = candidates[rest - 1] ?? 0;
      const higher = candidates.findIndex((value) => value === magnitude);
      return { magnitude, ties: rest - Math.max(0, higher) };
    },
  };
}

/** Outliers of whole rows, as compressed sparse rows. */
export interface SparseRows {
  /** By row, where its entries begin; one more than there are rows. */
  readonly starts: Int32Array;
  readonly columns: Int32Array;
  readonly values: Float32Array;
}

/**
 * Takes outliers out of a tensor's rows, run by run in order: they become zero there, and are kept.
 *
 * @param size Rows and columns of the tensor, and how many outliers the limit is for.
 */
export function createOutlierTaker(
  { magnitude, ties }: OutlierLimit,
  { rows, columns, count }: {
    readonly rows: number;
    readonly columns: number;
    readonly count: number;
  },
): { take(values: Float32Array): void; readonly taken: SparseRows } {
  const taken = {
    starts: new Int32Array(rows + 1),
    columns: new Int32Array(count),
    values: new Float32Array(count),
  };
  let row = 0, at = 0, tiesLeft = ties;
  return {
    taken,
    take(values) {
      for (let start = 0; start < values.length; start += columns) {
        for (let column = 0; column < columns; column++) {
          const value = values[start + column]!;
          const size = Math.abs(value);
          if (size < magnitude || (size === magnitude && tiesLeft-- <= 0)) continue;
          if (!(size >= magnitude)) continue;
          taken.columns[at] = column;
          taken.values[at++] = value;
          values[start + column] = 0;
        }
        taken.starts[++row] = at;
      }
    },
  };
}

/** Adds entries of rows `from …` to values of whole rows, or what `values` lack of them. */
export function addSparseRows(
  values: Float32Array,
  columns: number,
  sparse: SparseRows,
  from: number,
): void {
  for (let row = 0; row * columns < values.length; row++) {
    const last = sparse.starts[from + row + 1]!;
    for (let e = sparse.starts[from + row]!; e < last; e++) {
      values[row * columns + sparse.columns[e]!]! += sparse.values[e]!;
    }
  }
}
