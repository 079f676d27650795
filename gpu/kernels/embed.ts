// Rows of a packed table by token id, decoded exactly. A table that was split over bindings is read part by
// part: each dispatch fills the rows whose token it has.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { quadReader, unitColumns } from "./matmul/weight_reader.ts";

/** Units of a workgroup. */
export const EMBED_BLOCK = 64;

/** Columns that one invocation decodes of a layout. */
export function embedUnit(layout: string): number {
  return unitColumns(layout);
}

/**
 * Uniforms: `count` = rows · units of a row, `units` of a row, `columns`, `first` token and number of `tokens`
 * of the part, `scale`.
 */
export function embedShader(layout: string): Shader {
  const reader = quadReader(layout, "params.units");
  const quads = reader.unitColumns / 4;
  const lanes = ["x", "y", "z", "w"];
  return {
    name: `embed_${layout}`,
    storage: { tokens: "array<u32>", ...reader.storage, y: "array<f32>" },
    writes: ["y"],
    uniforms: {
      count: "u32",
      units: "u32",
      columns: "u32",
      first: "u32",
      tokens_here: "u32",
      scale: "f32",
    },
    code: wgsl`
      ${reader.code}

      fn store(row: u32, column: u32, quad: vec4<f32>) {
        let at = row * params.columns + column;
        ${
      lanes.map((lane, i) =>
        `if (column + ${i}u < params.columns) { y[at + ${i}u] = quad.${lane} * params.scale; }`
      )
    }
      }

      @compute @workgroup_size(${EMBED_BLOCK})
      ${GROUP_MAIN}
        let i = flat_workgroup(group, groups) * ${EMBED_BLOCK}u + lane;
        if (i >= params.count) { return; }
        let row = i / params.units;
        let unit = i % params.units;
        let token = tokens[row] - params.first;
        if (token >= params.tokens_here) { return; }
        let index = token * params.units + unit;
        ${reader.load("q", "index")}
        let column = unit * ${reader.unitColumns}u;
        ${Array.from({ length: quads }, (_, q) => `store(row, column + ${4 * q}u, q${q});`)}
      }
    `,
  };
}
