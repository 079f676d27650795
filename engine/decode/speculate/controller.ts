// How many tokens are checked in a step. Known are the chance that a proposal is right, by how sure its proposer was and
// by its place behind the text, and what a step of so many rows costs. The number is that of the most expected tokens
// in a time; zero where that is a plain step. What was seen loses weight, so that what did not pay is tried again.
//
// Chances are learnt from what was checked, and from proposals that were not and are compared with what the answer then
// said (unchecked.ts), so that a text without copies is known for one before anything was spent on it. An account
// sees to it that trying never costs much: steps that checked something may together take the time that plain ones would
// have taken for their tokens, and a little more. No step is taken that would overdraw it if nothing were right. All
// unsure levels share an account; each of the others, which texts without copies do not reach, has its own. The controller
// knows no clock: others measure.

import type { StepCosts } from "./step_costs.ts";

/** Chooses the number of proposed tokens. */
export interface Controller {
  /**
   * So many should be checked in the next step.
   *
   * @param level How sure the proposer is.
   * @param most At most so many.
   */
  choose(level: number, most: number): number;
  /** What came of a step with proposals. */
  note(step: CheckedStep): void;
  /** What would have come of proposals that were not checked. */
  see(outcome: Outcome): void;
  /** A plain step was taken. */
  notePlain(): void;
}

/** What came of proposals. */
export interface Outcome {
  readonly level: number;
  /** So many of them were right. */
  readonly accepted: number;
  /** Whether the one behind them was judged and wrong; false where all were right, or the answer ended. */
  readonly isRefused: boolean;
}

/** A step that checked something. */
export interface CheckedStep extends Outcome {
  readonly proposed: number;
}

/** Weight of a guessed chance, in proposals. */
const PRIOR_WEIGHT = 2;
/** A later proposal is judged only if those before it were right; it is guessed to be right with this chance at least. */
const LATER_PRIOR = 0.8;
/** What is left of the weight of what was seen, with every proposal that is judged, and with every one not made. */
const KEPT = { judged: 0.97, passed: 0.995 };
/** Of what can be seen unchecked, a level whose first token is less likely than that is unsure. */
const UNSURE = 0.85;
/** What trying may cost: a part of all time, or so many plain steps, if that is more. */
const ALLOWED = { time: 0.005, unsure: 0.6, sure: 4 };

/** Makes a controller for one answer. */
export function createController(
  { costs, priors, most, isSeen, draftMs }: {
    readonly costs: StepCosts;
    /** See {@linkcode Proposer.priors}. */
    readonly priors: readonly number[];
    /** Most proposals of a step. */
    readonly most: number;
    /** Whether it is also told what it did not have checked. */
    readonly isSeen: boolean;
    /** Milliseconds that a proposed token costs. */
    draftMs(): number;
  },
): Controller {
  const seen = priors.map(() => ({
    judged: new Float64Array(most),
    right: new Float64Array(most),
  }));
  /** By account, milliseconds that plain steps would have taken more. */
  const gained = new Float64Array(priors.length + 1);
  const accountOf = (level: number) => isSeen && priors[level]! < UNSURE ? 0 : level + 1;
  /** Milliseconds of all steps. */
  let time = 0;

  function chance(level: number, place: number): number {
    const { judged, right } = seen[level]!;
    // Of a level of which nothing was seen the one below tells more than a guess.
    const below = level > 0 && seen[level - 1]!.judged[place]! >= 1 ? chance(level - 1, place) : 0;
    const guess = place === 0 ? priors[level]! : Math.max(priors[level]!, LATER_PRIOR);
    const prior = Math.max(guess, below);
    return (right[place]! + PRIOR_WEIGHT * prior) / (judged[place]! + PRIOR_WEIGHT);
  }

  function forget(level: number): void {
    const { judged, right } = seen[level]!;
    for (let place = 0; place < most; place++) {
      judged[place]! *= KEPT.passed;
      right[place]! *= KEPT.passed;
    }
  }

  function see({ level, accepted, isRefused }: Outcome): void {
    const { judged, right } = seen[level]!;
    for (let place = 0; place < Math.min(most, accepted + (isRefused ? 1 : 0)); place++) {
      judged[place] = judged[place]! * KEPT.judged + 1;
      right[place] = right[place]! * KEPT.judged + (place < accepted ? 1 : 0);
    }
  }

  return {
    see,
    choose(level, limit) {
      const plain = costs.of(1);
      if (level < 0 || !(plain > 0)) return 0;
      const account = accountOf(level);
      const atFirst = (account === 0 ? ALLOWED.unsure : ALLOWED.sure) * plain;
      const allowed = gained[account]! + Math.max(ALLOWED.time * time, atFirst);
      let best = 0, bestRate = 1 / plain, tokens = 1, all = 1;
      for (let count = 1; count <= Math.min(limit, most, costs.most - 1); count++) {
        all *= chance(level, count - 1);
        tokens += all;
        const ms = costs.of(count + 1) + count * draftMs();
        const worst = costs.atMost(count + 1) + count * draftMs();
        if (tokens / ms <= bestRate || worst - plain > allowed) continue;
        bestRate = tokens / ms;
        best = count;
      }
      if (best === 0) forget(level);
      return best;
    },
    note(step) {
      see(step);
      const { level, proposed, accepted } = step;
      const ms = costs.of(proposed + 1) + proposed * draftMs();
      if (!(ms > 0)) return;
      time += ms;
      gained[accountOf(level)]! += (accepted + 1) * costs.of(1) - ms;
    },
    notePlain() {
      const ms = costs.of(1);
      if (ms > 0) time += ms;
    },
  };
}
