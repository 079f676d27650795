// Adds up the sums that the splits of a tile kernel made, and the bias and the residual; norms rows of that.

import type { Shader } from "../../kernel.ts";
import { float, mainOf, wgsl } from "../../wgsl.ts";
import { workgroupReduction } from "../reduce.ts";
import { type Addends, finished, list, resultStorage } from "./rows.ts";

const WORKGROUP = 256;

/** Splits that are read at once: one by one, each would be waited for. */
const AT_ONCE = 4;

/** A loop over the splits; `add` says what is done with those that are read at once. */
function splitLoop(add: string | readonly string[]): string {
  return wgsl`
    for (var split = 0u; split < params.splits; split += ${AT_ONCE}u) {
      ${list(AT_ONCE, (n) => `let start${n} = min(split + ${n}u, params.splits - 1u) * results;`)}
      ${add}
    }
  `;
}

/** Adds what splits have at a place to a sum, in their order. */
function addSplits(sum: string, place: string): string {
  const part = (n: number) => `partial[start${n} + ${place}]`;
  const more = list(
    AT_ONCE - 1,
    (n) => `select(0.0, ${part(n + 1)}, split + ${n + 1}u < params.splits)`,
  );
  return `${sum} = ${[sum, part(0), ...more].join(" + ")};`;
}

/** Workgroups for a number of results. */
export const REDUCE_RESULTS: number = WORKGROUP;

/** The shader; bindings partial, y, bias, residual; partial is [splits, results]. */
export function matmulReduce(added: Addends): Shader {
  return {
    name: "matmul_reduce",
    storage: { partial: "array<f32>", ...resultStorage(added) },
    writes: ["y"],
    uniforms: { results: "u32", outputs: "u32", splits: "u32" },
    code: wgsl`
      ${added.activation ?? ""}

      @compute @workgroup_size(${WORKGROUP})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let i = flat_workgroup(id, count) * ${WORKGROUP}u + thread;
        if (i >= params.results) { return; }
        var sum = 0.0;
        let results = params.results;
        ${splitLoop(addSplits("sum", "i"))}
        y[i] = ${finished("sum", added, { output: "i % params.outputs", at: "i" })};
      }
    `,
  };
}

/** What rows are normed with behind a product. */
export interface NormBehind {
  /** Outputs of the product. */
  readonly columns: number;
  readonly epsilon: number;
  readonly gain: boolean;
  readonly shift: boolean;
}

/** Widest rows whose sums stay in registers. */
export const REDUCE_NORM_COLUMNS = 4096;

/** The same with a workgroup a row, whose layer norm it writes too; bindings gain, shift, normed besides. */
export function matmulReduceNorm(
  added: Addends,
  { columns, epsilon, gain, shift }: NormBehind,
): Shader {
  const workgroup = Math.min(WORKGROUP, 2 ** Math.ceil(Math.log2(Math.max(32, columns))));
  const passes = Math.ceil(columns / workgroup);
  const own = (text: (i: string, p: number) => string) =>
    list(passes, (p) => {
      const i = p === 0 ? "thread" : `thread + ${p * workgroup}u`;
      return (p + 1) * workgroup <= columns
        ? `{ let i = ${i}; ${text("i", p)} }`
        : `if (${i} < ${columns}u) { let i = ${i}; ${text("i", p)} }`;
    });
  return {
    name: "matmul_reduce_norm",
    storage: {
      ...{ partial: "array<f32>", ...resultStorage(added) },
      ...gain && { gain: "array<f32>" },
      ...shift && { shift: "array<f32>" },
      normed: "array<f32>",
    },
    writes: ["y", "normed"],
    uniforms: { rows: "u32", splits: "u32" },
    code: wgsl`
      ${workgroupReduction("total", { size: workgroup, combine: "a + b" })}

      @compute @workgroup_size(${workgroup})
      ${mainOf({ group: "id", groups: "count", lane: "thread" })}
        let row = flat_workgroup(id, count);
        if (row >= params.rows) { return; }
        let at = row * ${columns}u;
        let results = params.rows * ${columns}u;
        ${list(passes, (p) => `var sum${p} = 0.0;`)}
        ${splitLoop(own((i, p) => addSplits(`sum${p}`, `at + ${i}`)))}
        ${
      own((i, p) =>
        `sum${p} = ${
          finished(`sum${p}`, added, { output: i, at: `at + ${i}` })
        }; y[at + ${i}] = sum${p};`
      )
    }
        let mean = total(thread, ${list(passes, (p) => `sum${p}`).join(" + ")}) / ${float(columns)};
        var squares = 0.0;
        ${own((_, p) => `let distance = sum${p} - mean; squares += distance * distance;`)}
        let factor = 1.0 / sqrt(total(thread, squares) / ${float(columns)} + ${float(epsilon)});
        ${
      own((i, p) =>
        `normed[at + ${i}] = (sum${p} - mean) * factor${gain ? ` * gain[${i}]` : ""}${
          shift ? ` + shift[${i}]` : ""
        };`
      )
    }
      }
    `,
  };
}
