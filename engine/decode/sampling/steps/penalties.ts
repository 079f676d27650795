// Penalties on tokens that have occurred. The repetition penalty (Keskar et al. 2019, CTRL, 4.1) looks at
// the newest tokens of prompt and answer: once for each token, a positive logit is divided and a negative
// one multiplied. Frequency and presence penalties (OpenAI) look at generated tokens only: a logit loses
// `frequency_penalty` times the count and `presence_penalty` once.

import { type Candidates, logitsChanged } from "../candidates.ts";
import { defineStep, number, type SamplingStep } from "../step.ts";
import { clearTable, countTableId, type TokenTable } from "../token_table.ts";

interface PenaltyParameters {
  repeat_penalty: number;
  penalty_last_n: number;
  frequency_penalty: number;
  presence_penalty: number;
}

/** Repetition, frequency and presence penalty. */
export const penalties: SamplingStep = defineStep<PenaltyParameters>({
  name: "penalties",
  aliases: ["penalty"],
  asksForChance: false,
  rules: {
    repeat_penalty: number(1, {
      min: 0,
      above: true,
      aliases: ["repetition_penalty", "penalty_repeat"],
      options: ["repeatPenalty", "repetitionPenalty"],
      flag: "divides logits of tokens in the window",
    }),
    penalty_last_n: number(64, {
      min: -1,
      integer: true,
      aliases: ["repeat_last_n"],
      options: ["penaltyLastN", "repeatLastN"],
      flag: "window of the penalty in tokens (-1: all)",
      flagOption: "repeatLastN",
    }),
    frequency_penalty: number(0, {
      aliases: ["penalty_freq", "penalty_frequency"],
      options: ["frequencyPenalty"],
      flag: "lowers tokens by how often they were generated",
    }),
    presence_penalty: number(0, {
      aliases: ["penalty_present", "penalty_presence"],
      options: ["presencePenalty"],
      flag: "lowers tokens that were generated",
    }),
  },
  isOff: (p) =>
    (p.repeat_penalty === 1 || p.penalty_last_n === 0) && p.frequency_penalty === 0 &&
    p.presence_penalty === 0,
  apply(candidates, p, { history, table }) {
    const { tokens, length, promptLength } = history;
    const counts = table();
    if (p.repeat_penalty !== 1) {
      const window = p.penalty_last_n === -1 ? length : Math.min(length, p.penalty_last_n);
      countTokens(counts, { tokens, start: length - window, end: length });
      change(
        candidates,
        counts,
        (logit) => logit > 0 ? logit / p.repeat_penalty : logit * p.repeat_penalty,
      );
    }
    if (p.frequency_penalty !== 0 || p.presence_penalty !== 0) {
      countTokens(counts, { tokens, start: promptLength, end: length });
      change(
        candidates,
        counts,
        (logit, count) => logit - count * p.frequency_penalty - p.presence_penalty,
      );
    }
    logitsChanged(candidates);
  },
});

function countTokens(
  counts: TokenTable,
  { tokens, start, end }: {
    readonly tokens: ArrayLike<number>;
    readonly start: number;
    readonly end: number;
  },
): void {
  clearTable(counts);
  for (let i = start; i < end; i++) countTableId(counts, tokens[i]!);
}

function change(
  candidates: Candidates,
  counts: TokenTable,
  rule: (logit: number, count: number) => number,
): void {
  const { ids, logits, size, dense } = candidates;
  if (dense) {
    for (let i = 0; i < counts.count; i++) {
      const id = counts.ids[i]!;
      logits[id] = rule(logits[id]!, counts.values[id]!);
    }
    return;
  }
  for (let i = 0; i < size; i++) {
    const id = ids[i]!;
    if (counts.stamps[id] === counts.round) logits[i] = rule(logits[i]!, counts.values[id]!);
  }
}
