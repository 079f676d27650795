// pool: the average or the p-norm of sliding windows. An average counts the pads it lies on only if
// asked; what a last, not full window (`ceil`) has beyond the pads never counts.

import { choice, flag, integer, integersFrom } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { TensorType } from "../../graph/graph.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import type { OpRecord } from "../op.ts";
import { checkInputCount, requireInput } from "../shape_rules.ts";
import {
  completeWindow,
  WINDOW_RULES,
  type WindowAttributes,
  windowDims,
  type WindowLoops,
  windowLoops,
} from "../windows.ts";

/** Attributes of every pool. */
export const POOL_RULES = { ...WINDOW_RULES, kernel: integersFrom(1), ceil: flag(false) } as const;

/** (x [N, C, …]) → [N, C, …]. */
export const pool: OpRecord = defineOp({
  name: "pool",
  summary: "average or p-norm of sliding windows",
  attributes: {
    ...POOL_RULES,
    kind: choice(["average", "norm"]),
    /** Whether an average divides by the pads too. */
    count_pads: flag(false),
    /** p of the norm. */
    p: integer(1, 2),
  },
  infer(inputs, attributes) {
    checkInputCount(inputs, 1);
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, minRank: 3 });
    return [{ dtype: x.dtype, shape: poolShape(x, attributes) }];
  },
  reference({ inputs: [x], outputs: [out], attributes }) {
    const loops = poolLoops(x!.shape, { out: out!.shape, attributes });
    const source = numbersOf(x!), y = new Float64Array(out!.data.length);
    const { kind, count_pads, p } = attributes;
    eachWindow(loops, {
      inputCount: source.length,
      outputCount: y.length,
      visit: (o, inside, places, padded) => {
        let sum = 0;
        for (const i of inside) sum += kind === "norm" ? Math.abs(source[i]!) ** p : source[i]!;
        y[o] = kind === "norm" ? sum ** (1 / p) : sum / (count_pads ? padded : places);
      },
    });
    storeNumbers(out!, y);
  },
  cases: (random) =>
    POOL_CASES.flatMap(([x, attributes]) =>
      POOL_KINDS.map((kind) => ({
        inputs: [random.input(x)],
        attributes: { ...attributes, ...kind },
      }))
    ),
});

const POOL_KINDS = [
  ...[{ kind: "average" }, { kind: "average", count_pads: true }] as const,
  ...[{ kind: "norm" }, { kind: "norm", p: 1 }, { kind: "norm", p: 3 }] as const,
] as const;

/** Inputs and windows of the cases of every pool. */
export const POOL_CASES = [
  [[1, 3, 17], { kernel: [3], strides: [2] }],
  [[2, 3, 9, 11], { kernel: [2, 2], strides: [2, 2] }],
  [[1, 5, 9, 11], { kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] }],
  [[1, 2, 9, 11], { kernel: [3, 2], strides: [2, 3], pads: [1, 0, 1, 1], ceil: true }],
  [[1, 2, 9, 11], { kernel: [3, 3], strides: [2, 2], padding: "same_upper" }],
  [[1, 2, 8, 11], { kernel: [3, 2], strides: [2, 2], padding: "same_lower" }],
  [[1, 2, 9, 11], { kernel: [3, 3], dilations: [2, 2] }],
  [[1, 2, 4, 5, 6], { kernel: [2, 2, 3], strides: [1, 2, 2] }],
] as const;

type PoolAttributes = WindowAttributes & { readonly ceil: boolean };

/** Shape of the output. */
export function poolShape(x: TensorType, attributes: PoolAttributes): TensorType["shape"] {
  const window = completeWindow(attributes);
  return [
    ...x.shape.slice(0, 2),
    ...windowDims(x.shape.slice(2), { window, ceil: attributes.ceil }),
  ];
}

/** Loops over concrete shapes. */
export function poolLoops(
  x: readonly number[],
  { out, attributes }: { readonly out: readonly number[]; readonly attributes: PoolAttributes },
): WindowLoops {
  return windowLoops(x.slice(2), { out: out.slice(2), window: completeWindow(attributes) });
}

/**
 * Calls `visit` for each output element with the flat indices of the elements under its window (the
 * list is used again), how many they are, and how many places with pads.
 */
export function eachWindow(
  loops: WindowLoops,
  { inputCount, outputCount, visit }: {
    readonly inputCount: number;
    readonly outputCount: number;
    readonly visit: (
      output: number,
      inside: readonly number[],
      places: number,
      padded: number,
    ) => void;
  },
): void {
  const inside = loops.size.reduce((a, b) => a * b, 1);
  const outside = loops.out.reduce((a, b) => a * b, 1);
  const indices: number[] = [];
  for (let plane = 0; plane * inside < inputCount && plane * outside < outputCount; plane++) {
    for (let place = 0; place < outside; place++) {
      const column = place % loops.out[2], rest = Math.floor(place / loops.out[2]);
      const start = [Math.floor(rest / loops.out[1]), rest % loops.out[1], column];
      const [d, h, w] = [0, 1, 2].map((axis) => taps(loops, axis as 0 | 1 | 2, start[axis]!)) as [
        Taps,
        Taps,
        Taps,
      ];
      indices.length = 0;
      for (const i of d.inside) {
        for (const j of h.inside) {
          for (const k of w.inside) {
            indices.push(plane * inside + (i * loops.size[1] + j) * loops.size[2] + k);
          }
        }
      }
      visit(plane * outside + place, indices, indices.length, d.padded * h.padded * w.padded);
    }
  }
}

interface Taps {
  /** Taps on elements. */
  readonly inside: readonly number[];
  /** Number of taps on elements and pads. */
  readonly padded: number;
}

function taps(loops: WindowLoops, axis: 0 | 1 | 2, place: number): Taps {
  const inside: number[] = [];
  let padded = 0;
  for (let tap = 0; tap < loops.kernel[axis]; tap++) {
    const at = place * loops.stride[axis] + tap * loops.dilation[axis] - loops.begin[axis];
    if (at < loops.size[axis] + loops.end[axis]) padded++;
    if (at >= 0 && at < loops.size[axis]) inside.push(at);
  }
  return { inside, padded };
}
