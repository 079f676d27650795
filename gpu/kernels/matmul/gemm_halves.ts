// Products of floats by halves for many rows on subgroup matrices (halves_tile.ts).

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { EIGHTS, halvesProduct, type HalvesTile } from "./halves_tile.ts";
import { UNIT } from "./matrix_tile.ts";
import { epilogueFunction } from "../windows.ts";
import { type Addends, finishedBy, resultStorage } from "./rows.ts";
import { TILE_UNIFORMS } from "./tile.ts";

/** What a shader is made for. */
export interface GemmHalvesParams extends HalvesTile {
  /** What is added to the sums where there is one split; default: nothing. */
  readonly added?: Addends | undefined;
}

/** Storage, and the sides of the product, of which `line` says the line of a member of the tile. */
function sides({ parts }: HalvesTile, added: Addends, line: (member: string) => string) {
  const eight = (item: string) => `next * ${EIGHTS}u + ${item} % ${EIGHTS}u`;
  return {
    storage: {
      ...{ x: "array<vec4<u32>>", tops: "array<f32>", w_values: "array<vec4<u32>>" },
      ...resultStorage(added),
    },
    steps: `params.eighths / ${EIGHTS}u`,
    row: ({ item, part }: { readonly item: string; readonly part: number }) =>
      `x[(min(row_tile + ${item} / ${EIGHTS}u, params.rows - 1u) * ${parts}u + ${part}u) * ` +
      `params.eighths + ${eight(item)}]`,
    line: ({ item }: { readonly item: string }) =>
      `w_values[${line(`${item} / ${EIGHTS}u`)} * params.eighths + ${eight(item)}]`,
    along: "lines",
  } as const;
}

/**
 * The shader; bindings x, tops, w_values, y [splits, rows, outputs], bias, residual; workgroups: row tiles, line tiles, splits. As
 * those of tile.ts; `eighths`: vectors of eight halves in a line.
 */
export function gemmHalves(params: GemmHalvesParams): Shader {
  const { added = { bias: false } } = params;
  return halvesProduct(params, {
    name: "matmul_halves",
    ...sides(params, added, (member) => `min(line_tile + ${member}, params.lines - 1u)`),
    uniforms: { ...TILE_UNIFORMS, eighths: "u32" },
    functions: added.activation ?? "",
    reads: {
      top: "tops[min(row, params.rows - 1u)]",
      ...added.bias && { own_bias: "bias[params.first + min(line, params.lines - 1u)]" },
      ...added.residual && {
        more: "residual[min(row, params.rows - 1u) * params.outputs + params.first + " +
          "min(line, params.lines - 1u)]",
      },
    },
    store: wgsl`
      if (row < params.rows && line < params.lines) {
        let to = (id.z * params.rows + row) * params.outputs + params.first + line;
        y[to] = ${finishedBy("sum * top", added, { bias: "own_bias", residual: "more" })};
      }
    `,
  });
}

/** What a shader with a gate is made for; a subgroup has an even number of matrices along the outputs. */
export interface GemmGluHalvesParams extends HalvesTile {
  readonly bias: boolean;
  /** Name of what gates. */
  readonly activation: string;
}

/**
 * With a gate, as gemm_glu_f32.ts; bindings x, tops, w_values, y, bias. Uniforms: `rows`, `results`, `eighths`, `splits`: 1.
 * Workgroups: row tiles, tiles of half as many results as a tile has outputs.
 */
export function gemmGluHalves(params: GemmGluHalvesParams): Shader {
  const { bias, activation, unitOutputs } = params, unit = UNIT * unitOutputs;
  return halvesProduct(params, {
    name: "matmul_glu_halves",
    ...sides(params, { bias }, (member) => `line_of(line_tile, ${member})`),
    uniforms: { rows: "u32", results: "u32", eighths: "u32", splits: "u32" },
    functions: wgsl`
      ${epilogueFunction(activation)}

      // Of the lines of a subgroup the first half gates the second.
      fn line_of(line_tile: u32, member: u32) -> u32 {
        let own = member % ${unit}u;
        let line = line_tile / 2u + member / ${unit}u * ${unit / 2}u + own % ${unit / 2}u;
        return min(line, params.results - 1u) + select(0u, params.results, own >= ${unit / 2}u);
      }
    `,
    isGated: true,
    reads: {
      top: "tops[min(row, params.rows - 1u)]",
      ...bias && { gate_bias: "bias[min(line, params.results - 1u)]" },
      ...bias && { gated_bias: "bias[params.results + min(line, params.results - 1u)]" },
    },
    store: wgsl`
      if (row < params.rows && line < params.results) {
        let gate = epilogue(sum * top${bias ? " + gate_bias" : ""});
        y[row * params.results + line] = gate * (gated * top${bias ? " + gated_bias" : ""});
      }
    `,
  });
}
