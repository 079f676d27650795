// A constraint of fixed sequences of tokens, control tokens among them: one of them is written to its end.

import type { Constraint } from "../../text/grammar/constraint.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";

/** One of several sequences. */
export interface TokenSequences extends Constraint {
  /** Index of the sequence that was written; valid once it is complete. */
  readonly chosen: number;
}

/** Starts a text that is one of `sequences`; where one begins with another, the shorter one is it. */
export function createSequences(
  sequences: readonly (readonly number[])[],
  { vocabSize }: Pick<Tokenizer, "vocabSize">,
): TokenSequences {
  const taken: number[] = [];
  const bits = new Uint32Array(Math.ceil(vocabSize / 32));
  const begun = () => sequences.filter((ids) => taken.every((id, at) => ids[at] === id));
  const isComplete = () => begun().some(({ length }) => length === taken.length);
  const follows = (id: number) => !isComplete() && begun().some((ids) => ids[taken.length] === id);
  return {
    get length() {
      return taken.length;
    },
    get canEnd() {
      return isComplete();
    },
    get isComplete() {
      return isComplete();
    },
    get chosen() {
      return sequences.findIndex((ids) =>
        ids.length === taken.length && ids.every((id, at) => id === taken[at])
      );
    },
    mask() {
      bits.fill(0);
      if (isComplete()) return bits;
      for (const ids of begun()) {
        const id = ids[taken.length]!;
        bits[id >> 5]! |= 1 << (id & 31);
      }
      return bits;
    },
    allows: follows,
    accept(id) {
      if (!follows(id)) {
        throw new RangeError(`Cannot take token ${id}: a call has to be written here`);
      }
      taken.push(id);
    },
    rollback(count) {
      taken.length -= count;
    },
  };
}
