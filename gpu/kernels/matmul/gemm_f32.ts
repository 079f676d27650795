// matmul for many rows: float activations by exactly the stored weights, of any layout, in float32. As
// matmul_gemm_q8, with single columns in workgroup memory instead of packed words.

import type { Shader } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { floatRows } from "./gemv_f32.ts";
import { multiplyTile, sideMemory, sideStep, type TileSide, tileSteps } from "./float_tile.ts";
import { tileShader, type TileShape } from "./tile.ts";
import { quadReader, unitColumns } from "./weight_reader.ts";

/** What a shader is made for. */
export interface GemmF32Params extends TileShape {
  /** Id of the weight's layout. */
  readonly layout: string;
  /** Columns of a step at least, if they are more than usual. */
  readonly step?: number;
  /** Whether 16-bit floats stay pairs in workgroup memory: half of what is read there, but unpacked for each block. */
  readonly packed?: boolean;
}

/** Columns of a step of layouts whose units are no wider; of others a unit. */
export const PLAIN_COLUMNS = 16;

/** The shader; bindings x, the planes of the weight, y. */
export function gemmF32(params: GemmF32Params): Shader {
  const { columns, across, down, blockRows, blockOutputs, layout } = params;
  const units = Math.ceil(columns / unitColumns(layout)),
    step = Math.max(params.step ?? PLAIN_COLUMNS, unitColumns(layout));
  const reader = quadReader(layout, `${units}u`);
  const pair = params.packed ? reader.pair : undefined;
  const rows: TileSide = { tile: "x_tile", block: blockRows, lanes: down, unitColumns: 4 };
  const lines: TileSide = {
    ...{ tile: "w_tile", block: blockOutputs, lanes: across },
    ...{ unitColumns: reader.unitColumns, pair },
  };
  const threads = across * down, steps = Math.ceil(columns / step);
  const quads = reader.unitColumns / (pair ? 8 : 4);
  const stepUnits = step / reader.unitColumns, stepQuads = step / 4;
  const x = floatRows(columns, steps * stepQuads);
  const sides = () => [
    sideStep({
      ...{ side: rows, units: stepQuads, quads: 1, threads },
      load: (name) =>
        wgsl`
          let row = min(row_tile + member, params.rows - 1u);
          let ${name}0 = x_quad(row, ${stepQuads}u * step + part);
        `,
    }),
    sideStep({
      ...{ side: lines, units: stepUnits, quads, threads },
      load: (name) =>
        wgsl`
          let line = min(line_tile + member, params.lines - 1u);
          // Behind the end of a row x is 0, so any weights will do.
          let unit = min(${stepUnits}u * step + part, ${units - 1}u);
          ${
          pair
            ? `let ${name}0 = w_values[line * ${units}u + unit];`
            : reader.load(name, `line * ${units}u + unit`)
        }
        `,
    }),
  ];
  return tileShader(params, {
    name: `matmul_gemm_f32_${layout}`,
    storage: { x: x.type, ...reader.storage },
    get declarations() {
      return wgsl`
      ${reader.code}

      ${x.code}

      ${sideMemory(rows, step)}
      ${sideMemory(lines, step)}
    `;
    },
    ...{ steps, isSpread: true },
    get loop() {
      const both = sides();
      return tileSteps({
        held: both.flatMap(({ held }) => held),
        fetch: both.flatMap(({ fetch }) => fetch),
        store: both.flatMap(({ store }) => store),
        multiply: multiplyTile({ rows, lines, columns: step }),
      }, { wanted: "step < end", next: "step++;" });
    },
  });
}
