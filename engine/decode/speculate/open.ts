// Begins to speculate for an answer: makes its proposer, and keeps with each model what speculating knows of it, the costs
// of its steps and the answers that it gave.

import type { ResolvedGenerateOptions } from "../generate_options.ts";
import type { LoadedModel } from "../loaded_model.ts";
import type { Runtime } from "../runtime.ts";
import { resolveOptions } from "../sampling/options.ts";
import { createSampler, type Sampler } from "../sampling/sampler.ts";
import type { TimelineSession } from "../timeline_session.ts";
import { createDraftModel } from "./draft_model.ts";
import type { ResolvedDraft } from "./draft_option.ts";
import { type AnswerHistory, createHistory, createHistoryProposer } from "./history.ts";
import { createLookup } from "./lookup.ts";
import type { Proposer } from "./proposer.ts";
import { createSpeculation, type Speculation } from "./speculation.ts";
import { measuredCosts, nominalCosts, type StepCosts } from "./step_costs.ts";

interface Known {
  readonly costs: StepCosts;
  history: AnswerHistory | undefined;
}

const known = new WeakMap<Runtime, Known>();

/** What an answer is proposed for. */
export interface OpenOptions {
  /** Undefined: nobody asked for proposals. */
  readonly draft: ResolvedDraft | undefined;
  readonly options: ResolvedGenerateOptions;
  readonly session: TimelineSession;
  readonly sampler: Sampler;
  readonly promptLength: number;
  readonly signal: AbortSignal;
}

/** Makes a speculation; a draft model's session is borrowed until it is disposed of. */
export async function openSpeculation(open: OpenOptions): Promise<Speculation> {
  const { draft, options, session, sampler, promptLength, signal } = open;
  const { runtime } = session;
  if (!draft) return openCopies(open);
  const { from, k } = draft;
  const own = known.get(runtime) ?? {
    costs: measuredCosts(runtime.logitRows),
    history: undefined,
  };
  known.set(runtime, own);
  const endIds = endIdsOf(open);
  const common = { session, sampler, promptLength, k };
  if (typeof from !== "string") {
    const isDrawn = !sampler.isGreedy && canDraw(options);
    // The same seed is to give the same answer: then no clock may say how many are drawn.
    const isTimed = !isDrawn || (options.sampler.seed ?? -1) === -1;
    const proposer = createDraftModel({
      session: await from.borrow(0, { priority: 0, signal }),
      sampler: isDrawn ? samplerOf(from, open) : undefined,
      target: sampler,
      ...{ promptLength, endIds, signal },
    });
    const share = from.memory.weights / runtime.memory.weights;
    return isTimed
      ? createSpeculation({ ...common, proposer, costs: own.costs, clock: now, draftMs: 0 })
      : createSpeculation({
        ...common,
        ...{ proposer, costs: nominalCosts(), clock: undefined, draftMs: share },
      });
  }
  const proposer: Proposer = from === "lookup"
    ? createLookup({ endIds })
    : createHistoryProposer(own.history ??= createHistory(), { endIds });
  return createSpeculation({ ...common, proposer, costs: own.costs, clock: now, draftMs: 0 });
}

const now = (): number => performance.now();

/**
 * Tokens that must match before what is copied without being asked for, and most tokens of a copy, so that all rows of a step
 * share what is read of the weights: counted along answers of two models (bench/results/constrained-output.md).
 */
const COPY = { least: 4, most: 3 };

/**
 * Proposes copies where hardly anything else comes: answers within a grammar, which say the same names over and over. No clock
 * says how many, so that the same is computed each time.
 */
function openCopies(open: OpenOptions): Speculation {
  const { session, sampler, promptLength } = open;
  return createSpeculation({
    ...{ session, sampler, promptLength },
    proposer: createLookup({ least: COPY.least, endIds: endIdsOf(open) }),
    k: Math.min(COPY.most, session.runtime.logitRows - 1),
    ...{ calmSteps: 0, costs: nominalCosts(), clock: undefined, draftMs: 0 },
  });
}

function endIdsOf({ options, session: { runtime } }: OpenOptions): ReadonlySet<number> {
  return options.ignoreEos ? new Set() : runtime.tokenizer().endOfGenerationIds;
}

/**
 * Whether the chain may be run beside the answer. What changes the drawn token afterwards cannot be judged, and a step
 * of the user's own is to see the answer alone.
 */
function canDraw({ sampler }: ResolvedGenerateOptions): boolean {
  const { samplers = [], strategy } = sampler;
  const isOwn = [...samplers, strategy].some((step) => typeof step === "function");
  return !isOwn && resolveOptions(sampler).eosBypassingMax === 0;
}

/** Draws by the same steps, and by numbers of its own. */
function samplerOf(draft: LoadedModel, { options, sampler }: OpenOptions): Sampler {
  return createSampler({ ...options.sampler, seed: otherSeed(sampler.seed) }, draft.tokenizer);
}

/** Far away from a seed: generators with seeds side by side begin alike, and what judges a draw must not know it. */
function otherSeed(seed: number): number {
  return Number(BigInt.asUintN(48, BigInt(seed) * 0x5851f42d4c95n + 0x14057b7ef767n));
}
