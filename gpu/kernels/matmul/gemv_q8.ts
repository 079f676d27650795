// matmul_q8 for few rows: a team of lanes shares the groups of an output's weights, so that neighbouring lanes
// read neighbouring vectors; each lane multiplies several outputs by several rows while the codes are in
// registers. Integers are summed within a group and scaled once; sums are float32. Where a row has an even
// number of groups a lane takes two at a time, whose scales are one word on either side.

import { type CodeLayout, scaleFacts } from "../../layouts/code_layout.ts";
import type { Shader } from "../../kernel.ts";
import { codeLayout } from "../../weight_layout.ts";
import { wgsl } from "../../wgsl.ts";
import { groupProduct } from "./group_product.ts";
import { list, rowsShader, type RowsShape } from "./rows.ts";
import { packedDot, q8RowReader, q8TileReader } from "./q8_rows.ts";
import { teamLoop } from "./team_sum.ts";
import { codeReader } from "./weight_reader.ts";
import { scaleType } from "./weight_scales.ts";

/** What a shader is made for. */
export interface GemvQ8Params extends RowsShape {
  /** Id of the weight's layout. */
  readonly layout: string;
  /** Whether the device has `dot4I8Packed`. */
  readonly packedDot: boolean;
}

/** Steps of a row: pairs of groups where their number is even. */
export function gemvQ8Steps(columns: number): number {
  return columns % 64 === 0 ? columns / 64 : columns / 32;
}

/** The arithmetic of a product of 8-bit rows, for kernels that read the same and store otherwise. */
export interface GemvQ8Parts {
  /** WGSL types of the planes of the weight. */
  readonly storage: Readonly<Record<string, string>>;
  /** Functions. */
  readonly declarations: string;
  /** Statements of a step `unit`: they add to `sum{row · outputs + output}`, by `row{r}` and `line{o}`. */
  readonly step: string;
  /** Steps of a row. */
  readonly steps: number;
}

/**
 * The parts for some rows and outputs, x being rows of a binding or one row in workgroup memory.
 *
 * @throws {RangeError} If the layout holds no codes.
 */
export function gemvQ8Parts(
  params: Pick<GemvQ8Params, "layout" | "columns" | "rows" | "outputs" | "packedDot">,
  x: "rows" | "tile" = "rows",
): GemvQ8Parts {
  const { columns } = params;
  const layout = codeLayout(params.layout);
  if (!layout) throw new RangeError(`Cannot multiply integers by weights of "${params.layout}"`);
  const reader = codeReader(layout, { groups: `${columns / 32}u` });
  return {
    storage: reader.storage,
    declarations: wgsl`
      ${reader.code}

      ${x === "rows" ? q8RowReader(columns) : q8TileReader(columns)}

      ${packedDot(params.packedDot)}

      ${groupProduct(layout)}
    `,
    step: columns % 64 === 0 ? pairStep(params, layout) : groupStep(params, layout),
    steps: gemvQ8Steps(columns),
  };
}

/**
 * The shader; bindings x, the planes of the weight, y, bias, residual, chosen.
 *
 * @throws {RangeError} If the layout holds no codes.
 */
export function gemvQ8(params: GemvQ8Params): Shader {
  const { storage, declarations, step, steps } = gemvQ8Parts(params);
  return rowsShader(params, {
    name: `matmul_gemv_${params.layout}`,
    storage: { x: "array<vec4<u32>>", ...storage },
    declarations,
    loop: teamLoop(step, { ...params, count: steps }),
  });
}

type StepSize = Pick<GemvQ8Params, "columns" | "rows" | "outputs">;

/** One group of every output by every row. */
function groupStep({ columns, rows, outputs }: StepSize, layout: CodeLayout): string {
  const halves = scaleFacts(layout).covers === "halves";
  return wgsl`
    ${
    list(rows, (r) =>
      wgsl`
      let x${r} = x_codes(row${r}, unit);
      let a${r} = x_scales(row${r}, unit);
      ${halves ? `let h${r} = x_half(row${r}, unit);` : ""}
    `)
  }
    ${
    list(outputs, (o) =>
      wgsl`
      let w${o} = weight_codes(line${o} * ${columns / 32}u + unit);
      let s${o} = weight_scales(line${o} * ${columns / 32}u + unit);
    `)
  }
    ${
    list(rows * outputs, (i) => {
      const r = Math.floor(i / outputs), o = i % outputs;
      return `sum${i} += group_product(w${o}, s${o}, x${r}, a${r}${halves ? `, h${r}` : ""});`;
    })
  }
  `;
}

/** Two groups of every output by every row. */
function pairStep({ columns, rows, outputs }: StepSize, layout: CodeLayout): string {
  const halves = scaleFacts(layout).covers === "halves";
  const isWide = scaleType(layout) === "vec4<f32>";
  const scales = (o: number) =>
    isWide
      ? [`let s${o}a = weight_scales(i${o});`, `let s${o}b = weight_scales(i${o} + 1u);`]
      : [`let s${o} = weight_scale_pair(i${o});`];
  const product = (r: number, o: number, which: "a" | "b") => {
    const pair = which === "a" ? "xy" : "zw";
    const scale = isWide ? `s${o}${which}` : `s${o}.${pair}`;
    const half = halves ? `, h${r}.${which === "a" ? "x" : "y"}` : "";
    return `group_product(w${o}${which}, ${scale}, x${r}${which}, a${r}.${pair}${half})`;
  };
  return wgsl`
    ${
    list(outputs, (o) =>
      wgsl`
      let i${o} = line${o} * ${columns / 32}u + 2u * unit;
      let w${o}a = weight_codes(i${o});
      let w${o}b = weight_codes(i${o} + 1u);
      ${scales(o)}
    `)
  }
    ${
    list(rows, (r) =>
      wgsl`
      let x${r}a = x_codes(row${r}, 2u * unit);
      let x${r}b = x_codes(row${r}, 2u * unit + 1u);
      let a${r} = x_scale_pair(row${r}, unit);
      ${halves ? `let h${r} = x_half_pair(row${r}, unit);` : ""}
    `)
  }
    ${
    list(rows * outputs, (i) => {
      const r = Math.floor(i / outputs), o = i % outputs;
      return `sum${i} += ${product(r, o, "a")} + ${product(r, o, "b")};`;
    })
  }
  `;
}
