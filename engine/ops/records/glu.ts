// glu: activation(gate) · up, the middle of a gated feed-forward block. Without `up` the first half of each row is the
// gate and the second half what it gates, as a joined product gives them (plan/passes/fuse_gated.ts). `clamped` is the
// bounded gate of gpt-oss: with g = min(gate, limit) and u = clamp(up, ±limit), y = g · sigmoid(alpha · g) · (u + 1);
// bounds keep half-precision experts finite. The result may be 8-bit rows, so that the widest row of a layer is never
// stored as floats.

import { ACTIVATION_NAMES, type ActivationName, activations } from "../activations.ts";
import { choice, number } from "../attributes.ts";
import { elementwiseCases, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { exactDiv } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { getElement, type HostTensor, setElement } from "../host_tensor.ts";
import type { OpRecord } from "../op.ts";
import type { CaseRandom, OpCase } from "../op_case.ts";
import { Q8_STEP, q8Sizes, quantizeGroups, RESULT_TYPE, resultOf } from "../q8_rows.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
} from "../shape_rules.ts";

/** What a gate does. */
export const GATE_NAMES = [...ACTIVATION_NAMES, "clamped"] as const;

/** (gate f32[…, F], up f32[…, F]) or (both f32[…, 2F]) → f32 or q8[…, F]. */
export const glu: OpRecord = defineOp({
  name: "glu",
  summary: "activation(gate) · up",
  attributes: {
    activation: choice(GATE_NAMES),
    limit: number(0),
    alpha: number(0),
    to: RESULT_TYPE,
  },
  byRows: true,
  infer(inputs, { activation, limit, to }) {
    checkInputCount(inputs, 2);
    if (activation === "clamped" && limit <= 0) {
      throw new RangeError(`the limit of a clamped gate must be above 0: it is ${limit}`);
    }
    const gate = requireInput(inputs, { index: 0, name: "gate", minRank: inputs[1] ? 0 : 1 });
    const up = optionalInput(inputs, { index: 1, name: "up", rank: gate.shape.length });
    if (!up) return [resultOf(halfOf(gate), to)];
    gate.shape.forEach((dim, i) =>
      requireEqual(dim, { b: up.shape[i]!, what: "the dims of gate and up" })
    );
    return [resultOf(gate, to)];
  },
  reference({ inputs: [gate, up], outputs: [out], attributes }) {
    const { activation, limit, alpha, to } = attributes;
    const apply = activation === "clamped" ? clampedGate(limit, alpha) : plainGate(activation);
    gateRows(gate!, up, { out: out!, apply });
    if (to === "q8") quantizeGroups(out!, out!);
  },
  cases: (random) => [
    ...elementwiseCases(random, {
      inputs: 2,
      attributes: ACTIVATION_NAMES.map((activation) => ({ activation })),
    }),
    ...elementwiseCases(random, {
      inputs: 2,
      attributes: [{ limit: 7, alpha: 1.702 }, { limit: 0.5, alpha: 1 }],
    })
      .map((one) => ({
        ...one,
        name: `clamped, ${one.name}`,
        attributes: { ...one.attributes, activation: "clamped" },
      })),
    ...halvesCases(random, [4, 5, 20, 33, 96]),
    ...inQ8(quantizedCases(random)),
    ...inQ8(halvesCases(random, [32, 96, 128])),
  ],
});

/**
 * The type of one half of each row.
 *
 * @throws {RangeError} If rows are of odd length.
 */
export function halfOf(x: TensorType): TensorType {
  const half = exactDiv(lastDim(x), 2);
  if (half === undefined) throw new RangeError("the last dim of x must be even");
  return { dtype: "f32", shape: [...x.shape.slice(0, -1), half] };
}

/** The function of a gate and what it gates. */
export function plainGate(activation: ActivationName): (gate: number, up: number) => number {
  const act = activations[activation];
  return (gate, up) => act(gate) * up;
}

function clampedGate(limit: number, alpha: number): (gate: number, up: number) => number {
  return (gate, up) => {
    const g = Math.min(gate, limit), u = Math.min(Math.max(up, -limit), limit);
    return g / (1 + Math.exp(-alpha * g)) * (u + 1);
  };
}

/** The definition; without `up`, `gate` has rows of both. */
export function gateRows(
  gate: HostTensor,
  up: HostTensor | undefined,
  { out, apply }: {
    readonly out: HostTensor;
    readonly apply: (gate: number, up: number) => number;
  },
): void {
  const width = out.shape.at(-1)!;
  for (let i = 0; i < out.data.length; i++) {
    const at = up ? i : i + Math.floor(i / width) * width;
    setElement(out, {
      index: i,
      value: apply(getElement(gate, at), up ? getElement(up, i) : getElement(gate, at + width)),
    });
  }
}

function halvesCases(random: CaseRandom, widths: readonly number[]): OpCase[] {
  return widths.flatMap((width, i) =>
    [0, 1, 3].map((rows) => {
      const activation = ACTIVATION_NAMES[(i + rows) % ACTIVATION_NAMES.length]!;
      return {
        name: `${activation}, [${rows}, 2 · ${width}]`,
        inputs: [random.input([ROWS, 2 * width], { M: rows })],
        attributes: { activation },
        bindings: { M: rows },
      };
    })
  );
}

function quantizedCases(random: CaseRandom): OpCase[] {
  return q8Sizes.flatMap(({ rows, width }) =>
    ACTIVATION_NAMES.map((activation) => ({
      name: `${activation}, [${rows}, ${width}]`,
      inputs: [0, 1].map(() => random.input([ROWS, width], { M: rows })),
      attributes: { activation },
      bindings: { M: rows },
    }))
  );
}

function inQ8(cases: readonly OpCase[]): OpCase[] {
  return cases.map((one) => ({
    ...one,
    name: `${one.name} in 8 bit`,
    attributes: { ...one.attributes, to: "q8" },
    tolerance: Q8_STEP,
  }));
}
