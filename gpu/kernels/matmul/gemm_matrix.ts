// matmul_q8 for many rows on subgroup matrices (Dawn's experiment; built-in WebGPU has none): both sides become
// float16 in workgroup memory, sums stay float32. Weights are their numbers, scales applied. The codes of a row of x are
// multiplied by scale / (the row's largest scale), so that nothing leaves the range of float16, and results by that
// largest scale. Products differ from the integer ones by roundings to 11 bits.
//
// A byte becomes a float16 by two masks: 1024 + code is the pattern 0x6400 | code. It gives the columns of a word in
// the order 0, 2, 1, 3; both sides have the same order, and sums do not care.
//
// Columns are no part of the text: compilers take seconds for it, so all matrices of a layout share a pipeline.
//
// What is read for the next step is in registers while the units work on this one. Tiles are vectors of four halves:
// storing single halves takes as long as multiplying them. Tried and not kept: 64 columns a step (half as many barriers,
// and only one workgroup fits a processor), 8-bit matrices (their sums would have to leave the units for every group of
// 32 columns, because a scale can only be applied outside).

import { q8RowBytes } from "../../../quant/q8_activation.ts";
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
import { list } from "./rows.ts";
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
}

/** Bytes of workgroup memory that a tile takes. */
export function matrixBytes(tile: MatrixTile): number {
  const rows = matrixRows(tile);
  return 2 * STRIDE * (rows + matrixOutputs(tile)) + 8 * rows +
    4 * UNIT * UNIT * tile.down * tile.across;
}

/** Scales of a row that are looked at together. */
const AT_ONCE = 8;

/** As in q8_rows.ts, of rows whose length is known when the kernel runs. */
const ROW_READER = wgsl`
  fn x_half_codes(row: u32, half: u32) -> vec4<u32> {
    return x[row * params.stride + half];
  }

  fn x_scales(row: u32, group: u32) -> vec2<f32> {
    let pairs = x[row * params.stride + 2u * params.groups + (group >> 1u)];
    return bitcast<vec2<f32>>(select(pairs.xy, pairs.zw, (group & 1u) == 1u));
  }
`;

/** Values of the uniforms that say how many columns there are. */
export function matrixUniforms(
  columns: number,
): { readonly groups: number; readonly stride: number } {
  return { groups: columns / STEP, stride: q8RowBytes(columns) / 16 };
}

/** What the parts of the text share. */
interface Parts {
  readonly layout: CodeLayout;
  /** Rows and outputs of a tile. */
  readonly rows: number;
  readonly lines: number;
  /** Halves of steps of x, and lines of the weight, that the invocations share out. */
  readonly xItems: { readonly items: number; readonly threads: number };
  readonly wItems: { readonly items: number; readonly threads: number };
}

function partsOf(params: GemmMatrixParams): Parts {
  const layout = codeLayout(params.layout);
  if (!layout) throw new RangeError(`Cannot multiply integers by weights of "${params.layout}"`);
  const rows = matrixRows(params), lines = matrixOutputs(params);
  const threads = params.subgroupSize * params.down * params.across;
  const xItems = { items: 2 * rows, threads }, wItems = { items: lines, threads };
  return { layout, rows, lines, xItems, wItems };
}

/**
 * The shader; bindings x, the planes of the weight, y [splits, rows, outputs]; workgroups: row tiles, line tiles,
 * splits. As those of tile.ts.
 *
 * @throws {RangeError} If the layout holds no codes.
 */
