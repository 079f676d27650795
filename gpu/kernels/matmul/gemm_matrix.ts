// matmul_q8 for many rows on subgroup matrices (Dawn's experiment; built-in WebGPU has none): both sides are float16 in
// workgroup memory, sums stay float32. Rows are halves already (code_halves.ts); weights become their numbers here, scales
// applied. Products differ from the integer ones by roundings to 11 bits.
//
// A byte becomes a float16 by two masks: 1024 + code is the pattern 0x6400 | code. It gives the columns of a word in
// the order 0, 2, 1, 3; both sides have the same order, and sums do not care.
//
// Columns are no part of the text: compilers take seconds for it, so all matrices of a layout share a pipeline.
//
// What is read for the next step is in registers while the units work on this one. Tiles are vectors of four halves:
// storing single halves takes as long as multiplying them. Tried and not kept (bench/results/kernels.md): 64 columns a step,
// larger and smaller tiles, a second tile that is filled meanwhile, weights made halves before as well, 8-bit matrices (their
// sums would have to leave the units for every group of 32 columns, because a scale can only be applied outside).

import { type CodeLayout, scaleFacts } from "../../layouts/code_layout.ts";
import type { Shader } from "../../kernel.ts";
import { codeLayout } from "../../weight_layout.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import {
  matrixOutputs,
  matrixRows,
  type MatrixTile,
  multiplyMatrices,
  RESULT,
  STEP,
  STRIDE,
  UNIT,
} from "./matrix_tile.ts";
import { type Addends, finished, list, resultStorage } from "./rows.ts";
import { shared, TILE_UNIFORMS } from "./tile.ts";
import { isSigned } from "./weight_codes.ts";
import { codeReader } from "./weight_reader.ts";
import { scaleType } from "./weight_scales.ts";

/** What a shader is made for. */
export interface GemmMatrixParams extends MatrixTile {
  /** Id of the weight's layout. */
  readonly layout: string;
  /** Invocations of a subgroup. */
  readonly subgroupSize: number;
  /** Whether rows of y are whole quads, and so are the lines of a part: matrices are stored at multiples of 16 bytes alone. */
  readonly wholeQuads?: boolean;
  /** What is added to the sums where there is one split; default: nothing. */
  readonly added?: Addends | undefined;
}

/** Bytes of workgroup memory that a tile takes. */
export function matrixBytes(tile: MatrixTile): number {
  return 2 * STRIDE * (matrixRows(tile) + matrixOutputs(tile)) +
    4 * UNIT * UNIT * tile.down * tile.across;
}

/** Vectors of eight halves that a row has in a step. */
const EIGHTS = STEP / 8;

/** What the parts of the text share. */
interface Parts {
  readonly layout: CodeLayout;
  /** Rows and outputs of a tile. */
  readonly rows: number;
  readonly lines: number;
  /** Eights of x, and lines of the weight, that the invocations share out. */
  readonly xItems: { readonly items: number; readonly threads: number };
  readonly wItems: { readonly items: number; readonly threads: number };
}

function partsOf(params: GemmMatrixParams): Parts {
  const layout = codeLayout(params.layout);
  if (!layout) throw new RangeError(`Cannot multiply integers by weights of "${params.layout}"`);
  const rows = matrixRows(params), lines = matrixOutputs(params);
  const threads = params.subgroupSize * params.down * params.across;
  const xItems = { items: EIGHTS * rows, threads }, wItems = { items: lines, threads };
  return { layout, rows, lines, xItems, wItems };
}

/**
 * The shader; bindings x, tops (code_halves.ts), the planes of the weight, y [splits, rows, outputs], bias, residual; workgroups:
 * row tiles, line tiles, splits. As those of tile.ts.
 *
 * @throws {RangeError} If the layout holds no codes.
 */
