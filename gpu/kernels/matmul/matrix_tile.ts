// What products on subgroup matrices share: tiles of halves in workgroup memory, `x_tile` of rows and `w_tile` of outputs, each
// line a step's columns and a gap, and the products of a step.

import { wgsl } from "../../wgsl.ts";
import { list } from "./rows.ts";

/** Side of a matrix that a subgroup multiplies. */
export const UNIT = 16;
/** Columns of a step. */
export const STEP = 32;
/** Halves from one line of a tile to the next: eight more than it has, so that neighbours lie in other banks. */
export const STRIDE = STEP + 8;

/** Subgroups of a workgroup, and matrices of a subgroup. */
export interface MatrixTile {
  /** Subgroups along the rows. */
  readonly down: number;
  /** Subgroups along the outputs. */
  readonly across: number;
  /** Matrices of a subgroup along the rows. */
  readonly unitRows: number;
  /** Matrices of a subgroup along the outputs. */
  readonly unitOutputs: number;
}

/** Rows of a tile. */
export function matrixRows({ down, unitRows }: MatrixTile): number {
  return UNIT * down * unitRows;
}

/** Outputs of a tile. */
export function matrixOutputs({ across, unitOutputs }: MatrixTile): number {
  return UNIT * across * unitOutputs;
}

/** What a subgroup multiplies, rows by outputs. */
export const LEFT = `subgroup_matrix_left<f16, ${UNIT}, ${UNIT}>`;
export const RIGHT = `subgroup_matrix_right<f16, ${UNIT}, ${UNIT}>`;
/** Sums of a subgroup. */
export const RESULT = `subgroup_matrix_result<f32, ${UNIT}, ${UNIT}>`;

/**
 * Adds the products of 16 columns, from the `k`th of a step on, to the sums `sum0_0` …. Rows of several parts stand one tile
 * behind the other; all are multiplied by the same outputs, which are loaded once.
 */
export function multiplyMatrices(
  tile: MatrixTile & { readonly parts?: number },
  k: number,
): string {
  const { unitRows, unitOutputs, parts = 1 } = tile;
  const from = (memory: string, matrix: string, order: string, line: string) =>
    `subgroupMatrixLoad<${matrix}, ${order}>(&${memory}, (${line}) * ${STRIDE / 4}u + ` +
    `${k * UNIT / 4}u, ${STRIDE / 4}u)`;
  return wgsl`
    {
      ${
    list(
      unitOutputs,
      (j) => `let right${j} = ${from("w_tile", RIGHT, "col_major", `first_line + ${UNIT * j}u`)};`,
    )
  }
      ${
    list(unitRows * parts, (n) => {
      const i = n % unitRows, row = Math.floor(n / unitRows) * matrixRows(tile) + UNIT * i;
      return wgsl`
        {
          let left = ${from("x_tile", LEFT, "row_major", `first_row + ${row}u`)};
          ${
        list(
          unitOutputs,
          (j) => `sum${i}_${j} = subgroupMatrixMultiplyAccumulate(left, right${j}, sum${i}_${j});`,
        )
      }
        }
      `;
    })
  }
    }
  `;
}
