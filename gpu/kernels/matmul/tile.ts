// What the products for many rows share: a workgroup makes a tile of rows × outputs, each invocation a block of
// it in registers; a step brings some columns of both sides into workgroup memory. Each of `params.splits`
// workgroups makes a sum over a part of the columns, so that narrow outputs fill a device too, and matmul_reduce
// adds them up. With one split the result is there at once, with what is added to it.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import {
  type Addends,
  finished,
  finishedQuad,
  list,
  MATMUL_UNIFORMS,
  resultStorage,
} from "./rows.ts";

/** Shape of a tile. */
export interface TileShape {
  /** Columns of the weight. */
  readonly columns: number;
  /** Rows of an invocation's block; a multiple of 4. */
  readonly blockRows: number;
  /** Outputs of an invocation's block; a multiple of 4. */
  readonly blockOutputs: number;
  /** Invocations along the outputs. */
  readonly across: number;
  /** Invocations along the rows. */
  readonly down: number;
  /** What is added to the sums where there is one split; default: nothing. */
  readonly added?: Addends;
  /** Whether rows of y are whole quads, and so are the lines of a part. */
  readonly wholeQuads?: boolean;
}

/** Rows of a tile. */
export function tileRows({ blockRows, down }: Pick<TileShape, "blockRows" | "down">): number {
  return blockRows * down;
}

/** Outputs of a tile. */
export function tileOutputs(
  { blockOutputs, across }: Pick<TileShape, "blockOutputs" | "across">,
): number {
  return blockOutputs * across;
}

/** The pieces of arithmetic that make a tile kernel. */
export interface TileArithmetic {
  readonly name: string;
  /** WGSL types of x and the planes of the weight. */
  readonly storage: Readonly<Record<string, string>>;
  /** Functions and workgroup memory. */
  readonly declarations: string;
  /** Steps over all columns. */
  readonly steps: number;
  /**
   * The loop over `step`, which is given, up to `end`. Its statements use `thread`, `row_tile`, `line_tile`, and `down` and
   * `across`, the place of the invocation, and add to `sum{i}_{j}: vec4<f32>`: row i of the block and its outputs
   * 4j … 4j + 3.
   */
  readonly loop: string;
  /** Whether an invocation's quads lie as far apart as float_tile.ts has them; else they follow each other. */
  readonly isSpread?: boolean;
}

/** A loop that fills workgroup memory for a step, then multiplies. */
export function stepLoop(fill: string, multiply: readonly string[]): string {
  return wgsl`
    for (; step < end; step++) {
      ${fill}
      workgroupBarrier();
      ${multiply}
      workgroupBarrier();
    }
  `;
}

/** Uniforms of a tile kernel. */
export const TILE_UNIFORMS = { ...MATMUL_UNIFORMS, splits: "u32" } as const;

/** The shader of an arithmetic; y is [splits, rows, outputs], then bias and residual; workgroups: row tiles, line tiles, splits. */
export function tileShader(shape: TileShape, arithmetic: TileArithmetic): Shader {
  const { blockRows, blockOutputs, across, down, added = { bias: false } } = shape;
  const { wholeQuads = false } = shape, { steps, isSpread = false } = arithmetic;
  const rowStep = isSpread ? 4 * down : 4, lineStep = isSpread ? 4 * across : 4;
  const quads = blockOutputs / 4;
  const sums = (text: (i: number, j: number) => string) =>
    list(blockRows * quads, (n) => text(Math.floor(n / quads), n % quads));
  return {
    name: arithmetic.name,
    storage: {
      ...arithmetic.storage,
      ...resultStorage(added),
      ...wholeQuads && { y: "array<vec4<f32>>" },
    },
    writes: ["y"],
    uniforms: TILE_UNIFORMS,
    get code() {
      return wgsl`
      ${arithmetic.declarations}

      ${added.activation ?? ""}

      fn store(split: u32, row: u32, line: u32, sum: vec4<f32>) {
        if (row >= params.rows) { return; }
        let output = params.first + line;
        let at = (split * params.rows + row) * params.outputs + output;
        ${wholeQuads ? quadStore(added) : quadStores(added)}
      }

      @compute @workgroup_size(${across}, ${down})
      ${mainOf({ group: "id", lane: "thread" })}
        let across = thread % ${across}u;
        let down = thread / ${across}u;
        let row_tile = id.x * ${tileRows(shape)}u;
        let line_tile = id.y * ${tileOutputs(shape)}u;
        let share = (${steps}u + params.splits - 1u) / params.splits;
        let begin = min(id.z * share, ${steps}u);
        let end = min(begin + share, ${steps}u);
        ${sums((i, j) => `var sum${i}_${j} = vec4<f32>();`)}
        var step = begin;
        ${arithmetic.loop}
        let row = row_tile + down * ${isSpread ? 4 : blockRows}u;
        let line = line_tile + across * ${isSpread ? 4 : blockOutputs}u;
        ${
        sums((i, j) =>
          `store(id.z, row + ${(i >> 2) * rowStep + (i & 3)}u, line + ${
            j * lineStep
          }u, sum${i}_${j});`
        )
      }
      }
    `;
    },
  };
}

/** Stores four results one by one. */
function quadStores(added: Addends): string[] {
  return list(4, (i) => {
    const places = { output: `output + ${i}u`, at: `at + ${i}u` };
    const result = finished(`sum.${"xyzw"[i]}`, added, places);
    return `if (line + ${i}u < params.lines) { y[at + ${i}u] = ${result}; }`;
  });
}

/** Stores them as one. */
function quadStore(added: Addends): string {
  const result = finishedQuad("sum", added, { output: "output", at: "at" });
  return `if (line < params.lines) { y[at >> 2u] = ${result}; }`;
}

/**
 * Statements for `items` items shared by `threads` invocations, written out; `text` uses the item's name, and how many
 * an invocation has had before. Sharing begins at invocation `first`, so that small jobs are done beside each other.
 */
export function shared(
  { items, threads, first = 0 }: {
    readonly items: number;
    readonly threads: number;
    readonly first?: number;
  },
  text: (item: string, number: number) => string,
): string[] {
  const start = first % threads;
  const own = start === 0 ? "thread" : `(thread + ${threads - start}u) % ${threads}u`;
  return list(Math.ceil(items / threads), (i) => {
    const item = i === 0 ? own : `${own} + ${i * threads}u`;
    const isWhole = (i + 1) * threads <= items;
    return wgsl`
      {
        let item = ${item};
        ${
      isWhole ? text("item", i) : wgsl`
          if (item < ${items}u) {
            ${text("item", i)}
          }
        `
    }
      }
    `;
  });
}
