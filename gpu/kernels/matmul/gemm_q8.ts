// matmul_q8 for many rows: bytes of both sides in workgroup memory, four columns a word, so that the inner
// loop is packed dot products of registers; a group's integers are scaled once. Words lie column by column,
// rows beside each other, so that a block's rows are one vector.

import { type CodeLayout, scaleFacts } from "../../layouts/code_layout.ts";
import type { Shader } from "../../kernel.ts";
import { codeLayout } from "../../weight_layout.ts";
import { wgsl } from "../../wgsl.ts";
import { list } from "./rows.ts";
import { shared, stepLoop, tileOutputs, tileRows, tileShader, type TileShape } from "./tile.ts";
import { NEGATIVES, packedDot, q8RowReader } from "./q8_rows.ts";
import { type Dots, dotsOf, groupSum, rowScales, scaleParts, SUM_START } from "./tile_sums.ts";
import { codeReader } from "./weight_reader.ts";

/** The words of a group's codes. */
const CODE_WORDS = ["low", "high"].flatMap((half) => [..."xyzw"].map((c) => `codes.${half}.${c}`));

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
  const x = tilePlace({ members: rows, parts: 2 * stepGroups, words: 4 });
  const w = tilePlace({ members: lines, parts: stepGroups, words: 8 });
  const { w: wScales, x: xScales } = scaleParts(layout);
  // A plane of vectors for each component of the scales, so that those of a block are one vector, too.
  const storeScales = (tile: string, names: readonly string[], members: number) =>
    names.map((name, i) =>
      `${tile}[(${i * stepGroups}u + part) * ${
        members / 4
      }u + (member >> 2u)][member & 3u] = scales.${name};`
    );
  const xItems = 2 * stepGroups * rows, wItems = stepGroups * lines;
  const fill = wgsl`
    ${
    shared({ items: xItems, threads }, (item) =>
      wgsl`
        let member = ${item} / ${2 * stepGroups}u;
        let part = ${item} % ${2 * stepGroups}u;
        let row = min(row_tile + member, params.rows - 1u);
        let codes = x_half_codes(row, ${2 * stepGroups}u * step + part);
        ${x.store("x_tile", [..."xyzw"].map((c) => `codes.${c}`))}
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
        ${w.store("w_tile", CODE_WORDS)}
        let scales = weight_scales(index);
        ${storeScales("w_scale_tile", wScales, lines)}
      `)
  }
    ${
    shared({ items: stepGroups * rows, threads, first: xItems + wItems }, (item) =>
      wgsl`
        let member = ${item} / ${stepGroups}u;
        let part = ${item} % ${stepGroups}u;
        let row = min(row_tile + member, params.rows - 1u);
        let group = ${stepGroups}u * step + part;
        let scales = ${rowScales(layout)};
        ${storeScales("x_scale_tile", xScales, rows)}
      `)
  }
  `;
  const vectors = (count: number) => `array<vec4<f32>, ${count / 4}>`;
  return tileShader(params, {
    name: `matmul_gemm_${params.layout}`,
    storage: { x: "array<vec4<u32>>", ...reader.storage },
    declarations: wgsl`
      ${reader.code}

      ${q8RowReader(columns)}

      ${packedDot(params.packedDot)}
      ${covers === "signs" ? `\n${NEGATIVES}\n` : ""}
      var<workgroup> x_tile: array<vec4<u32>, ${x.vectors}>;
      var<workgroup> w_tile: array<vec4<u32>, ${w.vectors}>;
      var<workgroup> x_scale_tile: ${vectors(xScales.length * stepGroups * rows)};
      var<workgroup> w_scale_tile: ${vectors(wScales.length * stepGroups * lines)};
    `,
    steps: groups / stepGroups,
    loop: stepLoop(
      fill,
      list(stepGroups, (part) => multiplyGroup(params, { layout, part, x, w })),
    ),
  });
}

/** Where the words of a tile lie. */
interface TilePlace {
  /** Vectors in all. */
  readonly vectors: number;
  /** Statements that put the words of `member` and `part` there. */
  store(tile: string, words: readonly string[]): string[];
  /** Index of the first vector of a word of all parts' words in a row. */
  at(word: number): number;
}

/**
 * Place of a tile whose parts of some words are filled by neighbouring invocations. The words of a column of the tile lie
 * beside each other, four members a vector, so that a block's rows are one vector; columns stand as far apart
 * that invocations that store at the same time do so to different banks.
 */
function tilePlace({ members, parts, words }: {
  readonly members: number;
  readonly parts: number;
  readonly words: number;
}): TilePlace {
  // 8 vectors are all banks; a part's neighbours have 8 / parts of them.
  const apart = parts === 1 ? 0 : ((8 / parts - members / 4) % 8 + 8) % 8;
  const stride = members / 4 + apart;
  return {
    vectors: words * parts * stride,
    store: (tile, values) =>
      values.map((value, k) =>
        `${tile}[(${k * parts}u + part) * ${stride}u + (member >> 2u)][member & 3u] = ${value};`
      ),
    at: (word) => (word % words * parts + Math.floor(word / words)) * stride,
  };
}

/** Adds the products of one group of a step to the sums of a block. */
function multiplyGroup(
  params: GemmQ8Params,
  { layout, part, x, w }: {
    readonly layout: CodeLayout;
    readonly part: number;
    readonly x: TilePlace;
    readonly w: TilePlace;
  },
): string {
  const { blockRows, blockOutputs, stepGroups } = params;
  const rows = tileRows(params), lines = tileOutputs(params);
  const rowQuads = blockRows / 4, lineQuads = blockOutputs / 4;
  const block = (text: (i: number, j: number) => string) =>
    list(blockRows * lineQuads, (n) => text(Math.floor(n / lineQuads), n % lineQuads));
  const dots = ({ name, words: [from, to], weights = (w) => w }: Dots) =>
    wgsl`
    ${block((i, j) => `var ${name}${i}_${j} = vec4<i32>(${SUM_START});`)}
    ${
      list(to - from, (k) => {
        const word = 8 * part + from + k;
        return wgsl`
        {
          ${
          list(
            rowQuads,
            (i) => `let x${i} = x_tile[${x.at(word) + i}u + down * ${rowQuads}u];`,
          )
        }
          ${
          list(
            lineQuads,
            (j) => `let w${j} = w_tile[${w.at(word) + j}u + across * ${lineQuads}u];`,
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
  const { w: wScales, x: xScales } = scaleParts(layout);
  const scales = [
    ...xScales.flatMap((name, c) =>
      list(
        rowQuads,
        (i) =>
          `let a${name}${i} = x_scale_tile[${
            (c * stepGroups + part) * rows / 4 + i
          }u + down * ${rowQuads}u];`,
      )
    ),
    ...wScales.flatMap((name, c) =>
      list(
        lineQuads,
        (j) =>
          `let s${name}${j} = w_scale_tile[${
            (c * stepGroups + part) * lines / 4 + j
          }u + across * ${lineQuads}u];`,
      )
    ),
  ];
  return wgsl`
    {
      ${dotsOf(layout).map(dots)}
      ${scales}
      ${block((i, j) => `sum${i}_${j} += ${groupSum(layout, { i, j })};`)}
    }
  `;
}
