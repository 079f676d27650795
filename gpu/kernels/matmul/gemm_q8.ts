// matmul_q8 for many rows: bytes of both sides in workgroup memory, four columns a word, so that the inner
// loop is packed dot products of registers; a group's integers are scaled once. Words lie column by column,
// rows beside each other, so that a block's rows are one vector.

import { type CodeLayout, scaleFacts } from "../../layouts/code_layout.ts";
import type { Shader } from "../../kernel.ts";
import { codeLayout } from "../../weight_layout.ts";
import { wgsl } from "../../wgsl.ts";
import { list } from "./rows.ts";
import { shared, tileOutputs, tileRows, tileShader, type TileShape } from "./tile.ts";
import { NEGATIVES, packedDot, q8RowReader } from "./q8_rows.ts";
import { type Dots, dotsOf, groupSum, rowScales } from "./tile_sums.ts";
import { codeReader } from "./weight_reader.ts";
import { scaleType } from "./weight_scales.ts";

/** What a shader is made for. */
export interface GemmQ8Params extends TileShape {
  /** Id of the weight's layout. */
  readonly layout: string;
  /** Groups of 32 columns of a step; divides the groups of a row. */
  readonly stepGroups: number;
  /** Whether the device has `dot4I8Packed`. */
  readonly packedDot: boolean;
}

/**
 * The shader; bindings x, the planes of the weight, y.
 *
 * @throws {RangeError} If the layout holds no codes.
 */
export function gemmQ8(params: GemmQ8Params): Shader {
  const { columns, stepGroups, across, down } = params;
  const layout = codeLayout(params.layout);
  if (!layout) throw new RangeError(`Cannot multiply integers by weights of "${params.layout}"`);
  const rows = tileRows(params), lines = tileOutputs(params);
  const groups = columns / 32;
  const reader = codeReader(layout, { groups: `${groups}u` });
  const threads = across * down;
  const { covers } = scaleFacts(layout);
  const xItems = 2 * stepGroups * rows, wItems = stepGroups * lines;
  const words = (tile: string, width: number, vector: string, word: string) =>
    list(
      4,
      (i) =>
        `${tile}[(${word} + ${i}u) * ${width / 4}u + (member >> 2u)][member & 3u] = ${vector}.${
          "xyzw"[i]
        };`,
    );
  const fill = wgsl`
    ${
    shared({ items: xItems, threads }, (item) =>
      wgsl`
        let member = ${item} / ${2 * stepGroups}u;
        let part = ${item} % ${2 * stepGroups}u;
        let row = min(row_tile + member, params.rows - 1u);
        let codes = x_half_codes(row, ${2 * stepGroups}u * step + part);
        ${words("x_tile", rows, "codes", "4u * part")}
      `)
  }
    ${
    shared({ items: wItems, threads, first: xItems }, (item) =>
      wgsl`
        let member = ${item} / ${stepGroups}u;
        let part = ${item} % ${stepGroups}u;
        let line = min(line_tile + member, params.lines - 1u);
        let index = line * ${groups}u + ${stepGroups}u * step + part;
        let codes = weight_codes(index);
        ${words("w_tile", lines, "codes.low", "8u * part")}
        ${words("w_tile", lines, "codes.high", "8u * part + 4u")}
        w_scale_tile[part * ${lines}u + member] = weight_scales(index);
      `)
  }
    ${
    shared({ items: stepGroups * rows, threads, first: xItems + wItems }, (item) =>
      wgsl`
        let member = ${item} / ${stepGroups}u;
        let part = ${item} % ${stepGroups}u;
        let row = min(row_tile + member, params.rows - 1u);
        let group = ${stepGroups}u * step + part;
        x_scale_tile[part * ${rows}u + member] = ${rowScales(layout)};
      `)
  }
  `;
  return tileShader(params, {
    name: `matmul_gemm_${params.layout}`,
    storage: { x: "array<vec4<u32>>", ...reader.storage },
    declarations: wgsl`
      ${reader.code}

      ${q8RowReader(columns)}

      ${packedDot(params.packedDot)}
      ${covers === "signs" ? `\n${NEGATIVES}\n` : ""}
      var<workgroup> x_tile: array<vec4<u32>, ${2 * stepGroups * rows}>;
      var<workgroup> w_tile: array<vec4<u32>, ${2 * stepGroups * lines}>;
      var<workgroup> x_scale_tile: array<${covers === "halves" ? "vec3" : "vec2"}<f32>, ${
      stepGroups * rows
    }>;
      var<workgroup> w_scale_tile: array<${scaleType(layout)}, ${stepGroups * lines}>;
    `,
    steps: groups / stepGroups,
    fill,
    multiply: list(stepGroups, (part) => multiplyGroup(params, layout, part)).join("\n"),
  });
}

/** Adds the products of one group of a step to the sums of a block. */
function multiplyGroup(params: GemmQ8Params, layout: CodeLayout, part: number): string {
  const { blockRows, blockOutputs } = params;
  const rows = tileRows(params), lines = tileOutputs(params);
  const rowQuads = blockRows / 4, lineQuads = blockOutputs / 4;
  const block = (text: (i: number, j: number) => string) =>
    list(blockRows * lineQuads, (n) => text(Math.floor(n / lineQuads), n % lineQuads));
  const dots = ({ name, words: [from, to], weights = (w) => w }: Dots) =>
    wgsl`
    ${block((i, j) => `var ${name}${i}_${j} = vec4<i32>();`)}
    ${
      list(to - from, (k) => {
        const word = 8 * part + from + k;
        return wgsl`
        {
          ${
          list(
            rowQuads,
            (i) => `let x${i} = x_tile[${word * rows / 4 + i}u + down * ${rowQuads}u];`,
          )
        }
          ${
          list(
            lineQuads,
            (j) => `let w${j} = w_tile[${word * lines / 4 + j}u + across * ${lineQuads}u];`,
          )
        }
          ${
          block((i, j) =>
            `${name}${i}_${j} += dots(x${i >> 2}.${"xyzw"[i & 3]}, ${weights(`w${j}`)});`
          )
        }
        }
      `;
      })
    }
  `;
  const components = scaleType(layout) === "vec4<f32>" ? ["x", "y", "z", "w"] : ["x", "y"];
  const scales = wgsl`
    ${
    list(blockRows, (i) => `let a${i} = x_scale_tile[${part * rows + i}u + down * ${blockRows}u];`)
  }
    ${
    list(blockOutputs, (j) =>
      `let s${j} = w_scale_tile[${part * lines + j}u + across * ${blockOutputs}u];`)
  }
    ${
    components.flatMap((c) =>
      list(
        lineQuads,
        (j) => `let s${c}${j} = vec4<f32>(${list(4, (k) => `s${4 * j + k}.${c}`).join(", ")});`,
      )
    )
  }
  `;
  return wgsl`
    {
      ${dotsOf(layout).map(dots)}
      ${scales}
      ${block((i, j) => `sum${i}_${j} += ${groupSum(layout, { i, j })};`)}
    }
  `;
}
