// Sums, extremes and the like along lines: a workgroup a line, whose elements are `inner` apart, combined in
// float32 through workgroup memory.

import type { Shader } from "../kernel.ts";
import { GROUP_MAIN, wgsl } from "../wgsl.ts";
import { workgroupReduction } from "./reduce.ts";
import { FLOAT_TESTS, SAFE_LOG } from "./element_functions.ts";

const SIZE = 64;

/** How one kind reduces: where it starts, what joins `x`, how parts `a` and `b` combine, what becomes of the total. */
interface Reduction {
  readonly start: string;
  readonly element: string;
  readonly combine: string;
  readonly end: string;
}

const summed = (element: string, end = "total"): Reduction => ({
  start: "0.0",
  element,
  combine: "a + b",
  end,
});

/** Kinds by the names of the engine's op `reduce`. */
export const REDUCTIONS: Readonly<Record<string, Reduction>> = {
  sum: summed("x"),
  mean: summed("x", "total / f32(params.length)"),
  max: {
    ...{ start: "bitcast<f32>(params.least)", element: "x", end: "total" },
    combine: "select(max(a, b), a + b, is_nan(a) || is_nan(b))",
  },
  min: {
    ...{ start: "-bitcast<f32>(params.least)", element: "x", end: "total" },
    combine: "select(min(a, b), a + b, is_nan(a) || is_nan(b))",
  },
  prod: { start: "1.0", element: "x", combine: "a * b", end: "total" },
  l1: summed("abs(x)"),
  l2: summed("x * x", "sqrt(total)"),
  sum_square: summed("x * x"),
  log_sum: summed("x", "safe_log(total)"),
  // Shifted by the largest element, so that no exponential overflows.
  log_sum_exp: summed("exp(x - shift)", "log(total) + shift"),
};

/** Bits of -∞, which WGSL has no literal for: the value of the uniform `least`. */
export const MINUS_INFINITY_BITS = 0xff800000;

/** Uniforms: `lines` in all, `length` of a line, `inner` between its elements, `least`. A workgroup a line. */
export function reduceLinesShader(kind: string): Shader {
  const { start, element, combine, end } = REDUCTIONS[kind]!;
  const isShifted = kind === "log_sum_exp";
  return {
    name: `reduce_${kind}`,
    storage: { x_in: "array<f32>", y: "array<f32>" },
    writes: ["y"],
    uniforms: { lines: "u32", length: "u32", inner: "u32", least: "u32" },
    code: wgsl`
      ${FLOAT_TESTS}

      ${SAFE_LOG}

      ${workgroupReduction("together", { size: SIZE, combine: "join(a, b)" })}

      fn join(a: f32, b: f32) -> f32 {
        return ${combine};
      }
      ${isShifted ? LARGEST : ""}

      @compute @workgroup_size(${SIZE})
      ${GROUP_MAIN}
        let line = flat_workgroup(group, groups);
        if (line >= params.lines) { return; }
        let inner = params.inner;
        let at = line / inner * inner * params.length + line % inner;
        ${isShifted ? SHIFT : ""}
        var part = ${start};
        for (var i = lane; i < params.length; i += ${SIZE}u) {
          let x = x_in[at + i * inner];
          part = join(part, ${element});
        }
        let total = together(lane, part);
        if (lane == 0u) { y[line] = ${end}; }
      }
    `,
  };
}

const LARGEST = wgsl`

  ${workgroupReduction("largest", { size: SIZE, combine: REDUCTIONS.max!.combine })}
`;

/** A largest element that is not finite shifts nothing. */
const SHIFT = wgsl`
  var most = bitcast<f32>(params.least);
  for (var i = lane; i < params.length; i += ${SIZE}u) {
    let a = most;
    let b = x_in[at + i * inner];
    most = ${REDUCTIONS.max!.combine};
  }
  most = largest(lane, most);
  let shift = select(most, 0.0, is_nan(most) || is_infinite(most));
`;
