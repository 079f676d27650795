// matmul for few rows: float activations by exactly the stored weights, of any layout. As matmul_gemv_q8, with
// quads of four columns instead of packed bytes; a row of x whose length is no multiple of the layout's unit
// reads zeros behind its end.
//
// Four outputs a team, and x read where it lies: workgroup memory for x, or fewer outputs, were slower on every shape
// (bench/results/kernels.md).

import type { Shader } from "../../kernel.ts";
import { type Centred, centredRows, centredStorage } from "./centred.ts";
import { codeLayout } from "../../weight_layout.ts";
import { wgsl } from "../../wgsl.ts";
import { list, rowsShader, type RowsShape } from "./rows.ts";
import { stagedRows } from "./staged_rows.ts";
import { teamLoop } from "./team_sum.ts";
import { quadReader, unitColumns } from "./weight_reader.ts";

/** What a shader is made for. */
export interface GemvF32Params extends RowsShape {
  /** Id of the weight's layout. */
  readonly layout: string;
  /** Of plain layouts and columns that are whole steps of centred.ts: x is normed first. */
  readonly centred?: Centred | undefined;
}

/** Whether x is read by way of workgroup memory: where a lane's columns are many (staged_rows.ts). */
export function isStaged(layout: string): boolean {
  return codeLayout(layout) !== undefined;
}

/** The shader; bindings x, the planes of the weight, y, bias, chosen, those of a norm. */
export function gemvF32(params: GemvF32Params): Shader {
  const { columns, rows, outputs, centred } = params;
  const units = Math.ceil(columns / unitColumns(params.layout));
  const reader = quadReader(params.layout, `${units}u`);
  const quads = reader.unitColumns / 4;
  const x = floatRows(columns, units * quads);
  const stage = isStaged(params.layout)
    ? stagedRows({ ...params, count: units, quads })
    : undefined;
  const norm = centred && centredRows(centred, { columns, rows, outputs });
  const [x_is, w_name] = norm ? ["var", "stored"] as const : ["let", "w"] as const;
  const step = wgsl`
    ${list(outputs, (o) => reader.load(`${w_name}${o}_`, `line${o} * ${units}u + unit`))}
    ${
    list(quads, (q) =>
      wgsl`
        ${
        list(
          rows,
          (r) =>
            `${x_is} x${r}_${q} = ${
              stage ? stage.at(r, q) : `x_quad(row${r}, ${quads}u * unit + ${q}u)`
            };`,
        )
      }
        ${norm ? list(outputs, (o) => `var w${o}_${q} = stored${o}_${q};`) : []}
        ${norm ? norm.step(q, `${quads}u * unit + ${q}u`) : []}
        ${
        list(rows * outputs, (i) => {
          const r = Math.floor(i / outputs), o = i % outputs;
          return `sum${i} += dot(x${r}_${q}, w${o}_${q});`;
        })
      }
      `)
  }
  `;
  return rowsShader(params, {
    name: `matmul_gemv_f32_${params.layout}`,
    storage: { x: x.type, ...reader.storage },
    declarations: wgsl`
      ${reader.code}

      ${x.code}

      ${stage ? stage.declarations : ""}

      ${norm ? norm.declarations : ""}
    `,
    ...centred && { storageBehind: centredStorage(centred) },
    loop: [
      ...norm ? norm.start : [],
      stage ? stage.loop(step) : teamLoop(step, { ...params, count: units }),
    ].join("\n"),
    besides: norm,
  });
}

/**
 * Reads float rows by quads: type of the binding `x` and `x_quad(row, quad) -> vec4<f32>`, zeros behind the end
 * of a row, where `quads` is how many of a row are asked for.
 */
export function floatRows(
  columns: number,
  quads: number,
): { readonly type: string; readonly code: string } {
  const own = columns / 4;
  if (columns % 4 !== 0) {
    return {
      type: "array<f32>",
      code: wgsl`
        fn x_at(row: u32, column: u32) -> f32 {
          let value = x[row * ${columns}u + min(column, ${columns - 1}u)];
          return select(0.0, value, column < ${columns}u);
        }

        fn x_quad(row: u32, quad: u32) -> vec4<f32> {
          let column = 4u * quad;
          return vec4<f32>(
            x_at(row, column), x_at(row, column + 1u), x_at(row, column + 2u), x_at(row, column + 3u),
          );
        }
      `,
    };
  }
  const type = "array<vec4<f32>>";
  if (quads === own) {
    return {
      type,
      code: wgsl`
        fn x_quad(row: u32, quad: u32) -> vec4<f32> {
          return x[row * ${own}u + quad];
        }
      `,
    };
  }
  return {
    type,
    code: wgsl`
      fn x_quad(row: u32, quad: u32) -> vec4<f32> {
        let value = x[row * ${own}u + min(quad, ${own - 1}u)];
        return select(vec4<f32>(), value, quad < ${own}u);
      }
    `,
  };
}
