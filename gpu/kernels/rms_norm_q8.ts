// A norm whose result is written in 8 bit: a workgroup has a row, which it reads once and keeps in registers.
// What it waits for is memory, twice, and the exchange of one sum, so that is all there is: loads of x and the
// weight are issued together, and the sum takes one barrier where there are subgroups.

import type { Shader } from "../kernel.ts";
import { float, mainOf, wgsl } from "../wgsl.ts";
import { list } from "./matmul/rows.ts";
import { groupQuantizer } from "./quantize_group.ts";

/** What a shader is made for. */
export interface RmsNormQ8Params {
  readonly columns: number;
  /** Whether there is a weight. */
  readonly weight: boolean;
  readonly epsilon: number;
  /** Added to the weight. */
  readonly base: number;
  /** Invocations of a workgroup; a power of 2 from 32 to 1024. */
  readonly workgroup: number;
  /** Lanes of a subgroup by which sums are exchanged, at least 8; 0: by workgroup memory. */
  readonly subgroupSize: number;
}

/** Parts of a shader that normalises a row and makes its codes. */
export interface NormedQuads {
  readonly enables: readonly "subgroups"[];
  /** Module scope. */
  readonly declarations: string;
  /** Module scope: `put`, see quantize_group.ts. */
  readonly put: string;
  /**
   * Statements in uniform control flow from bindings `x` and `gain` and a variable `row` to `quad{p}`,
   * `scale{p}`, `codes{p}`, `half{p}` and `rest{p}`.
   */
  readonly statements: string;
  /** Calls `text` for each pass, for quads that are within the row. */
  stored(text: (p: number) => string): string[];
}

/**
 * The parts of a norm.
 *
 * @param source Statements that define `x{p}` of the quad at `place` of the row; default: that of a binding `x`.
 */
export function normedQuads(
  params: RmsNormQ8Params,
  source?: (p: number, place: string) => string,
): NormedQuads {
  const { columns, weight, epsilon, base, workgroup, subgroupSize } = params;
  const quads = columns / 4;
  const passes = Math.ceil(quads / workgroup);
  const subgroups = subgroupSize > 0;
  const quantizer = groupQuantizer({ columns, workgroup, passes, subgroups });
  const sum = rowSum(workgroup, subgroupSize);
  const isWhole = quads % workgroup === 0;
  const place = (p: number) => isWhole ? `quad${p}` : `min(quad${p}, ${quads - 1}u)`;
  return {
    enables: quantizer.enables,
    declarations: wgsl`
      ${sum.declarations}

      ${quantizer.declarations}
    `,
    put: quantizer.put,
    statements: wgsl`
      ${
      list(passes, (p) =>
        wgsl`
        let quad${p} = thread + ${p * workgroup}u;
        ${source ? source(p, place(p)) : `let x${p} = x[row * ${quads}u + ${place(p)}];`}
        ${weight ? `let gain${p} = ${float(base)} + gain[${place(p)}];` : ""}
      `)
    }
      var square = 0.0;
      ${
      list(passes, (p) =>
        isWhole
          ? `square += dot(x${p}, x${p});`
          : `square += select(0.0, dot(x${p}, x${p}), quad${p} < ${quads}u);`)
    }
      ${sum.statements}
      let factor = 1.0 / sqrt(total / ${float(columns)} + ${float(epsilon)});
      ${list(passes, (p) => `let value${p} = x${p} * factor${weight ? ` * gain${p}` : ""};`)}
      ${quantizer.quantize}
    `,
    stored: (text) =>
      list(passes, (p) => isWhole ? text(p) : `if (quad${p} < ${quads}u) { ${text(p)} }`),
  };
}

/** The entry point of what norms a row a workgroup and stores it in 8 bit. */
export function normMain(
  { statements, stored }: Pick<NormedQuads, "statements" | "stored">,
  workgroup: number,
): string {
  return wgsl`
    @compute @workgroup_size(${workgroup})
    ${mainOf({ group: "id", groups: "count", lane: "thread" })}
      let index = flat_workgroup(id, count);
      let row = min(index, params.rows - 1u);
      ${statements}
      if (index >= params.rows) { return; }
      ${stored((p) => `put(row, quad${p}, scale${p}, codes${p}, half${p}, rest${p});`)}
    }
  `;
}

/** x / sqrt(mean(x²) + epsilon) · (base + gain); bindings x, y, gain; a row a workgroup. */
export function rmsNormQ8(params: RmsNormQ8Params): Shader {
  const { weight, workgroup } = params;
  const norm = normedQuads(params);
  return {
    name: "rms_norm_q8",
    storage: {
      x: "array<vec4<f32>>",
      y: "array<u32>",
      ...weight ? { gain: "array<vec4<f32>>" } : {},
    },
    writes: ["y"],
    uniforms: { rows: "u32" },
    enables: norm.enables,
    code: wgsl`
      ${norm.declarations}

      ${norm.put}

      ${normMain(norm, workgroup)}
    `,
  };
}

/** `total`, the sum of `square` over a workgroup. */
function rowSum(
  workgroup: number,
  subgroupSize: number,
): { readonly declarations: string; readonly statements: string } {
  const total = (vectors: number) =>
    wgsl`
    let sum = ${list(vectors, (i) => `sums[${i}]`).join(" + ")};
    let total = sum.x + sum.y + sum.z + sum.w;
  `;
  if (subgroupSize > 0) {
    const parts = workgroup / subgroupSize;
    if (parts <= 1) return { declarations: "", statements: "let total = subgroupAdd(square);" };
    const vectors = Math.ceil(parts / 4);
    return {
      declarations: `var<workgroup> sums: array<vec4<f32>, ${vectors}>;`,
      statements: wgsl`
        let part = subgroupAdd(square);
        let place = thread / ${subgroupSize}u;
        if (thread % ${subgroupSize}u == 0u) { sums[place >> 2u][place & 3u] = part; }
        workgroupBarrier();
        ${total(vectors)}
      `,
    };
  }
  return {
    declarations: wgsl`
      var<workgroup> squares: array<f32, ${workgroup}>;
      var<workgroup> sums: array<vec4<f32>, 4>;
    `,
    statements: wgsl`
      squares[thread] = square;
      workgroupBarrier();
      if (thread < 16u) {
        sums[thread >> 2u][thread & 3u] =
          ${list(workgroup / 16, (i) => `squares[thread + ${16 * i}u]`).join(" + ")};
      }
      workgroupBarrier();
      ${total(4)}
    `,
  };
}
