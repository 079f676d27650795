// What products of floats by halves on subgroup matrices share (gemm_halves.ts, conv/halves.ts): rows are two halves a number
// (halves.ts), both are multiplied by the same lines of halves, so that products are as near as those of floats, or one where
// that may be rounded. Sums are float32. Numbers are divided by a largest one, so that nothing leaves the range of float16, and
// results multiplied by it.
//
// What is read for the next step is in registers while the units work on this one. Tried and not kept (hand-written shaders on
// an H200): two tiles of which one is filled while the other is multiplied (0.6 to 0.8 of the speed), matrices straight from
// storage (a fifth), 8-bit codes that become halves before such a product, too: no faster than within a tile at 512 rows.

import type { Capabilities, Shader, UniformType } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { type HalvesParts, halvesParts } from "./halves.ts";
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
import { list } from "./rows.ts";
import { shared } from "./tile.ts";
import { MATMUL_TUNING } from "./tuning.ts";

/** Vectors of eight halves that a line has in a step. */
export const EIGHTS = STEP / 8;
/** Floats from one line of a matrix of results to the next in workgroup memory: other banks, and whole 16 bytes. */
const RESULT_STRIDE = UNIT + 4;

/** A tile, invocations of a subgroup, and halves of a number of a row. */
export interface HalvesTile extends MatrixTile {
  readonly subgroupSize: number;
  readonly parts: HalvesParts;
}

/** Bytes of workgroup memory that a tile takes. */
export function halvesBytes(tile: Omit<HalvesTile, "subgroupSize">): number {
  return 2 * STRIDE * (tile.parts * matrixRows(tile) + matrixOutputs(tile)) +
    4 * UNIT * RESULT_STRIDE * tile.down * tile.across;
}

/** The tile for so many outputs, if a device has matrices and room for one. */
export function halvesTileOf(
  capabilities: Capabilities,
  { outputs, kind = "plain" }: {
    readonly outputs: number;
    readonly kind?: keyof typeof MATMUL_TUNING.halvesTiles;
  },
): HalvesTile | undefined {
  const { subgroupMatrix, subgroupSize, maxWorkgroupBytes, maxWorkgroupSize } = capabilities;
  if (!subgroupMatrix) return undefined;
  const parts = halvesParts(capabilities);
  const tiles: readonly MatrixTile[] = MATMUL_TUNING.halvesTiles[kind];
  const fitting = tiles.map((tile) => ({ ...tile, parts, subgroupSize })).filter((tile) =>
    halvesBytes(tile) <= maxWorkgroupBytes &&
    subgroupSize * tile.down * tile.across <= maxWorkgroupSize
  );
  const made = fitting.map((tile) => roundUp(outputs, matrixOutputs(tile)));
  return fitting[made.indexOf(Math.min(...made))];
}

function roundUp(count: number, step: number): number {
  return Math.ceil(count / step) * step;
}

/** The pieces of a product. */
export interface HalvesProduct {
  readonly name: string;
  readonly storage: Readonly<Record<string, string>>;
  readonly uniforms: Readonly<Record<string, UniformType>>;
  readonly functions?: string;
  /** Steps over all columns, an expression. */
  readonly steps: string;
  /**
   * Statements before the first step, which is `begin`. They and those below see `row_tile` and `line_tile`, the first row and
   * line of the tile.
   */
  readonly prologue?: readonly string[];
  /**
   * Statements that define what all rows of a step share, and those behind it. They see `next`: the step, the last one again
   * behind it.
   */
  readonly step?: string;
  readonly stepped?: string;
  /** Eight halves of row `member` of the tile, its \`n\`th of an invocation, of a part: an expression. */
  row(at: { readonly item: string; readonly n: number; readonly part: number }): string;
  /** Of a line. */
  line(at: { readonly item: string }): string;
  /** Whether neighbours in y are rows, or lines. */
  readonly along: "rows" | "lines";
  /**
   * Whether the second half of a subgroup's lines are those that the first half gates: `line` counts pairs of them, and `store`
   * sees the other sum as `gated`.
   */
  readonly isGated?: boolean;
  /** Numbers that `store` needs, by name: expressions of `row` and `line`, which may be behind the last ones. */
  readonly reads: Readonly<Record<string, string>>;
  /** Statements that store `sum`, the result of `row` and `line`, which may be behind the last ones. */
  readonly store: string;
}

