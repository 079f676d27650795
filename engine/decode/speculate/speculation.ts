// Speculative decoding (Leviathan et al. 2023): several tokens that may come next are computed in one step, behind the one
// that was taken, which costs little more than that one; those that turn out right need no step of their own. The decode
// loop stays as it is: it samples where the session stands and appends. Here appending is either going on to a row
// that was computed ahead, or a step with new proposals.
//
// Proposals without a draw are exact for any sampler, since it draws as ever; drawn ones are judged (accept.ts). So the
// answer has the distribution of a plain one, is the same where nothing is drawn by proposers, and the sampler
// sees every token that was taken, in order, once.

import type { TokenHistory } from "../sampling/history.ts";
import type { Sampler } from "../sampling/sampler.ts";
import { createTokenTable, type TokenTable } from "../sampling/token_table.ts";
import type { TimelineSession } from "../timeline_session.ts";
import { judge } from "./accept.ts";
import { type CheckedStep, createController } from "./controller.ts";
import { NOTHING, type Proposal, type Proposer } from "./proposer.ts";
import type { StepCosts } from "./step_costs.ts";
import { createUnchecked } from "./unchecked.ts";

/**
 * What came of the proposals of an answer.
 * @category Text
 */
export interface SpeculationStats {
  /** Tokens that were proposed and checked. */
  readonly drafted: number;
  /** So many of them were taken. */
  readonly accepted: number;
  /** Steps that checked some. */
  readonly steps: number;
  /** Tokens checked in a step on average, steps without any counted; 0: it never paid. */
  readonly k: number;
}

/** How a token is appended. */
export interface AppendOptions {
  readonly signal: AbortSignal;
  /** See the session's `evalNow`. */
  readonly best: number | undefined;
  /** See {@linkcode RowsWish.worth}. */
  readonly worth: number;
  /** Gives {@linkcode RowsWish.allowed}; asked where nothing is proposed. */
  readonly allowed?: (() => Uint32Array | undefined) | undefined;
  /** Tokens that may still be taken behind this one. */
  readonly wanted: number;
  /** Among other answers. */
  readonly priority: number;
  /** See {@linkcode RowsWish.meanwhile}. */
  readonly meanwhile?: (() => void) | undefined;
}

/** Proposals along one answer. */
export interface Speculation extends Disposable {
  /** The token to take where a drawn one was proposed; undefined: the sampler decides alone. */
  take(history: TokenHistory): number | undefined;
  /**
   * Appends the last of the tokens, always the same list, to the session, whose context has room for it.
   *
   * @returns Whether a step was taken.
   */
  append(tokens: readonly number[], options: AppendOptions): Promise<boolean>;
  /** Takes in what so many rows of the prompt took, in milliseconds. */
  notePrompt(rows: number, ms: number): void;
  /** So far. */
  readonly stats: SpeculationStats;
}

/** What a speculation needs. */
export interface SpeculationOptions {
  readonly session: TimelineSession;
  readonly sampler: Sampler;
  readonly proposer: Proposer;
  readonly promptLength: number;
  readonly costs: StepCosts;
  /** Tokens that are checked at once; undefined: as many as pay. */
  readonly k: number | undefined;
  /** Steps without proposals behind the last that had some, before a device may go ahead by itself again; default 8. */
  readonly calmSteps?: number;
  /** Milliseconds; undefined: none is looked at, and `costs` are what they are. */
  readonly clock: (() => number) | undefined;
  /** What a proposed token costs where there is no clock, in units of `costs`; else how it begins. */
  readonly draftMs: number;
}

const CALM = 8;
const WEIGHT = 0.2;

/** Begins to propose. */
export function createSpeculation(options: SpeculationOptions): Speculation {
  const { session, sampler, proposer, costs, k, clock, promptLength, calmSteps = CALM } = options;
  const most = session.runtime.logitRows - 1;
  let draftMs = options.draftMs;
  const controller = createController({
    ...{ costs, most, priors: proposer.priors, isSeen: proposer.isFree ?? false },
    draftMs: () => draftMs,
  });
  const unchecked = proposer.isFree ? createUnchecked(proposer, controller) : undefined;
  const stats = { drafted: 0, accepted: 0, steps: 0, k: 0 };
  let stepCount = 0;
  const rows: number[] = [];
  let table: TokenTable | undefined, text: readonly number[] = [];
  /** What was computed ahead, how much of it was taken, and how sure its proposer was. */
  let proposal: Proposal = { tokens: new Int32Array(0), count: 0 };
  let taken = 0, level = NOTHING, calm = calmSteps;

  /** Counts what came of the last proposals. */
  function settle(isRefused: boolean): void {
    if (proposal.count === 0) return;
    stats.accepted += taken;
    const { count: proposed } = proposal;
    controller.note({ level, proposed, accepted: taken, isRefused } satisfies CheckedStep);
    proposal = { tokens: proposal.tokens, count: 0 };
    taken = 0;
  }

  async function propose(tokens: readonly number[], wanted: number): Promise<Proposal | undefined> {
    const room = Math.min(most, wanted - 1, session.capacity - session.length - 1);
    if (room <= 0) return undefined;
    level = proposer.level(tokens);
    if (level === NOTHING) return undefined;
    const count = k === undefined ? controller.choose(level, room) : Math.min(k, room);
    if (count === 0) return void unchecked?.watch(tokens, level);
    const start = clock?.() ?? 0;
    const found = await proposer.propose(tokens, count);
    if (clock && found.count > 0) {
      draftMs += WEIGHT * ((clock() - start) / found.count - draftMs);
    }
    return found.count > 0 ? found : undefined;
  }

  return {
    take(history) {
      const from = proposal.from?.[taken];
      if (!from || taken === proposal.count) return undefined;
      const logits = session.logits();
      const p = sampler.distribution(logits, history);
      table ??= createTokenTable(logits.length);
      const proposed = { token: proposal.tokens[taken]!, from };
      const token = judge(p, { proposed, table, coin: () => sampler.random() });
      sampler.accept(token);
      return token;
    },
    async append(tokens, { signal, best, worth, allowed, wanted, priority, meanwhile }) {
      const token = tokens.at(-1)!;
      text = tokens;
      unchecked?.take(token);
      const isRight = taken < proposal.count && proposal.tokens[taken] === token;
      if (isRight && session.advance()) {
        taken++;
        return false;
      }
      settle(taken < proposal.count && !isRight);
      rows.length = 0;
      rows.push(token);
      const found = await propose(tokens, wanted);
      for (let i = 0; i < (found?.count ?? 0); i++) rows.push(found!.tokens[i]!);
      const start = clock?.() ?? 0;
      stepCount++;
      if (found) {
        calm = 0;
        proposal = found;
        stats.steps++;
        stats.drafted += found.count;
        const own = found.from ? undefined : best;
        await session.checkNow(rows, { signal, best: own, priority, meanwhile });
      } else {
        // What goes ahead is in vain where the next step has proposals.
        const isCalm = ++calm > calmSteps && !proposer.isClose;
        await session.evalNow(rows, {
          ...{ signal, best, worth, priority, meanwhile },
          ...{ feedback: isCalm ? wanted - 1 : 0, allowed: allowed?.() },
        });
      }
      stats.k = stats.drafted / stepCount;
      if (clock) costs.note(rows.length, clock() - start);
      if (!found) controller.notePlain();
      return true;
    },
    notePrompt(rows, ms) {
      if (clock) costs.notePrompt(rows, ms);
    },
    stats,
    [Symbol.dispose]() {
      settle(false);
      proposer.finish?.(text, promptLength);
      proposer[Symbol.dispose]();
    },
  };
}
