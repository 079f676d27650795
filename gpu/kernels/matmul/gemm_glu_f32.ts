// matmul with a gate for many rows of floats: a tile has results, and for each the sums of its gate and of what that gates,
// which meet in registers. The widest rows of a feed-forward block, twice as wide as its results, are never stored.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { floatRows } from "./gemv_f32.ts";
import { list } from "./rows.ts";
import { shared } from "./tile.ts";
import { quadReader } from "./weight_reader.ts";

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
}

/** Columns of a step, and results of a tile: together they fill the least workgroup memory. */
function sizesOf(layout: string): { readonly step: number; readonly results: number } {
  return quadReader(layout, "0u").unitColumns > 16
    ? { step: 32, results: 32 }
    : { step: 16, results: 64 };
}

/** Results of a tile. */
export function gluResults(layout: string): number {
  return sizesOf(layout).results;
}

/** The shader; bindings x, the planes of the weight, bias, y. Uniforms: `rows`, `results`. Workgroups: tiles of rows, of results. */
export function gemmGluF32({ layout, columns, bias, activation }: GemmGluParams): Shader {
  const { step, results } = sizesOf(layout);
  const across = results / 4, threads = across * GLU_ROWS / 4, lineQuads = results / 2;
  const units = Math.ceil(columns / quadReader(layout, "0u").unitColumns);
  const reader = quadReader(layout, `${units}u`), stepUnits = step / reader.unitColumns;
  const x = floatRows(columns, Math.ceil(columns / step) * step / 4);
  const store = (tile: string, { quads, first, value }: {
    readonly quads: number;
    readonly first: string;
    readonly value: string;
  }) =>
    list(
      4,
      (i) =>
        `${tile}[(${first} + ${i}u) * ${quads}u + member / 4u][member % 4u] = ${value}.${
          "xyzw"[i]
        };`,
    );
  const added = (name: string, offset: string) =>
    bias ? `${name} + bias[${offset}column + i]` : name;
  return {
    name: `matmul_gemm_glu_f32_${layout}`,
    storage: {
      x: x.type,
      ...reader.storage,
      ...bias && { bias: "array<f32>" },
      y: "array<f32>",
    },
    writes: ["y"],
    uniforms: { rows: "u32", results: "u32" },
    code: wgsl`
      ${activation}

      ${reader.code}

      ${x.code}

      var<workgroup> x_tile: array<vec4<f32>, ${step * GLU_ROWS / 4}>;
      var<workgroup> w_tile: array<vec4<f32>, ${step * lineQuads}>;

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "group", lane: "thread" })}
        let across = thread % ${across}u;
        let down = thread / ${across}u;
        let first_row = group.x * ${GLU_ROWS}u;
        let first_result = group.y * ${results}u;
        ${list(4, (i) => `var gate${i} = vec4<f32>();\nvar up${i} = vec4<f32>();`)}
        for (var step = 0u; step < ${Math.ceil(columns / step)}u; step++) {
          ${
      shared({ items: step / 4 * GLU_ROWS, threads }, (item) =>
        wgsl`
          let member = ${item} / ${step / 4}u;
          let part = ${item} % ${step / 4}u;
          let value = x_quad(min(first_row + member, params.rows - 1u), ${step / 4}u * step + part);
          ${store("x_tile", { quads: GLU_ROWS / 4, first: "4u * part", value: "value" })}
        `)
    }
          ${
      shared({ items: stepUnits * 2 * results, threads }, (item) =>
        wgsl`
          let member = ${item} / ${stepUnits}u;
          let part = ${item} % ${stepUnits}u;
          let of_half = min(first_result + member % ${results}u, params.results - 1u);
          let line = of_half + select(0u, params.results, member >= ${results}u);
          // Behind the end of a row x is 0, so any weights will do.
          let unit = min(${stepUnits}u * step + part, ${units - 1}u);
          ${reader.load("w", `line * ${units}u + unit`)}
          ${
          list(reader.unitColumns / 4, (q) =>
            store("w_tile", {
              quads: lineQuads,
              first: `${reader.unitColumns}u * part + ${4 * q}u`,
              value: `w${q}`,
            }).join("\n"))
        }
        `)
    }
          workgroupBarrier();
          for (var k = 0u; k < ${step}u; k++) {
            let rows = x_tile[k * ${GLU_ROWS / 4}u + down];
            let of_gate = w_tile[k * ${lineQuads}u + across];
            let of_up = w_tile[k * ${lineQuads}u + ${across}u + across];
            ${
      list(4, (i) => {
        const row = `rows.${"xyzw"[i]}`;
        return `gate${i} += ${row} * of_gate;\nup${i} += ${row} * of_up;`;
      })
    }
          }
          workgroupBarrier();
        }
        let gates = array<vec4<f32>, 4>(gate0, gate1, gate2, gate3);
        let ups = array<vec4<f32>, 4>(up0, up1, up2, up3);
        let column = first_result + 4u * across;
        for (var r = 0u; r < 4u; r++) {
          let row = first_row + 4u * down + r;
          for (var i = 0u; i < 4u; i++) {
            if (row >= params.rows || column + i >= params.results) { continue; }
            let gate = activation(vec4<f32>(${added("gates[r][i]", "")})).x;
            y[row * params.results + column + i] = gate * (${
      added("ups[r][i]", "params.results + ")
    });
          }
        }
      }
    `,
  };
}
