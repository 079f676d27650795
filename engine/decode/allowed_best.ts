// The best logits among allowed tokens, as a sampler takes them that looks at no others (Sampler.sampleBest): in order,
// best first, equals by lower id. Where fewer are allowed, tokens that are not stand behind them with -Infinity, as they
// would if all logits were masked and put in order.

/** A list of the best; its arrays are filled anew each time. */
export interface AllowedBest {
  readonly ids: Int32Array;
  readonly logits: Float32Array;
  /** So many are in it; fewer than are needed where more may be allowed. */
  readonly count: number;
  /** Picks them from all logits, `[vocab]`; empty where a logit is NaN. */
  pick(logits: Float32Array, mask: Uint32Array): void;
  /** Picks them from the best ones, in order; with a mask it is known whether others are allowed. */
  filter(best: BestTokens, allowed: {
    isAllowed(id: number): boolean;
    readonly mask: Uint32Array | undefined;
  }): void;
}

interface BestTokens {
  readonly ids: ArrayLike<number>;
  readonly logits: ArrayLike<number>;
  readonly count: number;
}

/** An empty list for so many. */
export function createAllowedBest(needed: number): AllowedBest {
  const ids = new Int32Array(needed);
  const logits = new Float32Array(needed);
  let count = 0;

  // Puts a token into its place; those of lower ids came before.
  function insert(id: number, logit: number): void {
    let at = count < needed ? count++ : needed - 1;
    for (; at > 0 && logits[at - 1]! < logit; at--) {
      ids[at] = ids[at - 1]!;
      logits[at] = logits[at - 1]!;
    }
    ids[at] = id;
    logits[at] = logit;
  }

  function fillUp(mask: Uint32Array, isIn: (id: number) => boolean): void {
    const last = 32 * mask.length;
    for (let id = 0; count < needed && id < last; id++) {
      if ((mask[id >> 5]! >> (id & 31) & 1) === 1 && isIn(id)) continue;
      ids[count] = id;
      logits[count++] = -Infinity;
    }
  }

  return {
    ids,
    logits,
    get count() {
      return count;
    },
    pick(all, mask) {
      count = 0;
      let worst = -Infinity;
      for (let word = 0; word < mask.length; word++) {
        for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) {
          const id = 32 * word + 31 - Math.clz32(bits & -bits);
          const logit = all[id]!;
          if (logit <= worst) continue;
          if (logit !== logit) return void (count = 0);
          insert(id, logit);
          if (count === needed) worst = logits[needed - 1]!;
        }
      }
      if (count > 0) fillUp(mask, (id) => all[id]! > -Infinity);
    },
    filter(best, { isAllowed, mask }) {
      count = 0;
      for (let i = 0; i < best.count && count < needed; i++) {
        if (!isAllowed(best.ids[i]!)) continue;
        ids[count] = best.ids[i]!;
        logits[count++] = best.logits[i]!;
      }
      const found = count;
      if (mask && found > 0 && found < needed && found === bitsOf(mask)) {
        fillUp(mask, () => true);
      }
    },
  };
}

function bitsOf(mask: Uint32Array): number {
  let count = 0;
  for (let word = 0; word < mask.length; word++) {
    for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) count++;
  }
  return count;
}
