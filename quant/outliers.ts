// Outliers: the weights of greatest magnitude of a matrix, as many as a share of it, which a policy takes out
// before the rest is rounded, so that scales need not reach them (Inferflow's delta tensors, spec IF-13).
// What is chosen is exact, also among equals; it takes two passes over the values, and no memory for them.

/** Largest share that may be taken out. */
export const MOST_OUTLIERS = 0.05;

/** Finds the limit: give all values to `count`, then all again to `refine`, then ask. */
export interface OutlierSearch {
  count(values: Float32Array): void;
  refine(values: Float32Array): void;
  limit(): OutlierLimit;
}

/** Values above `magnitude` are outliers, and of those equal to it the first `ties`. */
export interface OutlierLimit {
  readonly magnitude: number;
  readonly ties: number;
}

/**
 * Begins to look for the `wanted` values of greatest magnitude.
 *
 * @param wanted Positive, at most as many as there are values.
 */
export function searchOutliers(wanted: number): OutlierSearch {
  // Bits of positive float32 numbers order like the numbers: upper halves first, then lower ones of one upper half.
  const upper = new Float64Array(1 << 15), lower = new Float64Array(1 << 16);
  let top: Digit | undefined;
  const bits = (values: Float32Array) =>
    new Uint32Array(values.buffer, values.byteOffset, values.length);
  const upperOf = (word: number) => (word & 0x7fffffff) >>> 16;

  return {
    count(values) {
      for (const word of bits(values)) upper[upperOf(word)]!++;
    },
    refine(values) {
      top ??= findDigit(upper, wanted);
      for (const word of bits(values)) if (upperOf(word) === top.digit) lower[word & 0xffff]!++;
    },
    limit() {
      const { digit, rest } = findDigit(lower, top!.rest);
      const magnitude = new Float32Array(Uint32Array.of(((top!.digit << 16) | digit) >>> 0).buffer);
      return { magnitude: magnitude[0]!, ties: rest };
    },
  };
}

interface Digit {
  readonly digit: number;
  /** How many are still wanted among those of this digit. */
  readonly rest: number;
}

/** The digit of the `wanted`th number from above, by how many numbers have each digit. */
function findDigit(counts: Float64Array, wanted: number): Digit {
  let digit = counts.length - 1, rest = wanted;
  for (; digit > 0 && counts[digit]! < rest; digit--) rest -= counts[digit]!;
  return { digit, rest };
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
