// matmul_q8 for many rows: bytes of both sides in workgroup memory, four columns a word, so that the inner
// loop is packed dot products of registers; a group's integers are scaled once. Words of a block's rows lie
// together, four rows a vector, so that which block it is is the only index that is not known, and checked once.

import { type CodeLayout, scaleFacts } from "../../layouts/code_layout.ts";
import type { Shader } from "../../kernel.ts";
import { codeLayout } from "../../weight_layout.ts";
import { wgsl } from "../../wgsl.ts";
import { list } from "./rows.ts";
import { shared, stepLoop, tileOutputs, tileRows, tileShader, type TileShape } from "./tile.ts";
import { NEGATIVES, packedDot, q8RowReader } from "./q8_rows.ts";
import {
  type Dots,
  dotsOf,
  groupSum,
  isSixteenfold,
  rowScales,
  scaleParts,
  SUM_START,
  sumStarts,
} from "./tile_sums.ts";
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
  const places = placesOf(params, layout), { x, w, xScales, wScales } = places;
  const scalesOf = (names: readonly string[]) => names.map((name) => `scales.${name}`);
  const parts = scaleParts(layout), isSigned = isSixteenfold(layout);
  const words = CODE_WORDS.map((word) => isSigned ? `(${word} << 4u) ^ 0x80808080u` : word);
  const xItems = 2 * stepGroups * rows, wItems = stepGroups * lines;
  const fill = () =>
    wgsl`
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
        ${w.store("w_tile", words)}
        let scales = weight_scales(index)${isSigned ? " / 16.0" : ""};
        ${wScales.store("w_scale_tile", scalesOf(parts.w))}
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
        ${xScales.store("x_scale_tile", scalesOf(parts.x))}
      `)
    }
  `;
  return tileShader(params, {
    name: `matmul_gemm_${params.layout}`,
    storage: { x: "array<vec4<u32>>", ...reader.storage },
    get declarations() {
      return wgsl`
      ${reader.code}

      ${q8RowReader(columns)}

      ${packedDot(params.packedDot)}
      ${covers === "signs" ? `\n${NEGATIVES}\n` : ""}
      var<workgroup> x_tile: ${x.type("u32")};
      var<workgroup> w_tile: ${w.type("u32")};
      var<workgroup> x_scale_tile: ${xScales.type("f32")};
      var<workgroup> w_scale_tile: ${wScales.type("f32")};
    `;
    },
    steps: groups / stepGroups,
    get loop() {
      return stepLoop(
        fill(),
        list(stepGroups, (part) => multiplyGroup(params, { layout, part, places })),
      );
    },
  });
}

/** Bytes of workgroup memory that a tile takes. */
export function gemmQ8Bytes(params: Omit<GemmQ8Params, "packedDot">): number {
  const places = placesOf(params, codeLayout(params.layout)!);
  return Object.values(places).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Where the words of a side of a tile lie. */
interface TilePlace {
  readonly bytes: number;
  /** WGSL type of the memory. */
  type(element: "u32" | "f32"): string;
  /** Statements that put the words of `member` and `part` there. */
  store(tile: string, words: readonly string[]): string[];
  /** Index of a vector of a block's word among all parts' words in a row. */
  at(word: number, quad: number): number;
}

/** Those of codes and of scales. */
interface TilePlaces {
  readonly x: TilePlace;
  readonly w: TilePlace;
  readonly xScales: TilePlace;
  readonly wScales: TilePlace;
}

function placesOf(
  { blockRows, blockOutputs, down, across, stepGroups }: Omit<GemmQ8Params, "packedDot">,
  layout: CodeLayout,
): TilePlaces {
  const rows = { block: blockRows, blocks: down }, lines = { block: blockOutputs, blocks: across };
  const { w, x } = scaleParts(layout);
  return {
    x: tilePlace({ ...rows, parts: 2 * stepGroups, words: 4 }),
    w: tilePlace({ ...lines, parts: stepGroups, words: 8 }),
    xScales: tilePlace({ ...rows, parts: stepGroups, words: x.length }),
    wScales: tilePlace({ ...lines, parts: stepGroups, words: w.length }),
  };
}

/** Vectors that are all banks of workgroup memory. */
const BANKS = 8;

/**
 * Place of a side whose members have parts of some words, which neighbouring invocations fill. Parts and blocks stand as far
 * apart that invocations that store, or load, at the same time do so from different banks.
 */
function tilePlace({ block, blocks, parts, words }: {
  readonly block: number;
  readonly blocks: number;
  readonly parts: number;
  readonly words: number;
}): TilePlace {
  const quads = block / 4;
  const part = behind(words * quads, BANKS / parts), whole = behind(parts * part, quads);
  return {
    bytes: 16 * whole * blocks,
    type: (element) => `array<array<vec4<${element}>, ${whole}>, ${blocks}>`,
    store: (tile, values) =>
      values.map((value, k) =>
        `${tile}[member / ${block}u][part * ${part}u + ${
          k * quads
        }u + member % ${block}u / 4u][member & 3u] = ${value};`
      ),
    at: (word, quad) => Math.floor(word / words) * part + word % words * quads + quad,
  };
}

/** The first number from `least` on that is so many banks behind a multiple of all. */
function behind(least: number, banks: number): number {
  return least + ((banks - least) % BANKS + BANKS) % BANKS;
}

/** Adds the products of one group of a step to the sums of a block. */
function multiplyGroup(
  params: GemmQ8Params,
  { layout, part, places: { x, w, xScales, wScales } }: {
    readonly layout: CodeLayout;
    readonly part: number;
    readonly places: TilePlaces;
  },
): string {
  const { blockRows, blockOutputs } = params;
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
          ${list(rowQuads, (i) => `let x${i} = x_tile[down][${x.at(word, i)}];`)}
          ${list(lineQuads, (j) => `let w${j} = w_tile[across][${w.at(word, j)}];`)}
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
  const names = scaleParts(layout);
  const scales = [
    ...names.x.flatMap((name, c) =>
      list(
        rowQuads,
        (i) =>
          `let a${name}${i} = x_scale_tile[down][${xScales.at(part * names.x.length + c, i)}];`,
      )
    ),
    ...names.w.flatMap((name, c) =>
      list(
        lineQuads,
        (j) =>
          `let s${name}${j} = w_scale_tile[across][${wScales.at(part * names.w.length + c, j)}];`,
      )
    ),
  ];
  return wgsl`
    {
      ${dotsOf(layout).map(dots)}
      ${scales}
      ${sumStarts(layout, blockRows)}
      ${block((i, j) => `sum${i}_${j} += ${groupSum(layout, { i, j })};`)}
    }
  `;
}
