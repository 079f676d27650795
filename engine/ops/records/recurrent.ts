// recurrent: RNN, GRU and LSTM layers over a sequence, in one or both directions. Gates lie as ONNX has
// them: input, output, forget, cell (lstm); update, reset, hidden (gru). Rows of a batch may end early:
// their later outputs are 0 and their last state is that of their end.

import { choice, flag, integer, number, numbers, strings } from "../attributes.ts";
import { defineOp } from "../define_op.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { TensorType } from "../../graph/graph.ts";
import { FLOATS, numbersOf, storeNumbers } from "../host_numbers.ts";
import type { Attributes, OpRecord } from "../op.ts";
import type { CaseDraft, CaseRandom } from "../op_case.ts";
import {
  CELL_KINDS,
  type CellKind,
  GATES,
  isCellActivation,
  runDirection,
} from "../recurrent_cells.ts";
import { checkInputCount, optionalInput, requireEqual, requireInput } from "../shape_rules.ts";

/** Directions. */
const DIRECTIONS = ["forward", "reverse", "bidirectional"] as const;

/**
 * (x [S, B, I], w [D, G·H, I], r [D, G·H, H], bias [D, 2·G·H]?, lengths i32[B]?, h [D, B, H]?, c [D, B,
 * H]?, peepholes [D, 3·H]?) → (y [S, D, B, H], h [D, B, H], c [D, B, H] of lstm), or with `batch_first`
 * x [B, S, I], h and c [B, D, H], y [B, S, D, H].
 */
export const recurrent: OpRecord = defineOp({
  name: "recurrent",
  summary: "RNN, GRU or LSTM over a sequence",
  attributes: {
    kind: choice(CELL_KINDS),
    hidden: integer(1),
    direction: choice(DIRECTIONS, "forward"),
    /** Of each direction: those of its gates, its cell and its output. */
    activations: strings(),
    alphas: numbers([]),
    betas: numbers([]),
    /** Bound on what enters an activation; 0: none. */
    clip: number(0),
    /** Of gru: the reset gate is applied after the recurrent product. */
    linear_before_reset: flag(false),
    /** Of lstm: the forget gate is one less the input gate. */
    input_forget: flag(false),
    batch_first: flag(false),
  },
  infer(inputs, attributes) {
    checkInputCount(inputs, 8);
    const { kind, hidden, batch_first, activations } = attributes;
    const directions = attributes.direction === "bidirectional" ? 2 : 1;
    const x = requireInput(inputs, { index: 0, name: "x", dtype: FLOATS, rank: 3 });
    const of = (index: number, name: string, shape: readonly (Dim | undefined)[], must = false) => {
      const rule = { dtype: x.dtype, rank: shape.length };
      const input = must
        ? requireInput(inputs, { index, name, ...rule })
        : optionalInput(inputs, { index, name, ...rule });
      checkShape(input, name, shape);
    };
    const gates = GATES[kind] * hidden;
    const [sequence, batch] = batch_first ? [x.shape[1]!, x.shape[0]!] : x.shape as [Dim, Dim];
    const state = batch_first ? [batch, directions, hidden] : [directions, batch, hidden];
    of(1, "w", [directions, gates, x.shape[2]!], true);
    of(2, "r", [directions, gates, hidden], true);
    of(3, "bias", [directions, 2 * gates]);
    optionalInput(inputs, { index: 4, name: "lengths", dtype: ["i32", "i64"], rank: 1 });
    of(5, "h", state);
    of(6, "c", state);
    of(7, "peepholes", [directions, 3 * hidden]);
    const each = kind === "lstm" ? 3 : kind === "gru" ? 2 : 1;
    if (activations.length !== each * directions || !activations.every(isCellActivation)) {
      throw new RangeError(
        `activations are ${activations.join(", ")}: must be ${each * directions} known ones`,
      );
    }
    const y = batch_first
      ? [batch, sequence, directions, hidden]
      : [sequence, directions, batch, hidden];
    const { dtype } = x, last = { dtype, shape: state };
    return kind === "lstm" ? [{ dtype, shape: y }, last, last] : [{ dtype, shape: y }, last];
  },
  reference({ inputs, outputs, attributes }) {
    const [x, w, r, bias, lengths, h, c, peepholes] = inputs.map((input) =>
      input && numbersOf(input)
    );
    const [first, second, width] = inputs[0]!.shape as [number, number, number];
    const [sequence, batch] = attributes.batch_first ? [second, first] : [first, second];
    const directions = attributes.direction === "bidirectional" ? 2 : 1;
    const results = outputs.map(({ data }) => new Float64Array(data.length));
    const each = attributes.activations.length / directions;
    for (let direction = 0; direction < directions; direction++) {
      runDirection({
        ...attributes,
        ...{ x: x!, sequence, batch, width, direction, directions },
        ...{ w: w!, r: r!, bias, lengths, h, c, peepholes },
        activations: attributes.activations.slice(direction * each, (direction + 1) * each),
        alphas: attributes.alphas.slice(direction * each, (direction + 1) * each),
        betas: attributes.betas.slice(direction * each, (direction + 1) * each),
        reverse: attributes.direction === "reverse" || direction === 1,
        ...{ y: results[0]!, lastH: results[1]!, lastC: results[2] },
      });
    }
    outputs.forEach((output, i) => storeNumbers(output, results[i]!));
  },
  cases: recurrentCases,
  tolerance: { ofLargest: 1e-4, reason: "float32 states over many steps" },
});

