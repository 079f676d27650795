// Earlier answers of the same model, kept with it, and a proposer that finds in them what the answer's last tokens were
// followed by: assistants repeat themselves from one answer to the next, in phrases, code and tables. Who asks for it
// gives its own answers, too; those of other generations are never looked at. The memory is bounded: when it is full, the
// older half goes.
//
// Where the text itself has a longer match, or as long a one, its continuation is proposed (lookup.ts).

import { createLookup, type LookupOptions } from "./lookup.ts";
import { MATCH_PRIORS, matchLevel, NOTHING, type Proposer } from "./proposer.ts";
import { createSuffixAutomaton, type SuffixAutomaton } from "./suffix_automaton.ts";

/** Answers of a model. */
export interface AnswerHistory {
  /** All of them behind one another, each with `BETWEEN` behind it. */
  readonly answers: SuffixAutomaton;
  /** Takes in an answer. */
  add(answer: readonly number[]): void;
}

/** Stands behind an answer, and is no token. */
const BETWEEN = -1;
const CAPACITY = 1 << 16;
const MOST = 64;

/** An empty history that holds so many tokens. */
export function createHistory(capacity = CAPACITY): AnswerHistory {
  let answers = createSuffixAutomaton(0);

  function makeRoom(needed: number): void {
    if (answers.length + needed <= answers.capacity) return;
    const old = answers;
    const kept = Math.min(old.length, Math.max(0, Math.min(capacity / 2, capacity - needed)));
    // Small as long as little is there.
    const size = Math.min(capacity, Math.max(1024, 4 * (kept + needed)));
    answers = createSuffixAutomaton(size);
    for (let i = old.length - Math.floor(kept); i < old.length; i++) answers.append(old.at(i));
  }

  return {
    get answers() {
      return answers;
    },
    add(answer) {
      const used = answer.slice(0, capacity - 1);
      makeRoom(used.length + 1);
      for (const token of used) answers.append(token);
      answers.append(BETWEEN);
    },
  };
}

/** Proposes from earlier answers, and from the text itself. */
export function createHistoryProposer(history: AnswerHistory, options: LookupOptions): Proposer {
  const { answers } = history;
  const follower = answers.follow();
  const lookup = createLookup(options);
  const draft = new Int32Array(MOST);
  let length = 0, isEarlier = false;
  return {
    priors: MATCH_PRIORS,
    isFree: true,
    level(tokens) {
      for (; length < tokens.length; length++) follower.push(tokens[length]!);
      const own = lookup.level(tokens);
      const earlier = isKnown(follower.place) ? matchLevel(follower.matched) : NOTHING;
      isEarlier = earlier > own || earlier === own && follower.matched > lookup.matched;
      return isEarlier ? earlier : own;
    },
    propose(tokens, most) {
      if (!isEarlier) return lookup.propose(tokens, most);
      let count = 0;
      for (let at = follower.place; count < Math.min(most, MOST) && isKnown(at); at++, count++) {
        draft[count] = answers.at(at);
      }
      return { tokens: draft, count };
    },
    finish: (tokens, promptLength) => history.add(tokens.slice(promptLength)),
    [Symbol.dispose]() {},
  };

  /** Whether a token that the answer may have stands there. */
  function isKnown(place: number): boolean {
    if (place >= answers.length) return false;
    const token = answers.at(place);
    return token !== BETWEEN && !options.endIds?.has(token);
  }
}
