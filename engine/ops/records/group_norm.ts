// group_norm: each group of channels of each item normalised over all its elements, then scaled and
// moved by channel. As many groups as channels is instance normalisation. A function of single elements may follow
// (plan/passes/fuse_activation.ts).

import { EPILOGUE_NAMES } from "../../../functions/unary.ts";
import { activations } from "../activations.ts";
import { choice, integer, number } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import { exactDiv, formatDim } from "../../graph/dim/mod.ts";
import { FLOATS, numbersOf } from "../host_numbers.ts";
import { elementCount, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, optionalInput, requireEqual, requireInput } from "../shape_rules.ts";

/** (x [N, C, …], weight [C]?, bias [C]?) → [N, C, …]; `groups` 0 stands for as many as channels. */
export const groupNorm: OpRecord = defineOp({
  name: "group_norm",
  summary: "(x - mean) / sqrt(variance + epsilon) · weight + bias by groups of channels",
  attributes: {
    groups: integer(0),
    epsilon: number(),
    activation: choice(EPILOGUE_NAMES, "none"),
  },
  infer(inputs, { groups }) {
    checkInputCount(inputs, 3);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 2 });
    for (const [i, name] of ["weight", "bias"].entries()) {
      const perChannel = optionalInput(inputs, { index: i + 1, name, dtype: FLOATS, rank: 1 });
      if (perChannel) {
        requireEqual(perChannel.shape[0]!, {
          b: x.shape[1]!,
          what: `the channels of x and of the ${name}`,
        });
      }
    }
    if (groups > 0 && exactDiv(x.shape[1]!, groups) === undefined) {
      throw new RangeError(
        `${formatDim(x.shape[1]!)} channels: must be a multiple of ${groups} groups`,
      );
    }
    return [{ dtype: x.dtype, shape: x.shape }];
  },
  reference({ inputs: [x, weight, bias], outputs: [out], attributes }) {
    const [batch, channels] = x!.shape as [number, number];
    const places = elementCount(x!.shape.slice(2));
    const groups = attributes.groups || channels, size = channels / groups * places;
    const values = numbersOf(x!);
    const activate = activations[attributes.activation];
    const gains = weight && numbersOf(weight), moves = bias && numbersOf(bias);
    for (let group = 0; group < batch * groups; group++) {
      const start = group * size;
      let sum = 0, squares = 0;
      for (let i = start; i < start + size; i++) sum += values[i]!;
      const mean = sum / size;
      for (let i = start; i < start + size; i++) squares += (values[i]! - mean) ** 2;
      const factor = 1 / Math.sqrt(squares / size + attributes.epsilon);
      for (let i = start; i < start + size; i++) {
        const c = Math.floor(i / places) % channels;
        const normal = (values[i]! - mean) * factor;
        const moved = normal * (gains?.[c] ?? 1) + (moves?.[c] ?? 0);
        setElement(out!, { index: i, value: activate(moved) });
      }
    }
  },
  cases: (random) =>
    CASES.map(({ shape, groups, activation = "none" }) => ({
      inputs: [
        random.input(shape),
        random.weight("F32", [shape[1]]),
        shape[0] === 1 ? undefined : random.weight("F32", [shape[1]]),
      ],
      attributes: { groups, epsilon: 1e-5, activation },
    })),
});

interface Case {
  readonly shape: readonly number[];
  readonly groups: number;
  readonly activation?: typeof EPILOGUE_NAMES[number];
}

const CASES: readonly Case[] = [
  { shape: [2, 6, 5, 7], groups: 3 },
  { shape: [1, 8, 33], groups: 2 },
  { shape: [2, 4, 3, 3], groups: 0 },
  { shape: [1, 5, 17], groups: 1 },
  // A group of several parts, where kernels take it so.
  { shape: [1, 4, 67, 63], groups: 2, activation: "silu" },
  ...EPILOGUE_NAMES.map((activation) => ({ shape: [2, 6, 3, 5], groups: 3, activation })),
];