function checkShape(
  input: TensorType | undefined,
  name: string,
  shape: readonly (Dim | undefined)[],
): void {
  input?.shape.forEach((dim, i) => {
    if (shape[i] !== undefined) {
      requireEqual(dim, { b: shape[i], what: `dim ${i} of ${name} and of the layer` });
    }
  });
}

const ACTIVATIONS = { rnn: ["Tanh"], gru: ["Sigmoid", "Tanh"], lstm: ["Sigmoid", "Tanh", "Tanh"] };

function recurrentCases(random: CaseRandom): CaseDraft[] {
  const [sequence, batch, width, hidden] = [3, 2, 5, 4];
  const options = CELL_KINDS.flatMap((kind): ({ readonly kind: CellKind } & Attributes)[] => [
    { kind, batch_first: true },
    { kind, clip: 0.5 },
    { kind, activations: ACTIVATIONS[kind].map(() => "HardSigmoid"), alphas: [0.3], betas: [0.4] },
    { kind, activations: ACTIVATIONS[kind].map(() => "Elu") },
    ...kind === "gru" ? [{ kind, linear_before_reset: true }] : [],
    ...kind === "lstm" ? [{ kind, input_forget: true }] : [],
  ]);
  return [
    ...sizedCases(random),
    ...options.map(({ kind, ...options }) => ({
      inputs: [
        random.input(
          "batch_first" in options ? [batch, sequence, width] : [sequence, batch, width],
        ),
        random.input([1, GATES[kind] * hidden, width]),
        random.input([1, GATES[kind] * hidden, hidden]),
        random.input([1, 2 * GATES[kind] * hidden]),
      ],
      attributes: { kind, hidden, activations: ACTIVATIONS[kind], ...options },
    })),
  ];
}

function sizedCases(random: CaseRandom): CaseDraft[] {
  return CELL_KINDS.flatMap((kind) =>
    ([[1, 1, 3, 4, "forward"], [5, 2, 9, 17, "reverse"], [7, 1, 16, 32, "bidirectional"]] as const)
      .map(([sequence, batch, width, hidden, direction]) => {
        const directions = direction === "bidirectional" ? 2 : 1, gates = GATES[kind] * hidden;
        return {
          inputs: [
            random.input([sequence, batch, width]),
            random.input([directions, gates, width]),
            random.input([directions, gates, hidden]),
            random.input([directions, 2 * gates]),
            undefined,
            random.input([directions, batch, hidden]),
          ],
          attributes: {
            ...{ kind, hidden, direction },
            activations: Array.from({ length: directions }, () => ACTIVATIONS[kind]).flat(),
          },
        };
      })
  );
}