/** The shader; it writes y; workgroups: row tiles, line tiles, splits. */
export function halvesProduct(tile: HalvesTile, product: HalvesProduct): Shader {
  const { down, across, unitRows, unitOutputs, subgroupSize, parts } = tile;
  const { name, storage, uniforms, functions = "", steps, prologue = [], isGated = false } =
    product;
  const threads = subgroupSize * down * across;
  const rows = { items: EIGHTS * matrixRows(tile), threads };
  const lines = { items: EIGHTS * matrixOutputs(tile), threads };
  const own = ({ items }: { readonly items: number }) => Math.ceil(items / threads);
  const bring = wgsl`
    {
      let next = min(step, steps - 1u);
      ${product.step ?? ""}
      ${
    shared(rows, (item, n) =>
      list(
        parts,
        (part) => `x_next${part}_${n} = ${product.row({ item, n, part })};`,
      ).join("\n"))
  }
      ${shared(lines, (item, n) => `w_next${n} = ${product.line({ item })};`)}
      ${product.stepped ?? ""}
    }
  `;
  const put = (memory: string, item: string, value: string, first = 0) =>
    wgsl`
      {
        let at = (${item} / ${EIGHTS}u${first ? ` + ${first}u` : ""}) * ${
      STRIDE / 4
    }u + (${item} % ${EIGHTS}u) * 2u;
        ${memory}[at] = bitcast<vec4<f16>>(${value}.xy);
        ${memory}[at + 1u] = bitcast<vec4<f16>>(${value}.zw);
      }
    `;
  const sums = (text: (i: number, j: number) => string) =>
    list(unitRows * unitOutputs, (n) => text(Math.floor(n / unitOutputs), n % unitOutputs));
  return {
    ...{ name, storage, writes: ["y"], uniforms },
    enables: ["f16", "subgroups", "subgroup_matrix"],
    code: wgsl`
      ${functions}

      var<workgroup> x_tile: array<vec4<f16>, ${parts * matrixRows(tile) * STRIDE / 4}>;
      var<workgroup> w_tile: array<vec4<f16>, ${matrixOutputs(tile) * STRIDE / 4}>;
      var<workgroup> y_tile: array<f32, ${UNIT * RESULT_STRIDE * down * across}>;

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "id", lane: "thread" })}
        let row_tile = id.x * ${matrixRows(tile)}u;
        let line_tile = id.y * ${matrixOutputs(tile)}u;
        let subgroup = thread / ${subgroupSize}u;
        let lane = thread % ${subgroupSize}u;
        let first_row = (subgroup / ${across}u) * ${UNIT * unitRows}u;
        let first_line = (subgroup % ${across}u) * ${UNIT * unitOutputs}u;
        let steps = ${steps};
        let share = (steps + params.splits - 1u) / params.splits;
        let begin = min(id.z * share, steps);
        let end = min(begin + share, steps);
        ${prologue}
        ${sums((i, j) => `var sum${i}_${j} = ${RESULT}();`)}
        ${
      list(own(rows) * parts, (n) => `var x_next${n % parts}_${Math.floor(n / parts)}: vec4<u32>;`)
    }
        ${list(own(lines), (n) => `var w_next${n}: vec4<u32>;`)}
        var step = begin;
        ${bring}
        while (step < end) {
          ${
      shared(rows, (item, n) =>
        list(
          parts,
          (part) => put("x_tile", item, `x_next${part}_${n}`, part * matrixRows(tile)),
        ).join("\n"))
    }
          ${shared(lines, (item, n) => put("w_tile", item, `w_next${n}`))}
          workgroupBarrier();
          step++;
          ${bring}
          ${list(STEP / UNIT, (k) => multiplyMatrices(tile, k))}
          workgroupBarrier();
        }
        ${
      list(unitRows * unitOutputs / (isGated ? 2 : 1), (n) =>
        storeMatrix(tile, { ...product, i: n % unitRows, j: Math.floor(n / unitRows) }))
    }
      }
    `,
  };
}

// What a matrix holds where is its own affair: it goes through memory. What is read for results is read beforehand, all at once: one
// by one, each would be waited for.
function storeMatrix(
  { subgroupSize, unitOutputs }: HalvesTile,
  { i, j, along, reads, store, isGated = false }:
    & Pick<HalvesProduct, "along" | "reads" | "store" | "isGated">
    & { readonly i: number; readonly j: number },
): string {
  const first = `subgroup * ${UNIT * RESULT_STRIDE}u`, step = subgroupSize / UNIT;
  const [row, line] = along === "rows" ? ["neighbour", "other"] : ["other", "neighbour"];
  const put = (j: number) =>
    `subgroupMatrixStore<row_major>(&y_tile, ${first}, sum${i}_${j}, ${RESULT_STRIDE}u);\n` +
    "workgroupBarrier();";
  const sum = `y_tile[${first} + ${row} * ${RESULT_STRIDE}u + ${line}]`;
  const eachRow = (text: (n: number) => string) =>
    list(UNIT / step, (n) =>
      wgsl`
        {
          let other = lane / ${UNIT}u + ${n * step}u;
          ${text(n)}
        }
      `);
  const place = wgsl`
    let row = row_tile + first_row + ${UNIT * i}u + ${row};
    let line = ${isGated ? "(line_tile + first_line) / 2u" : "line_tile + first_line"} + ${
    UNIT * j
  }u + ${line};
  `;
  const names = Object.keys(reads);
  const known = (n: number) => names.map((name) => `let ${name} = ${name}_${n};`);
  return wgsl`
    {
      let neighbour = lane % ${UNIT}u;
      ${list(UNIT / step, (n) => names.map((name) => `var ${name}_${n}: f32;`).join("\n"))}
      ${
    eachRow((n) => `${place}\n${names.map((name) => `${name}_${n} = ${reads[name]};`).join("\n")}`)
  }
      ${put(j)}
      ${
    // What gates waits in registers until the memory has what it gates.
    isGated
      ? wgsl`
        ${list(UNIT / step, (n) => `var sum${n}: f32;`)}
        ${eachRow((n) => `sum${n} = ${sum};`)}
        workgroupBarrier();
        ${put(j + unitOutputs / 2)}
        ${
        eachRow((n) =>
          wgsl`
            ${place}
            ${known(n)}
            let sum = sum${n};
            let gated = ${sum};
            ${store}
          `
        )
      }
      `
      : eachRow((n) =>
        wgsl`
          ${place}
          ${known(n)}
          let sum = ${sum};
          ${store}
        `
      )}
    }
    workgroupBarrier();
  `;
}
