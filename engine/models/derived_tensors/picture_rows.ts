// What is added to the rows of a picture: a learnt row for each place, the bias of the patches, and the learnt rows that
// stand in front of the patches. As one table of float32 rows that is computed when it is read, so that a step adds it by
// the position of a row, whatever a family has of these. Where a picture has another grid of patches than the table of
// places, that is resized as torch.nn.functional.interpolate does it: cubic convolution with a = -0.75, centres of pixels.

import type { TensorInfo } from "../../formats/source.ts";
import { countOf, derivedTensor, readPieces } from "../../formats/derived_tensor.ts";
import { readConstant } from "../constants.ts";

/** Rows and columns of patches. */
export interface Grid {
  readonly rows: number;
  readonly columns: number;
}

/** How a table of places gets another grid; antialiased kernels grow with the step between samples. */
export type GridResize = "bicubic" | "bicubic_antialias";

/** What the table is made of; each tensor holds whole rows. */
export interface PictureRows {
  readonly hidden: number;
  readonly grid: Grid;
  /** Rows in front of the patches, in their order. */
  readonly leading: readonly TensorInfo[];
  /** Bias of a patch's projection. */
  readonly bias: TensorInfo | undefined;
  /** Rows for the first `leading` rows, then for the places of `grid`. */
  readonly positions:
    | {
      readonly tensor: TensorInfo;
      readonly leading: number;
      readonly grid: Grid;
      readonly resized: GridResize | undefined;
    }
    | undefined;
}

/** F32 [leading rows + places of the grid, hidden]. */
export function pictureRows(parts: PictureRows): TensorInfo {
  const { leading, bias, positions, hidden, grid } = parts;
  const from = positions?.tensor ?? leading[0] ?? bias!;
  const rows = leading.reduce((sum, { shape }) => sum + countOf(shape) / hidden, 0) +
    grid.rows * grid.columns;
  let table: Promise<Uint8Array> | undefined;
  return derivedTensor(from, {
    ...{ name: `rows of pictures of ${from.name}`, label: "rows of pictures", format: "F32" },
    ...{ shape: [rows, hidden], byteLength: 4 * rows * hidden },
    readInto: readPieces(4 * rows * hidden, async (_piece, skipped, target) => {
      const bytes = await (table ??= compute(parts, rows));
      target.set(bytes.subarray(skipped, skipped + target.length));
      // It is read once, from its beginning to its end.
      if (skipped + target.length === bytes.length) table = undefined;
    }),
  });
}

async function compute(
  { hidden, grid, leading, bias, positions }: PictureRows,
  rows: number,
): Promise<Uint8Array> {
  const table = new Float32Array(rows * hidden);
  let count = 0;
  for (const tensor of leading) {
    const values = await readConstant(tensor);
    table.set(values, count);
    count += values.length;
  }
  const patches = table.subarray(count);
  if (positions) {
    const stored = await readConstant(positions.tensor), split = positions.leading * hidden;
    for (let i = 0; i < split; i++) table[i]! += stored[i]!;
    patches.set(resizeGrid(stored.subarray(split), { ...positions, to: grid, hidden }));
  }
  const summand = bias && await readConstant(bias);
  for (let i = 0; summand && i < patches.length; i++) patches[i]! += summand[i % hidden]!;
  return new Uint8Array(table.buffer);
}

/** f32[rows · columns, hidden] of one grid as that of another; the same array where nothing changes. */
export function resizeGrid(
  values: Float32Array,
  { grid, to, hidden, resized = "bicubic" }: {
    readonly grid: Grid;
    readonly to: Grid;
    readonly hidden: number;
    readonly resized?: GridResize | undefined;
  },
): Float32Array {
  if (grid.rows === to.rows && grid.columns === to.columns) return values;
  const across = cubicTaps(grid.columns, to.columns, resized);
  const down = cubicTaps(grid.rows, to.rows, resized);
  const wide = new Float64Array(grid.rows * to.columns * hidden);
  across.forEach((taps, column) => {
    for (let row = 0; row < grid.rows; row++) {
      const at = (row * to.columns + column) * hidden;
      for (const [place, weight] of taps) {
        const from = (row * grid.columns + place) * hidden;
        for (let i = 0; i < hidden; i++) wide[at + i]! += weight * values[from + i]!;
      }
    }
  });
  const result = new Float64Array(to.rows * to.columns * hidden);
  const line = to.columns * hidden;
  down.forEach((taps, row) => {
    for (const [place, weight] of taps) {
      for (let i = 0; i < line; i++) result[row * line + i]! += weight * wide[place * line + i]!;
    }
  });
  return Float32Array.from(result);
}

/** Keys' kernel: a is -0.75 as OpenCV has it, and -0.5 as PIL does where torch antialiases. */
function cubic(x: number, a: number): number {
  const t = Math.abs(x);
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/** For each new place the old ones and their weights. */
function cubicTaps(from: number, to: number, resized: GridResize): [number, number][][] {
  const step = from / to, isSmooth = resized === "bicubic_antialias";
  const stretch = isSmooth ? Math.max(1, step) : 1, a = isSmooth ? -0.5 : -0.75;
  return Array.from({ length: to }, (_, place) => {
    const centre = (place + 0.5) * step - 0.5, reach = 2 * stretch;
    const taps: [number, number][] = [];
    for (let at = Math.ceil(centre - reach); at <= Math.floor(centre + reach); at++) {
      const isInside = at >= 0 && at < from;
      // Edges are repeated; the antialiased kernel leaves them out and is weighed anew.
      if (isSmooth && !isInside) continue;
      const weight = cubic((at - centre) / stretch, a);
      if (weight !== 0) taps.push([Math.min(from - 1, Math.max(0, at)), weight]);
    }
    const sum = taps.reduce((total, [, weight]) => total + weight, 0);
    return taps.map(([at, weight]): [number, number] => [at, weight / sum]);
  });
}
