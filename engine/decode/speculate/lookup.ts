// Prompt lookup: what followed the last tokens when they stood in the text before. No model computes it, so it pays
// wherever an answer copies: quotes, corrections, code that is changed.
//
// The n-gram that counts is the longest of up to three tokens, as in transformers' PromptLookupCandidateGenerator. Of
// several places the latest is taken, not the first (bench/results/speculation.md).

import { createNgramIndex, type Occurrence } from "./ngram_index.ts";
import { MATCH_PRIORS, matchLevel, NOTHING, type Proposal, type Proposer } from "./proposer.ts";

/** How places are found. */
export interface LookupOptions {
  /** Tokens of the longest n-gram; default 3. */
  readonly longest?: number | undefined;
  /** So many of the last tokens must have stood before what is proposed, at most 32; default 1. */
  readonly least?: number | undefined;
  /** Which of several places; default `latest`. */
  readonly occurrence?: Occurrence | undefined;
  /** Whether a proposal ends where the text does, as theirs; by default it goes on with its own beginning: a loop. */
  readonly isCut?: boolean | undefined;
  /** Tokens that end a text: what is proposed ends before them. */
  readonly endIds?: ReadonlySet<number> | undefined;
}

/** A proposer that never waits. */
export interface Lookup extends Proposer {
  /** So many of the last tokens stood before what it proposes, as far as it looks. */
  readonly matched: number;
  propose(tokens: readonly number[], most: number): Proposal;
}

const NO_END: ReadonlySet<number> = new Set();
/** So many tokens of a match are counted. */
const LONGEST_MATCH = 32;
const MOST = 64;

/** Proposes from the text itself. */
export function createLookup(
  { longest = 3, least = 1, occurrence = "latest", isCut = false, endIds = NO_END }: LookupOptions =
    {},
): Lookup {
  const index = createNgramIndex({ longest, occurrence });
  const draft = new Int32Array(MOST);
  let place = -1, matched = 0;
  return {
    priors: MATCH_PRIORS,
    isFree: true,
    get matched() {
      return matched;
    },
    get isClose() {
      return matched > 0 && matched + 1 === least;
    },
    level(tokens) {
      index.extend(tokens);
      place = index.find();
      if (place < 0 || endIds.has(tokens[place]!)) {
        matched = 0;
        return NOTHING;
      }
      matched = matchLength(tokens, place);
      return matched < least ? NOTHING : matchLevel(matched);
    },
    propose(tokens, most) {
      const room = Math.min(most, MOST, isCut ? tokens.length - place : MOST);
      let count = 0;
      for (; count < room; count++) {
        const at = place + count - tokens.length;
        const token = at < 0 ? tokens[place + count]! : draft[at]!;
        if (endIds.has(token)) break;
        draft[count] = token;
      }
      return { tokens: draft, count };
    },
    [Symbol.dispose]() {},
  };
}

/** How many tokens before a place are those at the end. */
function matchLength(tokens: readonly number[], place: number): number {
  const end = tokens.length;
  let length = 1;
  while (
    length < LONGEST_MATCH && length < place &&
    tokens[place - 1 - length] === tokens[end - 1 - length]
  ) length++;
  return length;
}
