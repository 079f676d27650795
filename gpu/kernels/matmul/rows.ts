// What the products for few rows share, whatever they multiply: which rows and outputs a team of lanes has, and
// where a result goes. Two frames: rows by one matrix (or a part of it), and each row by a matrix of its own
// out of a stack (expert_matmul), where lines that lie in another part are left to that part's dispatch.
// Indices are clamped once, before the loop, instead of being tested in it.

import type { Shader } from "../../kernel.ts";
import { mainOf, wgsl } from "../../wgsl.ts";
import { type TeamSize, teamSum, type TeamSums } from "./team_sum.ts";

/** Shape of a product for few rows. */
export interface RowsShape extends TeamSize {
  /** Columns of the weight. */
  readonly columns: number;
  /** Rows of x that a workgroup takes; 1 with `chosen`. */
  readonly rows: number;
  /** Outputs of one team. */
  readonly outputs: number;
  /** Steps of the loop that are written out. */
  readonly unroll: number;
  /** Whether there is a bias. */
  readonly bias: boolean;
  /** See Addends; neither with `chosen`. */
  readonly residual?: boolean;
  readonly activation?: string | undefined;
  /** Matrices of a stack: those of a list, or item i's is matrix i. */
  readonly chosen?: "list" | "place";
}

/** Outputs of one workgroup. */
export function workgroupOutputs({ workgroup, lanes, outputs }: RowsShape): number {
  return workgroup / lanes * outputs;
}

/** Parts of a shader that multiplies few rows. */
interface RowsFrame {
  /** WGSL types of y and of the optional bindings. */
  readonly storage: Readonly<Record<string, string>>;
  readonly uniforms: Readonly<Record<string, "u32">>;
  /** Module scope: `store(index, first, sum)` for the results that teamSum makes. */
  readonly declarations: string;
  /**
   * Start of `main`: defines `lane`, `tile`, `first`, the rows `row0`, … of x, and `line0`, … of this part of
   * the weight, all within bounds.
   */
  readonly prologue: string;
}

function rowsFrame(shape: RowsShape): RowsFrame {
  return shape.chosen ? chosenFrame(shape, shape.chosen) : plainFrame(shape);
}

/** Uniforms of a product: lines of this part, the first of them, outputs in all, rows. */
export const MATMUL_UNIFORMS = { lines: "u32", first: "u32", outputs: "u32", rows: "u32" } as const;

function plainFrame(shape: RowsShape): RowsFrame {
  const { rows, outputs } = shape;
  return {
    storage: resultStorage(shape),
    uniforms: MATMUL_UNIFORMS,
    declarations: wgsl`
      var<private> first_row: u32;

      fn store(index: u32, first: u32, sum: f32) {
        let row = first_row + index / ${outputs}u;
        let line = first + index % ${outputs}u;
        if (row < params.rows && line < params.lines) {
          let output = params.first + line;
          let at = row * params.outputs + output;
          y[at] = ${finished("sum", shape, { output: "output", at: "at" })};
        }
      }

      ${shape.activation ?? ""}
    `,
    // Workgroups that read the same weights are neighbours.
    prologue: wgsl`
      let row_tiles = ${rows === 1 ? "params.rows" : `(params.rows + ${rows - 1}u) / ${rows}u`};
      let flat = flat_workgroup(id, count);
      let tile = flat / row_tiles * ${workgroupOutputs(shape)}u;
      first_row = flat % row_tiles * ${rows}u;
      ${list(rows, (r) => `let row${r} = min(first_row + ${r}u, params.rows - 1u);`)}
      ${lanesAndLines(shape, (o) => `first + ${o}u`)}
    `,
  };
}

/** Uniforms of chosen matrices: also items of a row, and how many of them share a row of x. */
const CHOSEN_UNIFORMS = { ...MATMUL_UNIFORMS, items: "u32", sharing: "u32" } as const;

function chosenFrame(shape: RowsShape, chosen: "list" | "place"): RowsFrame {
  const { outputs } = shape;
  const matrix = { list: "u32(chosen[item])", place: "item % params.items" };
  return {
    storage: { ...resultStorage(shape), ...chosen === "list" ? { chosen: "array<i32>" } : {} },
    uniforms: CHOSEN_UNIFORMS,
    declarations: wgsl`
      var<private> item: u32;
      var<private> start: u32;

      fn store(index: u32, first: u32, sum: f32) {
        let output = first + index % ${outputs}u;
        let line = start + output;
        // A line before this part wraps around to a number that is too large.
        if (item < params.rows && output < params.outputs && line - params.first < params.lines) {
          y[item * params.outputs + output] = ${finished("sum", shape, { output: "line", at: "" })};
        }
      }
    `,
    prologue: wgsl`
      let tiles = (params.outputs + ${workgroupOutputs(shape) - 1}u) / ${workgroupOutputs(shape)}u;
      let flat = flat_workgroup(id, count);
      let tile = flat % tiles * ${workgroupOutputs(shape)}u;
      item = flat / tiles;
      let row0 = min(item, params.rows - 1u) / params.sharing;
      if (item < params.rows) { start = ${matrix[chosen]} * params.outputs; }
      ${lanesAndLines(shape, (o) => `start + first + ${o}u - params.first`)}
    `,
  };
}

