// GPTQ (Frantar et al. 2023, arXiv 2210.17323): columns of a matrix are rounded one after another, and what
// a column's rounding changes in the output is made up for by the columns that are still to come, as far as
// the inputs of the matrix move together. Inputs are known by their Gram matrix H = Σ x xᵀ.
//
// Computed in the equal form of QuIP (Chee et al. 2023, arXiv 2307.13304, theorem 6): with H = U D Uᵀ, U of unit upper
// triangular form, column k is rounded from w_k - Σ_{j<k} (ŵ_j - w_j) U_jk. One Cholesky decomposition, from the last
// column backwards, takes the place of an inverse and a second decomposition.
//
// Columns keep their groups, since scales belong to groups; groups whose inputs are largest come first, and
// columns likewise within theirs, so that most is left to make up for what matters most.

import type { EncodeOptions } from "./format.ts";
import { findNonFinite } from "./finite.ts";
import type { RoundingGrid } from "./rounding.ts";
import { subtractProduct } from "./row_updates.ts";
import type { Steps } from "./steps.ts";

/** What is known of the inputs of a matrix, prepared for rounding in groups of one size. */
export interface InputFactor {
  readonly columns: number;
  /** Size of the groups. */
  readonly group: number;
  /** By place in the order of rounding: the column. */
  readonly order: Uint32Array;
  /** U, row by row, in the order of rounding; below the diagonal nothing of meaning. */
  readonly unit: Float64Array;
}

/** Added to the diagonal, as a share of its mean. */
const DAMPING = 0.01;

/** Options of {@linkcode factorGram}. */
export interface FactorOptions {
  readonly columns: number;
  /** Values that share scales; divides `columns`. */
  readonly group: number;
}

/**
 * Decomposes a Gram matrix, in steps: columns³ / 3 products are minutes for wide matrices.
 *
 * @param gram Σ x xᵀ over the inputs, [columns, columns], symmetric.
 * @throws {RangeError} If it is not finite, or no Gram matrix.
 */
export function* factorGram(
  gram: Float32Array,
  { columns, group }: FactorOptions,
): Steps<InputFactor> {
  const bad = findNonFinite(gram);
  if (bad >= 0) {
    throw new RangeError(
      `Cannot calibrate: the inputs of columns ${Math.floor(bad / columns)} and ${bad % columns} ` +
        "are not finite on this text",
    );
  }
  const diagonal = Float64Array.from({ length: columns }, (_, i) => gram[i * columns + i]!);
  const mean = diagonal.reduce((sum, value) => sum + value, 0) / columns;
  const order = roundingOrder(diagonal, group);
  const unit = new Float64Array(columns * columns);
  for (let i = 0; i < columns; i++) {
    const row = order[i]! * columns;
    for (let k = i; k < columns; k++) unit[i * columns + k] = gram[row + order[k]!]!;
    // Inputs that are always zero tell nothing: their columns are rounded to nearest.
    unit[i * columns + i]! += mean === 0 ? 1 : DAMPING * mean;
  }
  yield* decompose(unit, columns);
  return { columns, group, order, unit };
}

function roundingOrder(diagonal: Float64Array, group: number): Uint32Array {
  const groups = Array.from({ length: diagonal.length / group }, (_, g) => {
    const columns = Array.from({ length: group }, (_, i) => g * group + i);
    columns.sort((a, b) => diagonal[b]! - diagonal[a]! || a - b);
    return { columns, weight: columns.reduce((sum, column) => sum + diagonal[column]!, 0) };
  });
  groups.sort((a, b) => b.weight - a.weight);
  return Uint32Array.from(groups.flatMap(({ columns }) => columns));
}

// Columns of U that are found before the rest of H hears of them.
const PANEL = 32;

