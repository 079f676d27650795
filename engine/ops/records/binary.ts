// binary: one function of two elements, with NumPy broadcasting, of any type on which it is defined.

import { BINARY, BINARY_NAMES, type BinaryName } from "../../../functions/binary.ts";
import type { BinaryFunction } from "../../../functions/record.ts";
import { choice } from "../attributes.ts";
import { BROADCASTS, elementwiseCases } from "../case_sizes.ts";
import {
  isFloat,
  isInteger,
  isUnsigned,
  isWide,
  NUMBER_INPUT,
  requireSameType,
  requireTyped,
} from "../data_types.ts";
import { defineOp } from "../define_op.ts";
import { equal } from "../../graph/dim/mod.ts";
import type { DataType } from "../../graph/graph.ts";
import { numbersOf, storeNumbers } from "../host_numbers.ts";
import { elementCount } from "../host_tensor.ts";
import type { CaseInput, HostTensor, OpRecord } from "../op.ts";
import type { CaseRandom } from "../op_case.ts";
import { rowCut } from "../row_cut.ts";
import { broadcastShapes, checkInputCount } from "../shape_rules.ts";
import { broadcastStrides, elementsOf, walk } from "../strided.ts";

/** (a T[…], b T[…]) → T[broadcast], or bool[broadcast] for tests; an exponent may be of another type. */
export const binary: OpRecord = defineOp({
  name: "binary",
  summary: "a function of two elements with NumPy broadcasting",
  attributes: { kind: choice(BINARY_NAMES) },
  elementwise: true,
  byRows: true,
  infer(inputs, { kind }) {
    checkInputCount(inputs, 2);
    const { test, mixed } = BINARY[kind];
    const must = mixed ? NUMBER_INPUT : {
      accepts: (dtype: DataType) => isDefined(kind, dtype),
      expected: `of a type that ${kind} is defined on`,
    };
    const a = requireTyped(inputs, { index: 0, name: "a" }, must),
      b = requireTyped(inputs, { index: 1, name: "b" }, must);
    if (!mixed) requireSameType(a, { b, what: "a and b" });
    return [{ dtype: test ? "bool" : a.dtype, shape: broadcastShapes(a.shape, b.shape) }];
  },
  // Sums alone stand between what works row by row; others rather take the memory of an input (plan/chains.ts).
  rowwise({ inputs, outputs: [y], attributes: { kind } }) {
    const cut = kind === "add" && y!.dtype === "f32" ? rowCut(y!.shape) : undefined;
    const alike = inputs.every((value) =>
      value!.shape.length === y!.shape.length &&
      value!.shape.every((dim, i) => equal(dim, y!.shape[i]!))
    );
    return cut && alike ? { ...cut, inputs: [0, 1] } : undefined;
  },
  reference({ inputs: [a, b], outputs: [out], attributes: { kind } }) {
    const rule = BINARY[kind];
    const { dtype } = isFloat(b!.dtype) ? b! : a!;
    if (isWide(dtype)) wideElements(a!, { b: b!, out: out!, rule });
    else {
      const apply = isFloat(dtype) ? rule.float : dtype === "bool" ? rule.bool : rule.integer;
      narrowElements(a!, { b: b!, out: out!, apply: apply! });
    }
  },
  cases: (random) => [
    ...(["add", "mul"] as const).flatMap((kind) =>
      elementwiseCases(random, { inputs: 2, attributes: [{ kind }] })
    ),
    ...BROADCASTS.map(([a, b]) => ({
      name: `[${a}] to the power of [${b}]`,
      inputs: [positive(random, a), random.input(b)],
      attributes: { kind: "pow" },
    })),
    ...BINARY_NAMES.filter((kind) => BINARY[kind].float && kind !== "pow").flatMap((kind) =>
      // Broadcasting is the same for all, but for what kernels treat apart.
      (["add", "mul", "sub"].includes(kind) ? BROADCASTS : BROADCASTS.slice(0, 2)).map((
        [a, b],
      ) => ({
        name: `${kind} of [${a}] and [${b}]`,
        inputs: [random.input(a!), random.input(b!)],
        attributes: { kind },
      }))
    ),
    ...BINARY_NAMES.filter((kind) =>
      BINARY[kind].integer && kind !== "shift_right" && kind !== "pow"
    ).map((kind) => ({
      name: `${kind} of integers`,
      inputs: [random.indices([7, 1, 3, 100000, 5, 2, 9]), random.indices([3])],
      attributes: { kind },
    })),
    ...TYPED.flatMap(({ dtype, a, b, kinds }) =>
      kinds.map((kind) => ({
        name: `${kind} of ${dtype}`,
        inputs: [
          random.typed(dtype, a),
          // Shifts are by few bits.
          random.typed(dtype, kind.startsWith("shift") ? b.map((_, i) => 5 * i) : b),
        ],
        attributes: { kind },
      }))
    ),
    ...(["and", "or", "xor"] as const).map((kind) => ({
      name: `${kind} of truth values`,
      inputs: [random.truths([5, 7]), random.truths([7])],
      attributes: { kind },
    })),
  ],
});