export function gemmMatrix(params: GemmMatrixParams): Shader {
  const { down, across, unitRows, unitOutputs, subgroupSize } = params,
    { added = { bias: false } } = params;
  const parts = partsOf(params);
  const { layout, rows, lines, xItems, wItems } = parts, { threads } = xItems;
  const reader = codeReader(layout, { groups: "params.groups" });
  const sums = (text: (i: number, j: number) => string) =>
    list(unitRows * unitOutputs, (n) => text(Math.floor(n / unitOutputs), n % unitOutputs));
  const perThread = ({ items }: { readonly items: number }) => Math.ceil(items / threads);
  return {
    name: `matmul_matrix_${params.layout}`,
    storage: {
      ...{ x: "array<vec4<u32>>", tops: "array<f32>" },
      ...{ ...reader.storage, ...resultStorage(added) },
    },
    writes: ["y"],
    uniforms: { ...TILE_UNIFORMS, groups: "u32" },
    enables: ["f16", "subgroups", "subgroup_matrix"],
    code: wgsl`
      ${reader.code}

      var<workgroup> x_tile: array<vec4<f16>, ${rows * STRIDE / 4}>;
      var<workgroup> w_tile: array<vec4<f16>, ${lines * STRIDE / 4}>;
      var<workgroup> y_tile: array<f32, ${UNIT * UNIT * down * across}>;

      ${added.activation ?? ""}

      // Four unsigned bytes, of which a number is subtracted, in the order 0, 2, 1, 3.
      fn halves(word: u32, offset: f16) -> vec4<f16> {
        let even = bitcast<vec2<f16>>((word & 0x00ff00ffu) | 0x64006400u);
        let odd = bitcast<vec2<f16>>(((word >> 8u) & 0x00ff00ffu) | 0x64006400u);
        return vec4<f16>(even, odd) - vec4<f16>(1024h + offset);
      }

      @compute @workgroup_size(${threads})
      ${mainOf({ group: "id", lane: "thread" })}
        let row_tile = id.x * ${rows}u;
        let line_tile = id.y * ${lines}u;
        let subgroup = thread / ${subgroupSize}u;
        let lane = thread % ${subgroupSize}u;
        let first_row = (subgroup / ${across}u) * ${UNIT * unitRows}u;
        let first_line = (subgroup % ${across}u) * ${UNIT * unitOutputs}u;
        let share = (params.groups + params.splits - 1u) / params.splits;
        let begin = min(id.z * share, params.groups);
        let end = min(begin + share, params.groups);
        ${sums((i, j) => `var sum${i}_${j} = ${RESULT}();`)}
        ${list(perThread(xItems), (i) => `var x_next${i}: vec4<u32>;`)}
        ${
      list(perThread(wItems), (i) =>
        `var w_codes${i}: Codes; var w_scales${i}: ${scaleType(layout)};`)
    }
        ${fetch(parts, "begin")}
        for (var step = begin; step < end; step++) {
          ${fill(parts)}
          workgroupBarrier();
          ${fetch(parts, "min(step + 1u, end - 1u)")}
          ${list(STEP / UNIT, (k) => multiplyMatrices(params, k))}
          workgroupBarrier();
        }
        let first_unit = (row_tile + first_row) / ${UNIT}u;
        let last_unit = (params.rows - 1u) / ${UNIT}u;
        ${list(unitRows, (i) => `let top${i} = tops[min(first_unit + ${i}u, last_unit)];`)}
        ${storeWhole(params, sums)}
        ${sums((i, j) => store(params, i, j))}
      }
    `,
  };
}

/** Reads what a step needs into registers. */
function fetch({ xItems, wItems }: Parts, step: string): string {
  return wgsl`
    {
      let next = ${step};
      ${
    shared(xItems, (item, i) =>
      wgsl`
        let row = min(row_tile + ${item} / ${EIGHTS}u, params.rows - 1u);
        x_next${i} = x[(row * params.groups + next) * ${EIGHTS}u + ${item} % ${EIGHTS}u];
      `)
  }
      ${
    shared(wItems, (item, i) =>
      wgsl`
        let line = min(line_tile + ${item}, params.lines - 1u);
        w_codes${i} = weight_codes(line * params.groups + next);
        w_scales${i} = weight_scales(line * params.groups + next);
      `)
  }
    }
  `;
}

/**
 * Writes what was read as tiles of halves. Lines begin in eight places of the banks that take turns, so invocations that are
 * eight apart write the two quads of a pair in another order.
 */
function fill({ layout, xItems, wItems }: Parts): string {
  return wgsl`
    ${
    shared(xItems, (item, i) =>
      wgsl`
        let at = (${item} / ${EIGHTS}u) * ${STRIDE / 4}u + (${item} % ${EIGHTS}u) * 2u;
        let turn = (${item} >> 3u) & 1u;
        let pair = select(x_next${i}, x_next${i}.zwxy, turn == 1u);
        x_tile[at + turn] = bitcast<vec4<f16>>(pair.xy);
        x_tile[at + 1u - turn] = bitcast<vec4<f16>>(pair.zw);
      `)
  }
    ${
    shared(wItems, (item, i) =>
      wgsl`
        let at = ${item} * ${STRIDE / 4}u;
        let turn = (${item} >> 3u) & 1u;
        ${list(4, (pair) => fillPair(layout, i, pair))}
      `)
  }
  `;
}

