// elementwise: a chain of functions of single float32 elements as one op, so that what lies between them
// never goes through memory (spec MD-9, TL-8). The pass fuse_elementwise makes it from `unary` and
// `binary`. Registers are numbered: first the inputs, then the constants, then the steps' results;
// the last step is the result.

import { BINARY, type BinaryName } from "../../../functions/binary.ts";
import { UNARY, type UnaryName } from "../../../functions/unary.ts";
import { integers, numbers, strings } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { Attributes, OpRecord } from "../op.ts";
import { broadcastShapes, requireInput } from "../shape_rules.ts";
import { broadcastStrides, walk } from "../strided.ts";

/** (a f32[…], b f32[…]?, …) → f32[broadcast]. */
export const elementwise: OpRecord = defineOp({
  name: "elementwise",
  summary: "a chain of functions of single elements",
  attributes: {
    /** Function of each step: a kind of `unary` or `binary`. */
    kinds: strings(),
    /** Two registers a step; the second of a function of one value is -1. */
    operands: integers(),
    /** `alpha` and `beta` of each step. */
    parameters: numbers(),
    constants: numbers([]),
  },
  elementwise: true,
  infer(inputs, attributes) {
    const { kinds, operands, parameters, constants } = attributes;
    if (operands.length !== 2 * kinds.length || parameters.length !== 2 * kinds.length) {
      throw new RangeError("operands and parameters must have two entries a step");
    }
    kinds.forEach((kind, step) => {
      const known = inputs.length + constants.length + step;
      const [a, b] = operands.slice(2 * step, 2 * step + 2) as [number, number];
      const isFine = isMap(kind) ? b === -1 : isCombine(kind) && b >= 0 && b < known;
      if (!isFine || a < 0 || a >= known) {
        throw new RangeError(`step ${step} cannot be ${kind} of registers ${a} and ${b}`);
      }
    });
    const shape = inputs.map((_, i) => requireInput(inputs, { index: i, name: `input ${i}` }).shape)
      .reduce<readonly Dim[]>(broadcastShapes, []);
    return [{ dtype: "f32", shape }];
  },
  reference({ inputs, outputs: [out], attributes }) {
    const { kinds, operands, parameters, constants } = attributes;
    const registers = constants.map(Math.fround);
    const first = inputs.length;
    const strides = inputs.map((input) => broadcastStrides(input!.shape, out!.shape));
    const data = inputs.map((input) => input!.data as Float32Array);
    const functions = kinds.map(functionOf);
    const values = [...inputs.map(() => 0), ...registers, ...kinds.map(() => 0)];
    const firstStep = first + constants.length;
    walk(out!.shape, {
      strides,
      visit: (index, offsets) => {
        for (let i = 0; i < first; i++) values[i] = data[i]![offsets[i]!]!;
        for (let step = 0; step < functions.length; step++) {
          const a = values[operands[2 * step]!]!;
          const b = isMap(kinds[step]!) ? parameters[2 * step]! : values[operands[2 * step + 1]!]!;
          values[firstStep + step] = Math.fround(functions[step]!(a, b, parameters[2 * step + 1]!));
        }
        out!.data[index] = values.at(-1)!;
      },
    });
  },
  cases: (random) =>
    CASES.flatMap(({ name, shapes, attributes }) =>
      [[3, 33], [2, 5, 7], [1, 1200]].map((shape) => ({
        name: `${name} on [${shape}]`,
        inputs: shapes(shape).map((input) => random.input(input)),
        attributes,
      }))
    ),
});

function isMap(kind: string): kind is UnaryName {
  return Object.hasOwn(UNARY, kind) && hasFloats(UNARY[kind as UnaryName]);
}

function isCombine(kind: string): kind is BinaryName {
  return Object.hasOwn(BINARY, kind) && hasFloats(BINARY[kind as BinaryName]);
}

function hasFloats(
  { float, test }: { readonly float?: unknown; readonly test?: boolean },
): boolean {
  return float !== undefined && !test;
}

function functionOf(kind: string): (a: number, b: number, c: number) => number {
  return isMap(kind) ? UNARY[kind].float! : BINARY[kind as BinaryName].float!;
}

interface ChainCase {
  readonly name: string;
  shapes(shape: readonly number[]): readonly (readonly number[])[];
  readonly attributes: Attributes;
}

const CASES: readonly ChainCase[] = [
  {
    name: "clipped powers",
    shapes: (shape) => [shape],
    attributes: {
      kinds: ["abs", "pow", "max", "neg", "max"],
      operands: [0, -1, 4, 1, 5, 2, 6, -1, 7, 3],
      parameters: Array(10).fill(0),
      constants: [1.5, 0.25, -4],
    },
  },
  {
    // x · (erf(x / √2) + 1) / 2, as exporters write it.
    name: "gelu by erf",
    shapes: (shape) => [shape],
    attributes: {
      kinds: ["div", "erf", "add", "mul", "mul"],
      operands: [0, 1, 4, -1, 5, 2, 0, 6, 7, 3],
      parameters: Array(10).fill(0),
      constants: [Math.SQRT2, 1, 0.5],
    },
  },
  {
    name: "scaled and shifted columns",
    shapes: (shape) => [shape, shape.slice(-1), shape.slice(-1)],
    attributes: {
      kinds: ["mul", "add", "leaky_relu"],
      operands: [0, 1, 3, 2, 4, -1],
      parameters: [0, 0, 0, 0, 0.1, 0],
    },
  },
  {
    name: "normalised rows",
    shapes: (shape) => [shape, shape.with(-1, 1), shape.with(-1, 1), shape.slice(-1)],
    attributes: {
      kinds: ["sub", "abs", "add", "div", "mul"],
      operands: [0, 1, 2, -1, 6, 4, 5, 7, 8, 3],
      parameters: Array(10).fill(0),
      constants: [1],
    },
  },
];
