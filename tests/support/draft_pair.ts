// How many proposals of a draft model are taken, by their place behind the text, beside what the two models' distributions
// say: Σ min(p, q) over all proposals that are judged.

import type { Model } from "../../engine/decode/model.ts";
import { createSampler } from "../../engine/decode/sampling/sampler.ts";
import { createDraftModel } from "../../engine/decode/speculate/draft_model.ts";
import type { Proposal } from "../../engine/decode/speculate/proposer.ts";
import { createSpeculation } from "../../engine/decode/speculate/speculation.ts";
import { nominalCosts } from "../../engine/decode/speculate/step_costs.ts";
import type { TimelineSession } from "../../engine/decode/timeline_session.ts";

const K = 3;
/** Seeds side by side begin alike. */
const SEEDS = { apart: 0x9e3779b97f, draft: 77_777_777_777, all: 2 ** 48 };

/** Proposals by place. */
export interface PairFigures {
  readonly judged: number[];
  readonly expected: number[];
  readonly accepted: number[];
}

/** Draws texts with three proposals a step. */
export async function measurePair(
  { target, draft }: { readonly target: Model; readonly draft: Model },
  { prompt, texts, tokens: count, temperature, topK = 0 }: {
    readonly prompt: readonly number[];
    readonly texts: number;
    /** Tokens of each. */
    readonly tokens: number;
    readonly temperature: number;
    /** Tokens that are drawn among; default: all. */
    readonly topK?: number;
  },
): Promise<PairFigures> {
  const none = () => new Array<number>(K).fill(0);
  const figures: PairFigures = { judged: none(), expected: none(), accepted: none() };
  const { signal } = new AbortController(), promptLength = prompt.length;
  for (let text = 0; text < texts; text++) {
    const options = { temperature, topK, seed: text * SEEDS.apart % SEEDS.all };
    const sampler = createSampler(options, target.tokenizer);
    using session = target.createSession() as TimelineSession;
    const proposer = createDraftModel({
      session: draft.createSession() as TimelineSession,
      sampler: createSampler({ ...options, seed: options.seed + SEEDS.draft }, draft.tokenizer),
      ...{ target: sampler, promptLength, endIds: new Set<number>(), signal },
    });
    let proposal: Proposal | undefined, place = 0;
    using speculation = createSpeculation({
      session,
      sampler: {
        ...sampler,
        distribution(logits, history) {
          const p = sampler.distribution(logits, history), q = proposal!.from![place]!;
          const chances = new Map([...q.ids].map((id, i) => [id, q.probabilities[i]!]));
          for (const [i, id] of p.ids.entries()) {
            figures.expected[place]! += Math.min(p.probabilities[i]!, chances.get(id) ?? 0);
          }
          figures.judged[place]!++;
          return p;
        },
      },
      proposer: {
        ...proposer,
        propose: async (tokens, most) => proposal = await proposer.propose(tokens, most),
      },
      ...{ promptLength, costs: nominalCosts(), k: K, clock: undefined, draftMs: 0 },
    });
    const tokens = [...prompt];
    const history = { tokens, promptLength, length: 0 };
    await session.syncNow(tokens);
    while (tokens.length < promptLength + count) {
      history.length = tokens.length;
      const proposed = proposal?.tokens[place];
      const taken = speculation.take(history);
      tokens.push(taken ?? sampler.sample(session.logits(), history));
      if (taken !== undefined && taken === proposed) figures.accepted[place++]!++;
      const how = { signal, best: undefined, worth: 0, priority: 0, wanted: K + 1 };
      if (await speculation.append(tokens, how)) place = 0;
    }
  }
  return figures;
}