const WIDE = [2n ** 63n, 2n ** 64n - 1n, 5n, 2n ** 62n + 3n, 0n];

/** Two vectors of numbers in which signs, carries and the last bits matter. Each kind is a shader to compile. */
const TYPED: readonly {
  readonly dtype: DataType;
  readonly a: readonly (number | bigint)[];
  readonly b: readonly (number | bigint)[];
  readonly kinds: readonly BinaryName[];
}[] = [{
  ...{ dtype: "u8", a: [7, 200, 3, 129, 5], b: [3, 7, 200, 2, 9] },
  kinds: ["add", "div", "mod", "less", "shift_left", "shift_right"],
}, {
  ...{ dtype: "i8", a: [7, -100, 127, -128, -5], b: [3, -7, 100, -1, 9] },
  kinds: ["mul", "div", "mod", "fmod", "min"],
}, {
  ...{ dtype: "u16", a: [7, 60000, 3, 65535, 5], b: [3, 7, 200, 2, 9], kinds: ["sub", "div"] },
}, {
  ...{ dtype: "i16", a: [7, -30000, 32767, -32768, -5], b: [3, -7, 200, -1, 9] },
  kinds: ["bit_xor", "fmod"],
}, {
  ...{ dtype: "u32", a: [7, 4e9, 3, 2 ** 32 - 1, 5], b: [3, 7, 200, 2, 9] },
  kinds: ["div", "greater", "shift_right"],
}, {
  dtype: "i64",
  a: WIDE.map((value) => BigInt.asIntN(64, value)),
  b: [-1n, 3n, -7n, 2n ** 40n + 5n, 9n],
  kinds: ["add", "sub", "mul", "div", "mod", "fmod", "min", "less"],
}, {
  ...{ dtype: "f64", a: [7, -0.1, 10, NaN, -5], b: [3, -7, 0.3, 1, 0] },
  kinds: ["add", "sub", "mul", "div", "min", "max", "fmod", "greater", "less_equal"],
}, {
  ...{ dtype: "u64", a: WIDE, b: [3n, 2n ** 63n + 1n, 7n, 2n ** 40n, 9n] },
  kinds: ["div", "mod", "max", "greater_equal", "shift_left", "shift_right"],
}];

function isDefined(kind: BinaryName, dtype: DataType): boolean {
  const rule = BINARY[kind];
  if (kind === "shift_right" && !isUnsigned(dtype)) return false;
  if (isWide(dtype)) return rule.bigint !== undefined;
  if (isInteger(dtype)) return rule.integer !== undefined;
  if (dtype === "bool") return rule.bool !== undefined;
  return isFloat(dtype) && rule.float !== undefined;
}

function wideElements(
  a: HostTensor,
  { b, out, rule }: {
    readonly b: HostTensor;
    readonly out: HostTensor;
    readonly rule: BinaryFunction;
  },
): void {
  const x = a.data as BigInt64Array, y = b.data as BigInt64Array;
  const to = elementsOf(out);
  const strides = [broadcastStrides(a.shape, out.shape), broadcastStrides(b.shape, out.shape)];
  walk(out.shape, {
    strides,
    visit: (index, offsets) => {
      const result = rule.bigint!(x[offsets[0]!]!, BigInt(y[offsets[1]!]!));
      to[index] = rule.test ? Number(result) : result;
    },
  });
}

function narrowElements(
  a: HostTensor,
  { b, out, apply }: {
    readonly b: HostTensor;
    readonly out: HostTensor;
    readonly apply: (x: number, y: number) => number;
  },
): void {
  const x = numbersOf(a), y = numbersOf(b);
  const results = new Float64Array(out.data.length);
  const strides = [broadcastStrides(a.shape, out.shape), broadcastStrides(b.shape, out.shape)];
  walk(out.shape, {
    strides,
    visit: (index, offsets) => {
      results[index] = apply(x[offsets[0]!]!, y[offsets[1]!]!);
    },
  });
  storeNumbers(out, results);
}

function positive(random: CaseRandom, shape: readonly number[]): CaseInput {
  const data = random.normal(elementCount(shape)).map((value) => Math.abs(value) + 0.1);
  return { role: "input", dtype: "f32", shape, data };
}
