// matmul with a gate for many rows of floats: a tile has results, and for each the sums of its gate and of what that gates,
// which meet in registers. The widest rows of a feed-forward block, twice as wide as its results, are never stored.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { floatRows } from "./gemv_f32.ts";
import {
  blockQuad,
  multiplyTile,
  sideMembers,
  sideMemory,
  sideStep,
  type TileSide,
  tileSteps,
} from "./float_tile.ts";
import { PLAIN_COLUMNS } from "./gemm_f32.ts";
import { list } from "./rows.ts";
import { quadReader, unitColumns } from "./weight_reader.ts";

/** Rows of a tile. */
export const GLU_ROWS = 64;

/** What a shader is made for. */
export interface GemmGluParams {
  /** Id of the weight's layout. */
  readonly layout: string;
  /** Columns of the weight. */
  readonly columns: number;
  readonly bias: boolean;
  /** WGSL of `activation`. */
  readonly activation: string;
  /** Whether rows of y are whole quads. */
  readonly wholeQuads: boolean;
}

/** Sides of a tile, and columns of a step: together they fill the least workgroup memory. */
function sizesOf(layout: string): {
  readonly step: number;
  readonly rows: TileSide;
  readonly lines: TileSide;
} {
  const isPlain = unitColumns(layout) <= PLAIN_COLUMNS, block = isPlain ? 8 : 4;
  return {
    step: Math.max(PLAIN_COLUMNS, unitColumns(layout)),
    rows: { tile: "x_tile", block, lanes: GLU_ROWS / block },
    // A quad of gates, and one of what they gate.
    lines: { tile: "w_tile", block: 8, lanes: isPlain ? 16 : 8 },
  };
}

/** Results of a tile. */
export function gluResults(layout: string): number {
  return sideMembers(sizesOf(layout).lines) / 2;
}

/** The shader; bindings x, the planes of the weight, bias, y. Uniforms: `rows`, `results`. Workgroups: tiles of rows, of results. */
export function gemmGluF32(params: GemmGluParams): Shader {
  const { layout, columns, bias, activation, wholeQuads } = params;
  const { step, rows, lines } = sizesOf(layout), results = gluResults(layout);
  const across = lines.lanes, threads = across * rows.lanes;
  const units = Math.ceil(columns / unitColumns(layout));
  const reader = quadReader(layout, `${units}u`), stepUnits = step / reader.unitColumns;
  const x = floatRows(columns, Math.ceil(columns / step) * step / 4);
  const sides = [
    sideStep({
      ...{ side: rows, units: step / 4, quads: 1, threads },
      load: (name) =>
        wgsl`
          let row = min(first_row + member, params.rows - 1u);
          let ${name}0 = x_quad(row, ${step / 4}u * step + part);
        `,
    }),
    sideStep({
      ...{ side: lines, units: stepUnits, quads: reader.unitColumns / 4, threads },
      load: (name) =>
        wgsl`
          let of_half = min(first_result + member % ${results}u, params.results - 1u);
          let line = of_half + select(0u, params.results, member >= ${results}u);
          // Behind the end of a row x is 0, so any weights will do.
          let unit = min(${stepUnits}u * step + part, ${units - 1}u);
          ${reader.load(name, `line * ${units}u + unit`)}
        `,
    }),
  ];
  return {
    name: `matmul_gemm_glu_f32_${layout}`,
    storage: {
      x: x.type,
      ...reader.storage,
      ...bias && { bias: "array<f32>" },
      y: wholeQuads ? "array<vec4<f32>>" : "array<f32>",
    },
    writes: ["y"],
    uniforms: { rows: "u32", results: "u32" },
    code: wgsl`
      ${activation}

      ${reader.code}

      ${x.code}

      ${sideMemory(rows, step)}
      ${sideMemory(lines, step)}

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "group", lane: "thread" })}
        let across = thread % ${across}u;
        let down = thread / ${across}u;
        let first_row = group.x * ${GLU_ROWS}u;
        let first_result = group.y * ${results}u;
        ${list(rows.block, (i) => `var sum${i}_0 = vec4<f32>();\nvar sum${i}_1 = vec4<f32>();`)}
        var step = 0u;
        ${
      tileSteps({
        held: sides.flatMap(({ held }) => held),
        fetch: sides.flatMap(({ fetch }) => fetch),
        store: sides.flatMap(({ store }) => store),
        multiply: multiplyTile({ rows, lines, columns: step }),
      }, { wanted: `step < ${Math.ceil(columns / step)}u`, next: "step++;" })
    }
        ${storeCode(params, rows)}
      }
    `,
  };
}

function storeCode({ bias, wholeQuads }: GemmGluParams, rows: TileSide): string {
  const added = (sum: string, offset: string) => {
    const own = list(4, (i) => `bias[${offset}min(column + ${i}u, params.results - 1u)]`);
    return bias ? `${sum} + vec4<f32>(${own.join(", ")})` : sum;
  };
  return wgsl`
    let column = first_result + 4u * across;
    if (column >= params.results) { return; }
    ${
    list(rows.block, (i) =>
      wgsl`
        {
          let row = first_row + ${blockQuad(rows, { lane: "down", i: i >> 2 })} + ${i & 3}u;
          let result = activation(${added(`sum${i}_0`, "")}) * (${
        added(`sum${i}_1`, "params.results + ")
      });
          if (row < params.rows) {
            ${
        wholeQuads
          ? "y[(row * params.results + column) >> 2u] = result;"
          : list(4, (c) =>
            `if (column + ${c}u < params.results) { y[row * params.results + column + ${c}u] = result.${
              "xyzw"[c]
            }; }`)
      }
          }
        }
      `)
  }
  `;
}