function lanesAndLines({ lanes, outputs }: RowsShape, lineOf: (output: number) => string): string {
  return wgsl`
    let lane = thread % ${lanes}u;
    let first = tile + thread / ${lanes}u * ${outputs}u;
    ${list(outputs, (o) => `let line${o} = min(${lineOf(o)}, params.lines - 1u);`)}
  `;
}

/** What becomes of a product: a bias is added, a function applied, something like y added. */
export interface Addends {
  readonly bias: boolean;
  /** WGSL of `activation(vec4<f32>) -> vec4<f32>`; absent: there is none. */
  readonly activation?: string | undefined;
  readonly residual?: boolean;
}

/** WGSL types of a product's result and of what is added to it. */
export function resultStorage({ bias, residual }: Addends): Record<string, string> {
  return {
    y: "array<f32>",
    ...bias ? { bias: "array<f32>" } : {},
    ...residual ? { residual: "array<f32>" } : {},
  };
}

/** What becomes of a sum whose result is at `at`, output `output` of its row: an expression of expressions. */
export function finished(
  sum: string,
  added: Addends,
  { output, at }: { readonly output: string; readonly at: string },
): string {
  return finishedBy(sum, added, { bias: `bias[${output}]`, residual: `residual[${at}]` });
}

/** The same by what is added, of expressions; they are quads where `isQuad` says so. */
export function finishedBy(
  sum: string,
  { bias, activation, residual }: Addends,
  added: { readonly bias: string; readonly residual: string; readonly isQuad?: boolean },
): string {
  const biased = `${sum}${bias ? ` + ${added.bias}` : ""}`;
  const active = activation === undefined
    ? biased
    : added.isQuad
    ? `activation(${biased})`
    : `activation(vec4<f32>(${biased})).x`;
  return `${active}${residual ? ` + ${added.residual}` : ""}`;
}

/** What becomes of a quad of sums. */
export function finishedQuad(
  sum: string,
  added: Addends,
  { output, at }: { readonly output: string; readonly at: string },
): string {
  const quad = (name: string, first: string) =>
    `vec4<f32>(${list(4, (i) => `${name}[${first} + ${i}u]`).join(", ")})`;
  return finishedBy(sum, added, {
    ...{ bias: quad("bias", output), residual: quad("residual", at), isQuad: true },
  });
}

/** Text for each of 0 … count - 1. */
export function list(count: number, text: (i: number) => string): string[] {
  return Array.from({ length: count }, (_, i) => text(i));
}

/** What is its own of a product for few rows. */
export interface RowsProduct {
  readonly name: string;
  /** WGSL types of x and the planes of the weight. */
  readonly storage: Readonly<Record<string, string>>;
  /** Those of bindings behind the frame's. */
  readonly storageBehind?: Readonly<Record<string, string>>;
  readonly enables?: Shader["enables"];
  readonly declarations: string;
  /** Statements before all others. */
  readonly start?: string;
  /** The loop; it adds to `sum{row · outputs + output}`. */
  readonly loop: string;
  /** How many sums there are besides, and what results are of all. */
  readonly besides?: { readonly sums: number; readonly result: TeamSums["result"] } | undefined;
}

/** The shader of a product in the frame of a shape. */
export function rowsShader(shape: RowsShape, product: RowsProduct): Shader {
  const frame = rowsFrame(shape);
  const results = shape.rows * shape.outputs, { besides } = product;
  const sums = results + (besides?.sums ?? 0);
  const team = teamSum(shape, {
    ...{ sums, results, outputs: shape.outputs, result: besides?.result },
  });
  return {
    name: product.name,
    storage: { ...product.storage, ...frame.storage, ...product.storageBehind },
    writes: ["y"],
    uniforms: frame.uniforms,
    enables: product.enables ?? team.enables,
    code: wgsl`
      ${product.declarations}

      ${team.declarations}
      ${frame.declarations}

      @compute @workgroup_size(${shape.workgroup})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        ${[...product.start ? [product.start] : [], frame.prologue]}
        ${list(sums, (i) => `var sum${i} = 0.0;`)}
        ${product.loop}
        ${team.reduce}
      }
    `,
  };
}