/** Quads 2n and 2n + 1 of weight number `i` of an invocation. */
function fillPair(layout: CodeLayout, i: number, pair: number): string {
  const half = pair < 2 ? "low" : "high", words = `w_codes${i}.${half}`;
  const [a, b] = pair % 2 === 0 ? ["x", "y"] : ["z", "w"];
  const halves = (word: string) => weightHalves(layout, { half, word, scales: `w_scales${i}` });
  return wgsl`
    {
      let first = select(${words}.${a}, ${words}.${b}, turn == 1u);
      let second = select(${words}.${b}, ${words}.${a}, turn == 1u);
      w_tile[at + ${2 * pair}u + turn] = ${halves("first")};
      w_tile[at + ${2 * pair + 1}u - turn] = ${halves("second")};
    }
  `;
}

/** Stores a tile that is whole, where nothing is added to it, as matrices. */
function storeWhole(
  params: GemmMatrixParams,
  sums: (text: (i: number, j: number) => string) => readonly string[],
): string {
  const { wholeQuads = false, added } = params;
  if (!wholeQuads || added?.bias || added?.residual || added?.activation) return "";
  return wgsl`
    if (row_tile + ${matrixRows(params)}u <= params.rows &&
      line_tile + ${matrixOutputs(params)}u <= params.lines) {
      let to = (id.z * params.rows + row_tile + first_row) * params.outputs + params.first +
        line_tile + first_line;
      ${
    sums((i, j) =>
      `subgroupMatrixStore<row_major>(&y, to + ${UNIT * i}u * params.outputs + ${UNIT * j}u, ` +
      `subgroupMatrixScalarMultiply(sum${i}_${j}, top${i}), params.outputs);`
    )
  }
      return;
    }
  `;
}

// What a matrix holds where is its own affair: results that are not all wanted go through memory. What is added to them is read
// beforehand, all at once: one by one, each would be waited for.
function store(
  { subgroupSize, added = { bias: false } }: GemmMatrixParams,
  i: number,
  j: number,
): string {
  const { residual = false, ...before } = added, tile = UNIT * UNIT;
  const place = wgsl`
    let row = row_tile + first_row + ${UNIT * i}u + at / ${UNIT}u;
    let line = line_tile + first_line + ${UNIT * j}u + at % ${UNIT}u;
    let output = params.first + min(line, params.lines - 1u);
    let to = (id.z * params.rows + min(row, params.rows - 1u)) * params.outputs + output;
  `;
  const write = (more: string) =>
    wgsl`
      ${place}
      if (row < params.rows && line < params.lines) {
        let sum = y_tile[subgroup * ${tile}u + at] * top${i};
        y[to] = ${finished("sum", before, { output: "output", at: "to" })}${more};
      }
    `;
  const each = (text: (n: number) => string) =>
    list(tile / subgroupSize, (n) => `{ let at = lane + ${n * subgroupSize}u; ${text(n)} }`);
  const names = list(tile / subgroupSize, (n) => `var more${n}: f32;`);
  return wgsl`
    {
      ${residual ? [...names, ...each((n) => `${place} more${n} = residual[to];`)] : []}
      subgroupMatrixStore<row_major>(&y_tile, subgroup * ${tile}u, sum${i}_${j}, ${UNIT}u);
      workgroupBarrier();
      ${
    residual
      ? each((n) => write(` + more${n}`))
      : `for (var at = lane; at < ${tile}u; at += ${subgroupSize}u) { ${write("")} }`
  }
      workgroupBarrier();
    }
  `;
}

/** The numbers of a word of codes from a half of a group, as `vec4<f16>`. */
function weightHalves(layout: CodeLayout, { half, word, scales }: {
  readonly half: "low" | "high";
  readonly word: string;
  readonly scales: string;
}): string {
  const { covers, minima } = scaleFacts(layout);
  const signed = isSigned(layout.codes);
  const bytes = (subtracted: number) =>
    `halves(${signed ? `${word} ^ 0x80808080u` : word}, ${subtracted + (signed ? 128 : 0)}h)`;
  const upper = covers === "halves" && half === "high";
  // Without minima the offset goes before the scale is applied, which is exact.
  const scale = `${scales}.${upper ? minima ? "z" : "y" : "x"}`;
  if (layout.scales === "d" || layout.scales === "k16") {
    return `${bytes(layout.offset)} * f16(${scale})`;
  }
  const floats = `vec4<f32>(${bytes(minima ? 0 : layout.offset)})`;
  if (covers === "signs") {
    return `vec4<f16>(${floats} * select(vec4<f32>(${scales}.y), vec4<f32>(${scales}.x), ` +
      `${floats} > vec4<f32>()))`;
  }
  const minimum = minima ? ` + vec4<f32>(${scales}.${upper ? "w" : "y"})` : "";
  return `vec4<f16>(${floats} * ${scale}${minimum})`;
}
