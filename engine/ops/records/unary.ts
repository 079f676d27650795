// unary: one function on every element, of any type on which it is defined.

import type { UnaryFunction } from "../../../functions/record.ts";
import { ACTIVATION_NAMES, UNARY, UNARY_NAMES } from "../../../functions/unary.ts";
import { choice, number } from "../attributes.ts";
import { elementwiseCases } from "../case_sizes.ts";
import { isFloat, isInteger, isWide, requireTyped } from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import type { DataType } from "../../graph/graph.ts";
import { numbersOf, storeNumbers } from "../host_numbers.ts";
import type { CaseInput, OpRecord } from "../op.ts";
import type { CaseRandom } from "../op_case.ts";
import { checkInputCount } from "../shape_rules.ts";

/** (x T[…]) → T[…], or bool[…] for tests. */
export const unary: OpRecord = defineOp({
  name: "unary",
  summary: "a function on every element",
  attributes: { kind: choice(UNARY_NAMES), alpha: number(1), beta: number(0) },
  elementwise: true,
  byRows: true,
  infer(inputs, { kind, alpha }) {
    checkInputCount(inputs, 1);
    const x = requireTyped(inputs, { index: 0, name: "x" }, {
      accepts: (dtype) => formOf(UNARY[kind], dtype) !== undefined,
      expected: `of a type that ${kind} is defined on`,
    });
    if (kind === "softcap" && alpha <= 0) {
      throw new RangeError(`attribute "alpha" of softcap must be above 0: it is ${alpha}`);
    }
    return [{ dtype: UNARY[kind].test ? "bool" : x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x], outputs: [out], attributes: { kind, alpha, beta } }) {
    if (isWide(x!.dtype)) {
      const from = x!.data as BigInt64Array, to = out!.data as BigInt64Array;
      const apply = UNARY[kind].bigint!;
      for (let i = 0; i < from.length; i++) to[i] = apply(from[i]!);
      return;
    }
    const values = numbersOf(x!);
    const apply = formOf(UNARY[kind], x!.dtype) as NonNullable<UnaryFunction["float"]>;
    const results = new Float64Array(values.length);
    for (let i = 0; i < values.length; i++) results[i] = apply(values[i]!, alpha, beta);
    storeNumbers(out!, results);
  },
  cases: (random) => [
    ...elementwiseCases(random, {
      inputs: 1,
      attributes: ACTIVATION_NAMES.map((kind) => ({ kind })),
    }),
    ...([["scale", 0.125, -3.3], ["softcap", 30, 0.5]] as const).flatMap(([kind, ...alphas]) =>
      elementwiseCases(random, { inputs: 1, attributes: alphas.map((alpha) => ({ kind, alpha })) })
    ),
    ...UNARY_NAMES.filter((kind) => UNARY[kind].integer).map((kind) => ({
      name: `${kind} of integers`,
      inputs: [random.indices([7, 0, -3])],
      attributes: { kind },
    })),
    {
      name: "is_nan of NaN and others",
      inputs: [{
        ...{ role: "input", dtype: "f32", shape: [7] },
        data: Float32Array.of(NaN, 0, Infinity, -Infinity, 1, NaN, -NaN),
      }],
      attributes: { kind: "is_nan" },
    },
    ...[[0, 1], [1, 0], [1, 1], [0, 0]].map(([alpha, beta]) => ({
      name: `is_infinite of ${alpha ? "negative" : ""} ${beta ? "positive" : ""}`,
      inputs: [random.typed("f32", [1, Infinity, -Infinity, NaN, -2])],
      attributes: { kind: "is_infinite", alpha: alpha!, beta: beta! },
    })),
    ...(["neg", "abs", "exp", "log", "sqrt"] as const).map((kind) => ({
      name: `${kind} of f64`,
      inputs: [random.typed("f64", [0.1, 3, 1e-30, 7])],
      attributes: { kind },
    })),
    { name: "not", inputs: [random.truths([5, 7])], attributes: { kind: "not" } },
    ...UNARY_NAMES.filter((kind) => UNARY[kind].float).flatMap((kind) =>
      [3, 33].map((width) => ({
        name: `${kind} of ${width}`,
        inputs: [inside(random, width, UNARY[kind].domain ?? [-3, 3])],
        attributes: { kind, alpha: 0.75, beta: 0.25 },
      }))
    ),
  ],
});

function formOf(rule: UnaryFunction, dtype: DataType): unknown {
  if (isWide(dtype)) return rule.bigint;
  if (isInteger(dtype)) return rule.integer;
  if (dtype === "bool") return rule.bool;
  return isFloat(dtype) ? rule.float : undefined;
}

function inside(
  random: CaseRandom,
  count: number,
  [min, max]: readonly [number, number],
): CaseInput {
  const data = random.normal(count).map((value) =>
    min + (max - min) * (0.5 + 0.5 * Math.sin(value))
  );
  return { role: "input", dtype: "f32", shape: [count], data };
}
