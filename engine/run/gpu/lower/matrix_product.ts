// The sides of a product on subgroup matrices: rows and lines are made halves in scratch memory first, some lines at a time, so
// that there need not be room for a whole matrix and they are still in the caches when they are multiplied.

import type { GpuSlice, GpuWeight } from "../../../../gpu/kernel.ts";
import { codeHalves } from "../../../../gpu/kernels/matmul/code_halves.ts";
import {
  HALVES_PARTS,
  HALVES_UNITS,
  rowHalves,
  weightHalves,
} from "../../../../gpu/kernels/matmul/halves.ts";
import { UNIT } from "../../../../gpu/kernels/matmul/matrix_tile.ts";
import { MATMUL_TUNING } from "../../../../gpu/kernels/matmul/tuning.ts";
import { unitColumns } from "../../../../gpu/kernels/matmul/weight_reader.ts";
import { Q8_GROUP, q8RowBytes } from "../../../../quant/q8_activation.ts";
import { type Dim, mul } from "../../../graph/dim/mod.ts";
import type { GpuLowering } from "../kernel.ts";
import { planesOf, rowsOfX } from "./tiles.ts";

/** Some lines of a weight, as a product takes them. */
export interface ProductSides {
  readonly lines: number;
  /** The first of them among all of the weight. */
  readonly first: number;
  /** Uniforms that other products do not have. */
  readonly uniforms: Readonly<Record<string, number>>;
  /** Emits what makes them ready, and says what is bound. */
  bring(): Readonly<Record<string, GpuSlice>>;
}

/** Emits what makes halves of 8-bit rows of so many columns where a product is `wanted`; says what is bound. */
export function halfRows(
  { emit, scratch, most, slice, node }: GpuLowering,
  { columns, wanted }: { readonly columns: number; readonly wanted: Dim },
): Record<"x" | "tops", GpuSlice> {
  const rows = rowsOfX({ node });
  const x = scratch(2 * columns * most(rows));
  const tops = scratch(4 * Math.ceil(most(rows) / UNIT));
  emit({
    shader: codeHalves(),
    storage: { x: slice(node.inputs[0]!), y: x, tops },
    uniforms: { rows, groups: columns / Q8_GROUP, stride: q8RowBytes(columns) / 16 },
    workgroups: [mul(wanted, rows)],
  });
  return { x, tops };
}

/** Emits what makes halves of rows where a product is `wanted`; lines are made when they are brought. */
export function halfSides(
  lowering: GpuLowering,
  { weight, wanted }: { readonly weight: GpuWeight; readonly wanted: Dim },
): ProductSides[] {
  const { node: { inputs: [given] }, emit, scratch, most } = lowering;
  const { layout, columns, parts } = weight;
  const rows = rowsOfX(lowering), units = Math.ceil(columns / unitColumns(layout));
  const eighths = columns / 8;
  const mostLines = Math.ceil(MATMUL_TUNING.mostHalves / columns);
  const x = scratch(2 * columns * HALVES_PARTS * most(rows)), tops = scratch(4 * most(rows));
  const w = scratch(2 * columns * Math.min(mostLines, Math.max(...parts.map(({ rows }) => rows))));
  emit({
    shader: rowHalves(),
    storage: { x: lowering.slice(given!), y: x, tops },
    uniforms: { eighths },
    workgroups: [mul(wanted, rows)],
  });
  return parts.flatMap(({ rows, firstRow, planes }) =>
    Array.from({ length: Math.ceil(rows / mostLines) }, (_, i): ProductSides => {
      const begin = i * mostLines, lines = Math.min(rows - begin, mostLines);
      return {
        ...{
          lines,
          first: firstRow + begin,
          uniforms: { eighths: HALVES_PARTS * eighths, line_eighths: eighths },
        },
        bring() {
          emit({
            shader: weightHalves(layout),
            storage: { ...planesOf(layout, planes), y: w },
            uniforms: { units, first: begin * units, count: lines * units },
            workgroups: [mul(wanted, Math.ceil(lines * units / HALVES_UNITS))],
          });
          return { x, tops, w };
        },
      };
    })
  );
}
