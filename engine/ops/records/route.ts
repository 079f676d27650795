// route: chooses experts for each row and weighs them (spec IF-16). Scores are the softmax or the sigmoids of the
// logits. Choosing may add a correction to them, and may be held to the best groups of experts (those outside
// are out, not zero: DeepSeek-V3). Weights are the plain scores, normalised to sum 1 if asked for, times a
// scale. Chosen experts come by falling score, equal ones by rising number.

import { choice, flag, integer, number } from "../attributes.ts";
import { CASE_ROWS, ROWS } from "../case_sizes.ts";
import { defineOp } from "../define_op.ts";
import { getElement, setElement } from "../host_tensor.ts";
import type { Attributes, OpRecord } from "../op.ts";
import {
  checkInputCount,
  lastDim,
  optionalInput,
  requireEqual,
  requireInput,
  requireStatic,
} from "../shape_rules.ts";

export const SCORES = ["softmax", "sigmoid"] as const;
const GROUP_SCORES = ["best", "best_two"] as const;

/** Against a sum of 0 where all sigmoids underflow. */
const LEAST_SUM = 1e-20;

interface Choice {
  readonly count: number;
  readonly groups: number;
  readonly groupCount: number;
  readonly groupScore: typeof GROUP_SCORES[number];
}

/** Numbers of experts, with a correction or without, and attributes. */
const ROUTE_CASES: readonly {
  readonly experts: number;
  readonly correction?: boolean;
  readonly attributes: Attributes;
}[] = [
  { experts: 8, attributes: { score: "softmax", count: 2, normalize: true } },
  { experts: 6, attributes: { score: "softmax", count: 3, scale: 1.5 } },
  { experts: 16, attributes: { score: "softmax", count: 3, groups: 4, groupCount: 2 } },
  {
    experts: 8,
    correction: true,
    attributes: {
      ...{ score: "sigmoid", count: 4, groups: 4, groupCount: 2, groupScore: "best_two" },
      ...{ normalize: true, scale: 2.5 },
    },
  },
  {
    experts: 16,
    attributes: {
      ...{ score: "sigmoid", count: 5, groups: 4, groupCount: 2, groupScore: "best_two" },
    },
  },
  { experts: 33, correction: true, attributes: { score: "sigmoid", count: 33 } },
  { experts: 1, attributes: { score: "softmax", count: 1 } },
];

/** (logits f32[M, E], correction f32[E]?) → (experts i32[M, count], weights f32[M, count]). */
export const route: OpRecord = defineOp({
  name: "route",
  summary: "the best experts of each row, and their weights",
  attributes: {
    score: choice(SCORES),
    count: integer(1),
    groups: integer(1, 1),
    groupCount: integer(1, 1),
    groupScore: choice(GROUP_SCORES, "best"),
    normalize: flag(false),
    scale: number(1),
  },
  infer(inputs, { count, groups, groupCount }) {
    checkInputCount(inputs, 2);
    const logits = requireInput(inputs, { index: 0, name: "logits", rank: 2 });
    const correction = optionalInput(inputs, { index: 1, name: "correction", rank: 1 });
    const experts = requireStatic(lastDim(logits), "the number of experts");
    if (correction) {
      requireEqual(experts, { b: correction.shape[0]!, what: "the experts and the correction" });
    }
    if (experts % groups !== 0 || groupCount > groups) {
      throw new RangeError(
        `${groupCount} of ${groups} groups cannot be taken of ${experts} experts`,
      );
    }
    if (count > experts / groups * groupCount) {
      throw new RangeError(`${count} experts cannot be chosen of ${experts / groups * groupCount}`);
    }
    const shape = [logits.shape[0]!, count];
    return [{ dtype: "i32", shape }, { dtype: "f32", shape }];
  },
  reference({ inputs: [logits, correction], outputs: [chosen, weights], attributes }) {
    const { score, count, normalize, scale } = attributes;
    const experts = logits!.shape[1]!;
    for (let row = 0; row < logits!.shape[0]!; row++) {
      const values = Array.from(
        { length: experts },
        (_, e) => getElement(logits!, row * experts + e),
      );
      const scores = score === "softmax"
        ? softmaxOf(values)
        : values.map((x) => 1 / (1 + Math.exp(-x)));
      const judged = scores.map((value, e) => value + (correction ? getElement(correction, e) : 0));
      // NaN has no place in an order: it is chosen last, and then no weight of its row is a number.
      const numbers = judged.map((value) => Number.isNaN(value) ? -Infinity : value);
      const spoilt = judged.some(Number.isNaN) ? NaN : 0;
      const best = chooseExperts(numbers, attributes);
      const sum = best.reduce((total, e) => total + scores[e]!, 0) + LEAST_SUM;
      best.forEach((e, i) => {
        setElement(chosen!, { index: row * count + i, value: e });
        setElement(weights!, {
          index: row * count + i,
          value: scores[e]! / (normalize ? sum : 1) * scale + spoilt,
        });
      });
    }
  },
  cases: (random) =>
    ROUTE_CASES.flatMap(({ experts, correction, attributes }) =>
      CASE_ROWS.map((rows) => ({
        name: `${attributes.count} of ${experts}, ${attributes.score}, ${rows} rows`,
        inputs: [
          random.input([ROWS, experts], { M: rows }),
          correction ? random.weight("F32", [experts]) : undefined,
        ],
        attributes,
        bindings: { M: rows },
      }))
    ),
});

function softmaxOf(values: readonly number[]): number[] {
  const largest = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** Indices by falling value, equal ones by rising index. */
function order(values: readonly number[]): number[] {
  return [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b);
}

function chooseExperts(
  judged: readonly number[],
  { count, groups, groupCount, groupScore }: Choice,
): number[] {
  const size = judged.length / groups;
  const groupScores = Array.from({ length: groups }, (_, group) => {
    const members = judged.slice(group * size, (group + 1) * size).sort((a, b) => b - a);
    return groupScore === "best" ? members[0]! : members[0]! + (members[1] ?? 0);
  });
  const open = new Set(order(groupScores).slice(0, groupCount));
  return order(judged).filter((e) => open.has(Math.floor(e / size))).slice(0, count);
}
