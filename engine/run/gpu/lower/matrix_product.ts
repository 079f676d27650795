// The rows of a product on subgroup matrices, which are made halves in scratch memory first.

import type { GpuSlice } from "../../../../gpu/kernel.ts";
import { codeHalves } from "../../../../gpu/kernels/matmul/code_halves.ts";
import { halvesParts, rowHalves } from "../../../../gpu/kernels/matmul/halves.ts";
import { UNIT } from "../../../../gpu/kernels/matmul/matrix_tile.ts";
import { Q8_GROUP, q8RowBytes } from "../../../../quant/q8_activation.ts";
import { type Dim, mul } from "../../../graph/dim/mod.ts";
import type { GpuLowering } from "../kernel.ts";
import { rowsOfX } from "./tiles.ts";

/** Columns of a row, and where a product is wanted. */
interface WantedRows {
  readonly columns: number;
  readonly wanted: Dim;
  /** Most rows for which it is. */
  readonly mostRows: number;
}

/** Emits what makes halves of 8-bit rows; says what is bound. */
export function codeHalvesOf(
  { emit, scratch, most, slice, node }: GpuLowering,
  { columns, wanted, mostRows }: WantedRows,
): Record<"x" | "tops", GpuSlice> {
  const rows = rowsOfX({ node }), count = Math.min(mostRows, most(rows));
  const x = scratch(2 * columns * count), tops = scratch(4 * Math.ceil(count / UNIT));
  emit({
    shader: codeHalves(),
    storage: { x: slice(node.inputs[0]!), y: x, tops },
    uniforms: { rows, groups: columns / Q8_GROUP, stride: q8RowBytes(columns) / 16 },
    workgroups: [mul(wanted, rows)],
  });
  return { x, tops };
}

/** The same of rows of floats. */
export function floatHalvesOf(
  { emit, scratch, most, slice, node, capabilities }: GpuLowering,
  { columns, wanted, mostRows }: WantedRows,
): Record<"x" | "tops", GpuSlice> {
  const rows = rowsOfX({ node }), count = Math.min(mostRows, most(rows));
  const parts = halvesParts(capabilities);
  const x = scratch(2 * columns * parts * count), tops = scratch(4 * count);
  emit({
    shader: rowHalves(parts),
    storage: { x: slice(node.inputs[0]!), y: x, tops },
    uniforms: { rows, eighths: columns / 8 },
    workgroups: [mul(wanted, rows)],
  });
  return { x, tops };
}
