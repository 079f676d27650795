// matmul for many rows: float activations by exactly the stored weights, of any layout, in float32. As
// matmul_gemm_q8, with single columns in workgroup memory instead of packed words.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { floatRows } from "./gemv_f32.ts";
import { list } from "./rows.ts";
import { shared, tileOutputs, tileRows, tileShader, type TileShape } from "./tile.ts";
import { quadReader, unitColumns } from "./weight_reader.ts";

/** What a shader is made for. */
export interface GemmF32Params extends TileShape {
  /** Id of the weight's layout. */
  readonly layout: string;
}

/** Columns of a step: a unit of the largest layout. */
const STEP_COLUMNS = 32;

/** The shader; bindings x, the planes of the weight, y. */
export function gemmF32(params: GemmF32Params): Shader {
  const { columns, across, down, blockRows, blockOutputs } = params;
  const units = Math.ceil(columns / unitColumns(params.layout));
  const reader = quadReader(params.layout, `${units}u`);
  const rows = tileRows(params), lines = tileOutputs(params);
  const threads = across * down;
  const steps = Math.ceil(columns / STEP_COLUMNS);
  const stepUnits = STEP_COLUMNS / reader.unitColumns;
  const stepQuads = STEP_COLUMNS / 4;
  const x = floatRows(columns, steps * stepQuads);
  const quad = (tile: string, width: number, value: string, first: string) =>
    list(
      4,
      (i) =>
        `${tile}[(${first} + ${i}u) * ${width / 4}u + (member >> 2u)][member & 3u] = ${value}.${
          "xyzw"[i]
        };`,
    );
  const fill = wgsl`
    ${
    shared({ items: stepQuads * rows, threads }, (item) =>
      wgsl`
        let member = ${item} / ${stepQuads}u;
        let part = ${item} % ${stepQuads}u;
        let row = min(row_tile + member, params.rows - 1u);
        let value = x_quad(row, ${stepQuads}u * step + part);
        ${quad("x_tile", rows, "value", "4u * part")}
      `)
  }
    ${
    shared({ items: stepUnits * lines, threads, first: stepQuads * rows }, (item) =>
      wgsl`
        let member = ${item} / ${stepUnits}u;
        let part = ${item} % ${stepUnits}u;
        let line = min(line_tile + member, params.lines - 1u);
        // Behind the end of a row x is 0, so any weights will do.
        let unit = min(${stepUnits}u * step + part, ${units - 1}u);
        ${reader.load("w", `line * ${units}u + unit`)}
        ${
        list(reader.unitColumns / 4, (q) =>
          quad("w_tile", lines, `w${q}`, `${reader.unitColumns}u * part + ${4 * q}u`).join("\n"))
      }
      `)
  }
  `;
  const rowQuads = blockRows / 4, lineQuads = blockOutputs / 4;
  return tileShader(params, {
    name: `matmul_gemm_f32_${params.layout}`,
    storage: { x: x.type, ...reader.storage },
    declarations: wgsl`
      ${reader.code}

      ${x.code}

      var<workgroup> x_tile: array<vec4<f32>, ${STEP_COLUMNS * rows / 4}>;
      var<workgroup> w_tile: array<vec4<f32>, ${STEP_COLUMNS * lines / 4}>;
    `,
    steps,
    fill,
    multiply: wgsl`
      for (var k = 0u; k < ${STEP_COLUMNS}u; k++) {
        ${
      list(rowQuads, (i) => `let x${i} = x_tile[k * ${rows / 4}u + down * ${rowQuads}u + ${i}u];`)
    }
        ${
      list(lineQuads, (j) =>
        `let w${j} = w_tile[k * ${lines / 4}u + across * ${lineQuads}u + ${j}u];`)
    }
        ${
      list(blockRows * lineQuads, (n) => {
        const i = Math.floor(n / lineQuads), j = n % lineQuads;
        return `sum${i}_${j} += x${i >> 2}.${"xyzw"[i & 3]} * w${j};`;
      })
    }
      }
    `,
  });
}