/** H to U in place, from the upper triangle; H = W Wᵀ backwards, then U = W D^(-1/2). */
function* decompose(h: Float64Array, n: number): Steps<void> {
  const panel = new Float64Array(PANEL * n);
  const matrix = { data: h, at: 0, stride: n };
  for (let hi = n; hi > 0; hi -= PANEL) {
    const lo = Math.max(0, hi - PANEL);
    for (let j = hi - 1; j >= lo; j--) {
      const root = Math.sqrt(h[j * n + j]! - dot(h, j * n, j * n, j + 1, hi));
      if (!(root > 0 && root < Infinity)) {
        throw new RangeError(
          `Cannot calibrate: the Gram matrix of the inputs is not positive definite at column ${j}`,
        );
      }
      h[j * n + j] = root;
      for (let i = 0; i < j; i++) {
        h[i * n + j] = (h[i * n + j]! - dot(h, i * n, j * n, j + 1, hi)) / root;
      }
    }
    for (let k = lo; k < hi; k++) {
      for (let i = 0; i < lo; i++) panel[(k - lo) * n + i] = h[i * n + k]!;
    }
    const factors = { ...matrix, at: lo };
    const source = { data: panel, at: 0, stride: n };
    for (let from = 0; from < lo; from += PANEL) {
      const range = { from, rows: Math.min(PANEL, lo - from), first: from, last: lo };
      subtractProduct(matrix, factors, source, hi - lo, range);
      yield;
    }
  }
  for (let i = 0; i < n; i++) {
    for (let k = i + 1; k < n; k++) h[i * n + k]! /= h[k * n + k]!;
  }
  for (let k = 0; k < n; k++) h[k * n + k] = 1;
}

function dot(h: Float64Array, a: number, b: number, from: number, to: number): number {
  let sum = 0;
  for (let k = from; k < to; k++) sum += h[a + k]! * h[b + k]!;
  return sum;
}

// Columns that are rounded before the others of a row hear of it.
const SPAN = 32;

/**
 * Rounds rows of a matrix and writes their blocks.
 *
 * @param values Whole rows of `factor.columns` values.
 * @param out Receives the blocks of the grid's format.
 * @param options For the encoder; its `importance` is one value a column.
 * @throws {RangeError} If the format cannot hold a group, as errors of others have changed it.
 */
export function roundByGptq(
  grid: RoundingGrid,
  values: Float32Array,
  factor: InputFactor,
  out: Uint8Array,
  options: EncodeOptions = {},
): void {
  const { columns, group, order, unit } = factor;
  if (group !== grid.group) {
    throw new RangeError(`Cannot round groups of ${grid.group} in an order of groups of ${group}`);
  }
  const { importance, ...rest } = options;
  const rows = values.length / columns;
  const { blockBytes } = grid.format;
  const rowBytes = (columns / group) * blockBytes;
  const wanted = new Float64Array(values.length);
  for (let row = 0; row < rows; row++) {
    const at = row * columns;
    for (let k = 0; k < columns; k++) wanted[at + k] = values[at + order[k]!]!;
  }
  const span = Math.max(SPAN, group);
  const changes = new Float64Array(rows * span);
  const block = new Float32Array(group);
  const targets = { data: wanted, at: 0, stride: columns };
  const factors = (first: number) => ({ data: changes, at: first, stride: span });
  const source = (column: number) => ({ data: unit, at: column * columns, stride: columns });
  for (let begin = 0; begin < columns; begin += span) {
    const end = Math.min(columns, begin + span);
    for (let row = 0; row < rows; row++) {
      const at = row * columns;
      for (let part = begin; part < end; part += SPAN) {
        const partEnd = Math.min(end, part + SPAN);
        for (let k = part; k < partEnd; k++) {
          const base = order[k]! - order[k]! % group;
          if (k % group === 0) {
            for (let i = k; i < k + group; i++) block[order[i]! - base] = wanted[at + i]!;
            const weights = importance?.subarray(base, base + group);
            fitAt(grid, block, { row, column: base }, {
              ...rest,
              ...weights && { importance: weights },
            });
          }
          const level = grid.round(order[k]! - base, wanted[at + k]!);
          const change = level - values[at + order[k]!]!;
          changes[row * span + k - begin] = change;
          const u = k * columns;
          for (let i = k + 1; i < partEnd; i++) wanted[at + i]! -= change * unit[u + i]!;
          if ((k + 1) % group === 0) {
            grid.write(out, row * rowBytes + (base / group) * blockBytes);
          }
        }
        subtractProduct(targets, factors(part - begin), source(part), partEnd - part, {
          ...{ from: row, rows: 1, first: partEnd, last: end },
        });
      }
    }
    subtractProduct(targets, factors(0), source(begin), end - begin, {
      ...{ from: 0, rows, first: end, last: columns },
    });
  }
}

function fitAt(
  grid: RoundingGrid,
  block: Float32Array,
  { row, column }: { readonly row: number; readonly column: number },
  options: EncodeOptions,
): void {
  try {
    grid.fit(block, options);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RangeError(`In row ${row}, from column ${column} on: ${error.message}`, {
      cause: error,
    });
  }
}
