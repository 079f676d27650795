// FSD, frustratingly simple decoding (Yang et al. 2023): among the k best tokens takes the one with the
// greatest (1 - α) P - α P_ω, where P_ω is an n-gram model of the text so far, smoothed by back-off: what
// the text would repeat is avoided, without any draw. From the longest context down, an order i >= 1
// adds rest · β · count / (total + 1), and leaves 1 - β of the rest to shorter ones if it had counts;
// order 0 adds rest · count / total. Texts shorter than n - 1 tokens have no penalty.
// The n-gram counts are taken from the history anew each time: a scan costs microseconds, and nothing has
// to be undone when a session rewinds.

import { type Candidates, keepOnly, orderTop, probabilityAt } from "../candidates.ts";
import type { TokenHistory } from "../history.ts";
import { defineStep, number, type SamplingStep, share, type StepContext } from "../step.ts";
import { clearTable, countTableId, tableValue } from "../token_table.ts";

/** Parameters of FSD. */
export interface FsdParameters {
  /** Candidates considered. */
  k: number;
  /** Weight of the penalty. */
  alpha: number;
  /** Order of the n-gram model. */
  n: number;
  /** Weight of a longer context against the shorter ones. */
  beta: number;
}

/** Rules of FSD's parameters. */
export const FSD_RULES = {
  k: number(6, { min: 1, integer: true, aliases: ["fsd_k", "top_k"] }),
  alpha: share(0.5, { aliases: ["penalty_alpha"] }),
  n: number(3, { min: 1, integer: true }),
  beta: share(0.9),
};

/**
 * P_ω of the first `count` candidates.
 *
 * @param out Receives `count` penalties; twice as long, the rest is scratch.
 */
export function ngramPenalties(
  candidates: Candidates,
  { count, parameters: { n, beta }, context, out }: {
    readonly count: number;
    readonly parameters: FsdParameters;
    readonly context: StepContext;
    readonly out: Float64Array;
  },
): void {
  out.fill(0, 0, count);
  const { history } = context;
  if (history.length < n - 1 || history.length === 0) return;
  const rests = out.subarray(count, 2 * count).fill(1);
  const counts = context.table();
  for (let order = n - 1; order >= 0; order--) {
    clearTable(counts);
    let total = 0;
    for (let at = order; at < history.length; at++) {
      if (!endsAlike(history, at, order)) continue;
      countTableId(counts, history.tokens[at]!);
      total++;
    }
    for (let i = 0; i < count; i++) {
      const seen = tableValue(counts, candidates.ids[i]!);
      if (seen === 0) continue;
      out[i]! += rests[i]! * (order === 0 ? seen / total : beta * seen / (total + 1));
      rests[i]! *= 1 - beta;
    }
  }
}

// Whether the `order` tokens before `at` are those at the end of the history.
function endsAlike({ tokens, length }: TokenHistory, at: number, order: number): boolean {
  for (let i = 1; i <= order; i++) if (tokens[at - i] !== tokens[length - i]) return false;
  return true;
}

/** Leaves the candidate of the best score alone. */
export function applyFsd(
  candidates: Candidates,
  { parameters, context }: {
    readonly parameters: FsdParameters;
    readonly context: StepContext;
  },
): void {
  const count = Math.min(parameters.k, candidates.size);
  orderTop(candidates, count);
  const penalties = context.doubles(2 * count);
  ngramPenalties(candidates, { count, parameters, context, out: penalties });
  let best = 0;
  let bestScore = -Infinity;
  for (let i = 0; i < count; i++) {
    const score = (1 - parameters.alpha) * probabilityAt(candidates, i) -
      parameters.alpha * penalties[i]!;
    if (score > bestScore) {
      best = i;
      bestScore = score;
    }
  }
  keepOnly(candidates, best);
}

/** Takes the likely token that the text repeats least. */
export const fsd: SamplingStep = defineStep<FsdParameters>({
  name: "fsd",
  isDraw: true,
  rules: FSD_RULES,
  apply: (candidates, parameters, context) => applyFsd(candidates, { parameters, context }),
});