export function gemmMatrix(params: GemmMatrixParams): Shader {
  const { down, across, unitRows, unitOutputs, subgroupSize } = params;
  const parts = partsOf(params);
  const { layout, rows, lines, xItems, wItems } = parts, { threads } = xItems;
  const reader = codeReader(layout, { groups: "params.groups" });
  const sums = (text: (i: number, j: number) => string) =>
    list(unitRows * unitOutputs, (n) => text(Math.floor(n / unitOutputs), n % unitOutputs));
  const perThread = ({ items }: { readonly items: number }) => Math.ceil(items / threads);
  return {
    name: `matmul_matrix_${params.layout}`,
    storage: { x: "array<vec4<u32>>", ...reader.storage, y: "array<f32>" },
    writes: ["y"],
    uniforms: { ...TILE_UNIFORMS, groups: "u32", stride: "u32" },
    enables: ["f16", "subgroups", "subgroup_matrix"],
    code: wgsl`
      ${reader.code}

      ${ROW_READER}

      var<workgroup> x_tile: array<vec4<f16>, ${rows * STRIDE / 4}>;
      var<workgroup> w_tile: array<vec4<f16>, ${lines * STRIDE / 4}>;
      var<workgroup> x_top: array<f32, ${rows}>;
      var<workgroup> x_inverse: array<f32, ${rows}>;
      var<workgroup> y_tile: array<f32, ${UNIT * UNIT * down * across}>;

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
        for (var i = thread; i < ${rows}u; i += ${threads}u) {
          let row = min(row_tile + i, params.rows - 1u);
          var top = 0.0;
          for (var group = begin; group < end; group += ${AT_ONCE}u) {
            // Several loads at a time: each takes as long as a step.
            ${
      list(AT_ONCE, (n) => `let scale${n} = x_scales(row, min(group + ${n}u, end - 1u)).x;`)
    }
            ${list(AT_ONCE, (n) => `top = max(top, scale${n});`)}
          }
          x_top[i] = top;
          x_inverse[i] = select(0.0, 1.0 / top, top > 0.0);
        }
        workgroupBarrier();
        ${sums((i, j) => `var sum${i}_${j}: ${RESULT};`)}
        ${list(perThread(xItems), (i) => `var x_codes${i}: vec4<u32>; var x_scale${i}: f16;`)}
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
        let row = min(row_tile + ${item} / 2u, params.rows - 1u);
        x_codes${i} = x_half_codes(row, 2u * next + ${item} % 2u);
        x_scale${i} = f16(x_scales(row, next).x * x_inverse[${item} / 2u]);
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

/** Writes what was read as tiles of halves. */
function fill({ layout, xItems, wItems }: Parts): string {
  return wgsl`
    ${
    shared(xItems, (item, i) =>
      wgsl`
        let at = (${item} / 2u) * ${STRIDE / 4}u + (${item} % 2u) * 4u;
        ${
        list(4, (q) =>
          `x_tile[at + ${q}u] = halves(x_codes${i}.${
            "xyzw"[q]
          } ^ 0x80808080u, 128h) * x_scale${i};`)
      }
      `)
  }
    ${
    shared(wItems, (item, i) =>
      wgsl`
        let at = ${item} * ${STRIDE / 4}u;
        ${list(8, (q) => `w_tile[at + ${q}u] = ${weightHalves(layout, i, q)};`)}
      `)
  }
  `;
}

// What a matrix holds where is its own affair: it goes through memory, where rows get their scale.
function store({ subgroupSize }: GemmMatrixParams, i: number, j: number): string {
  return wgsl`
    subgroupMatrixStore<row_major>(&y_tile, subgroup * ${UNIT * UNIT}u, sum${i}_${j}, ${UNIT}u);
    workgroupBarrier();
    for (var at = lane; at < ${UNIT * UNIT}u; at += ${subgroupSize}u) {
      let member = first_row + ${UNIT * i}u + at / ${UNIT}u;
      let row = row_tile + member;
      let line = line_tile + first_line + ${UNIT * j}u + at % ${UNIT}u;
      if (row < params.rows && line < params.lines) {
        y[(id.z * params.rows + row) * params.outputs + params.first + line] =
          y_tile[subgroup * ${UNIT * UNIT}u + at] * x_top[member];
      }
    }
    workgroupBarrier();
  `;
}

/** A quad of weight number `i` of an invocation: their numbers, as `vec4<f16>`. */
function weightHalves(layout: CodeLayout, i: number, quad: number): string {
  const { covers, minima } = scaleFacts(layout);
  const half = quad < 4 ? "low" : "high";
  const word = `w_codes${i}.${half}.${"xyzw"[quad & 3]}`;
  const signed = isSigned(layout.codes);
  const bytes = (subtracted: number) =>
    `halves(${signed ? `${word} ^ 0x80808080u` : word}, ${subtracted + (signed ? 128 : 0)}h)`;
  const upper = covers === "halves" && half === "high";
  // Without minima the offset goes before the scale is applied, which is exact.
  const scale = `w_scales${i}.${upper ? minima ? "z" : "y" : "x"}`;
  if (layout.scales === "d" || layout.scales === "k16") {
    return `${bytes(layout.offset)} * f16(${scale})`;
  }
  const floats = `vec4<f32>(${bytes(minima ? 0 : layout.offset)})`;
  if (covers === "signs") {
    return `vec4<f16>(${floats} * select(vec4<f32>(w_scales${i}.y), vec4<f32>(w_scales${i}.x), ` +
      `${floats} > vec4<f32>()))`;
  }
  const minimum = minima ? ` + vec4<f32>(w_scales${i}.${upper ? "w" : "y"})` : "";
  return `vec4<f16>(${floats} * ${scale}${minimum})`;
}
