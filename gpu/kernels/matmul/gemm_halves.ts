// Products of floats by halves for many rows on subgroup matrices (see gemm_matrix.ts): rows are two halves a number, one behind
// the other (halves.ts), and both are multiplied by the same lines, so that products are as near as those of floats. Sums are
// float32; a row is divided by a number of its own, so that nothing leaves the range of float16, and its results are multiplied
// by it.
//
// What is read for the next step is in registers while the units work on this one. Tried and not kept (hand-written shaders on
// an H200): two tiles of which one is filled while the other is multiplied (0.6 to 0.8 of the speed), matrices straight from
// storage (a fifth), 8-bit codes that become halves before such a product, too: no faster than within a tile at 512 rows.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import {
  matrixOutputs,
  matrixRows,
  type MatrixTile,
  multiplyMatrices,
  RESULT,
  STEP,
  STRIDE,
  UNIT,
} from "./matrix_tile.ts";
import { type Addends, finished, list, resultStorage } from "./rows.ts";
import { shared, TILE_UNIFORMS } from "./tile.ts";

/** Vectors of eight halves that a line has in a step. */
const EIGHTS = STEP / 8;

/** What a shader is made for. */
export interface GemmHalvesParams extends MatrixTile {
  /** Invocations of a subgroup. */
  readonly subgroupSize: number;
  /** What is added to the sums where there is one split; default: nothing. */
  readonly added?: Addends | undefined;
}

/** A side of the product: members of the tile, which the invocations share out by eights. */
interface Side {
  readonly name: "x" | "w";
  readonly items: number;
  readonly threads: number;
  /** First member of the tile, how many there are, and eights of one, as expressions. */
  readonly first: string;
  readonly count: string;
  readonly eighths: string;
}

function sidesOf(params: GemmHalvesParams): readonly Side[] {
  const threads = params.subgroupSize * params.down * params.across;
  return [
    {
      ...{ name: "x", items: EIGHTS * matrixRows(params), threads },
      ...{ first: "row_tile", count: "params.rows", eighths: "params.eighths" },
    },
    {
      ...{ name: "w", items: EIGHTS * matrixOutputs(params), threads },
      ...{ first: "line_tile", count: "params.lines", eighths: "params.line_eighths" },
    },
  ];
}

/**
 * The shader; bindings x, tops, w, y [splits, rows, outputs], bias, residual; workgroups: row tiles, line tiles, splits. As those
 * of tile.ts; `eighths`: vectors of eight halves in a row.
 */
export function gemmHalves(params: GemmHalvesParams): Shader {
  const { down, across, unitRows, unitOutputs, subgroupSize, added = { bias: false } } = params;
  const sides = sidesOf(params), threads = subgroupSize * down * across;
  const sums = (text: (i: number, j: number) => string) =>
    list(unitRows * unitOutputs, (n) => text(Math.floor(n / unitOutputs), n % unitOutputs));
  const each = (text: (side: Side, i: number) => string) =>
    sides.flatMap((side) => list(Math.ceil(side.items / threads), (i) => text(side, i)));
  return {
    name: "matmul_halves",
    storage: {
      ...{ x: "array<vec4<u32>>", tops: "array<f32>", w: "array<vec4<u32>>" },
      ...resultStorage(added),
    },
    writes: ["y"],
    uniforms: { ...TILE_UNIFORMS, eighths: "u32", line_eighths: "u32" },
    enables: ["f16", "subgroups", "subgroup_matrix"],
    code: wgsl`
      ${
      sides.map(({ name, items }) =>
        `var<workgroup> ${name}_tile: array<vec4<f16>, ${items / EIGHTS * STRIDE / 4}>;`
      )
    }
      var<workgroup> y_tile: array<f32, ${UNIT * UNIT * down * across}>;

      ${added.activation ?? ""}

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "id", lane: "thread" })}
        let row_tile = id.x * ${matrixRows(params)}u;
        let line_tile = id.y * ${matrixOutputs(params)}u;
        let subgroup = thread / ${subgroupSize}u;
        let lane = thread % ${subgroupSize}u;
        let first_row = (subgroup / ${across}u) * ${UNIT * unitRows}u;
        let first_line = (subgroup % ${across}u) * ${UNIT * unitOutputs}u;
        let steps = params.eighths / ${EIGHTS}u;
        let share = (steps + params.splits - 1u) / params.splits;
        let begin = min(id.z * share, steps);
        let end = min(begin + share, steps);
        ${sums((i, j) => `var sum${i}_${j} = ${RESULT}();`)}
        ${each(({ name }, i) => `var ${name}_next${i}: vec4<u32>;`)}
        var step = begin;
        ${bring(sides)}
        while (step < end) {
          ${sides.map(fill)}
          workgroupBarrier();
          step++;
          ${bring(sides)}
          ${list(STEP / UNIT, (k) => multiplyMatrices(params, k))}
          workgroupBarrier();
        }
        ${sums((i, j) => store(params, { i, j, added }))}
      }
    `,
  };
}

/** Reads what a step needs into registers, the last one's again behind it. */
function bring(sides: readonly Side[]): string {
  return wgsl`
    {
      let next = min(step, steps - 1u);
      // Rows of two parts are multiplied by the same lines.
      let line_steps = params.line_eighths / ${EIGHTS}u;
      let line_next = select(next - line_steps, next, next < line_steps);
      ${sides.map((side) => fetch(side, side.name === "x" ? "next" : "line_next"))}
    }
  `;
}

/** Of a side. */
function fetch({ name, items, threads, first, count, eighths }: Side, step: string): string {
  return shared({ items, threads }, (item, i) =>
    wgsl`
      let member = min(${first} + ${item} / ${EIGHTS}u, ${count} - 1u);
      ${name}_next${i} = ${name}[member * ${eighths} + ${step} * ${EIGHTS}u + ${item} % ${EIGHTS}u];
    `).join("\n");
}

/** Writes what was read into the tile. */
function fill({ name, items, threads }: Side): string {
  return shared({ items, threads }, (item, i) =>
    wgsl`
      let at = (${item} / ${EIGHTS}u) * ${STRIDE / 4}u + (${item} % ${EIGHTS}u) * 2u;
      ${name}_tile[at] = bitcast<vec4<f16>>(${name}_next${i}.xy);
      ${name}_tile[at + 1u] = bitcast<vec4<f16>>(${name}_next${i}.zw);
    `).join("\n");
}

// What a matrix holds where is its own affair: it goes through memory, where rows get their number back.
function store(
  { subgroupSize }: GemmHalvesParams,
  { i, j, added }: { readonly i: number; readonly j: number; readonly added: Addends },
): string {
  return wgsl`
    subgroupMatrixStore<row_major>(&y_tile, subgroup * ${UNIT * UNIT}u, sum${i}_${j}, ${UNIT}u);
    workgroupBarrier();
    for (var at = lane; at < ${UNIT * UNIT}u; at += ${subgroupSize}u) {
      let row = row_tile + first_row + ${UNIT * i}u + at / ${UNIT}u;
      let line = line_tile + first_line + ${UNIT * j}u + at % ${UNIT}u;
      if (row < params.rows && line < params.lines) {
        let output = params.first + line;
        let to = (id.z * params.rows + row) * params.outputs + output;
        let sum = y_tile[subgroup * ${UNIT * UNIT}u + at] * tops[row];
        y[to] = ${finished("sum", added, { output: "output", at: "to" })};
      }
    }
    workgroupBarrier();
  `;
}
