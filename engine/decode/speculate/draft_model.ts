// A draft model: a smaller one with the same vocabulary writes on, and the larger one checks what it wrote. It pays where
// the small one's token costs a fraction of the large one's and is mostly right.
//
// Where the answer is drawn, so are the proposals, from what the same chain of sampling steps makes of the draft's
// logits; its numbers are a sequence of their own with the same seed. Else the draft's best token is proposed.

import type { Sampler, TokenDistribution } from "../sampling/sampler.ts";
import type { TimelineSession } from "../timeline_session.ts";
import { drawToken } from "./accept.ts";
import { bestToken } from "../sampling/candidates.ts";
import { NOTHING, type Proposal, type Proposer } from "./proposer.ts";

/** What a draft model needs. */
export interface DraftModelOptions {
  /** Its own, on the draft model; disposed of at the end. */
  readonly session: TimelineSession;
  /** Draws the proposals; absent: the best token is proposed. */
  readonly sampler?: Sampler | undefined;
  /** The target's, which knows what has been taken so far. */
  readonly target: Sampler;
  /** Tokens of the text that were given. */
  readonly promptLength: number;
  readonly endIds: ReadonlySet<number>;
  readonly signal: AbortSignal;
}

/** Buffers of a distribution. */
interface Room {
  ids: Int32Array;
  probabilities: Float64Array;
}

const MOST = 64;
const PRIORS = [0.7];

/** Proposes what another model writes. */
export function createDraftModel(
  { session, sampler, target, promptLength, endIds, signal }: DraftModelOptions,
): Proposer {
  const draft = new Int32Array(MOST);
  const rooms: Room[] = [];
  const from: TokenDistribution[] = [];
  /** The text with what has been proposed behind it. */
  const text: number[] = [];
  const history = {
    tokens: text,
    promptLength,
    get length() {
      return text.length;
    },
  };
  const next = [0];

  /** Tokens of the last text that was continued. */
  let known = 0;

  async function catchUp(tokens: readonly number[]): Promise<void> {
    // Of what was proposed behind the last text some is in this one.
    const most = Math.min(session.length, tokens.length - 1);
    let kept = Math.min(known, most);
    while (kept < most && text[kept] === tokens[kept]) kept++;
    session.rewind(kept);
    text.length = kept;
    for (let i = kept; i < tokens.length; i++) text.push(tokens[i]!);
    known = tokens.length;
    await session.evalNow(tokens.slice(kept), { signal, best: sampler ? undefined : 1 });
  }

  function choose(place: number): number {
    const best = session.bestLogits();
    if (!sampler) return best ? best.ids[0]! : bestToken(session.logits());
    const distribution = sampler.distribution(session.logits(), history);
    const token = drawToken(distribution, sampler.random());
    sampler.accept(token);
    from[place] = keep(distribution, place);
    return token;
  }

  function keep({ ids, probabilities }: TokenDistribution, place: number): TokenDistribution {
    const size = ids.length;
    let room = rooms[place];
    if (!room || room.ids.length < size) {
      room = rooms[place] = { ids: new Int32Array(size), probabilities: new Float64Array(size) };
    }
    room.ids.set(ids);
    room.probabilities.set(probabilities);
    return {
      ids: room.ids.subarray(0, size),
      probabilities: room.probabilities.subarray(0, size),
    };
  }

  return {
    priors: PRIORS,
    level: (tokens) => tokens.length < session.capacity ? 0 : NOTHING,
    async propose(tokens, most): Promise<Proposal> {
      await catchUp(tokens);
      // What chains remember is the target's; the random numbers go on.
      sampler?.restore({ ...target.save(), random: sampler.save().random });
      const room = Math.min(most, MOST, session.capacity - tokens.length + 1);
      let count = 0;
      while (count < room) {
        const token = choose(count);
        const isEnd = endIds.has(token);
        // A token that was drawn has to be judged, whatever it is: dropping ends only would make them rarer.
        if (isEnd && !sampler) break;
        draft[count++] = token;
        if (isEnd) break;
        text.push(token);
        next[0] = token;
        if (count < room) await session.evalNow(next, { signal, best: sampler ? undefined : 1 });
      }
      return { tokens: draft, count, from: sampler && from };
    },
    [Symbol.dispose]: () => session.dispose(),
  };
}
