// The set that a sampling chain works on: token ids with their logits, narrowed and reshaped step by
// step. Probabilities are never stored. They follow from the logits and one number, the mass
// Σ exp(logit - max), which is computed when a step first asks and kept until logits or set change;
// most filters are thresholds on logits and need no exponential at all.
// The buffers are as long as the vocabulary, made once, and refilled for every token.

import { expNegative } from "./exp.ts";
import { type Ordered, sortTop } from "./order.ts";

/** Candidates of one draw; the buffers belong to the sampler. */
export interface Candidates extends Ordered {
  /** Whether `ids[i] === i` still holds for all, so that an id is its own place. */
  dense: boolean;
  /** Greatest logit, if known; NaN otherwise. */
  max: number;
  /** Σ exp(logit - max), if known; NaN otherwise. */
  mass: number;
  /** 0, 1, 2 …: copied over `ids` at the start of a draw. */
  readonly identity: Int32Array;
}

/** Buffers for a vocabulary of `vocabSize` tokens. */
export function createCandidates(vocabSize: number): Candidates {
  return {
    ids: new Int32Array(vocabSize),
    logits: new Float32Array(vocabSize),
    keys: new BigUint64Array(vocabSize),
    identity: Int32Array.from({ length: vocabSize }, (_, id) => id),
    size: 0,
    sorted: 0,
    dense: true,
    max: NaN,
    mass: NaN,
  };
}

/**
 * Makes every token of the vocabulary a candidate. Logits of +Infinity share all probability: they become 0, all
 * others -Infinity.
 *
 * @throws {RangeError} If a logit is NaN, or all are -Infinity.
 */
export function fillCandidates(candidates: Candidates, logits: Float32Array): void {
  const best = bestToken(logits);
  candidates.ids.set(candidates.identity);
  candidates.logits.set(logits);
  candidates.size = logits.length;
  candidates.sorted = 0;
  candidates.dense = true;
  candidates.max = logits[best]!;
  candidates.mass = NaN;
  if (candidates.max === Infinity) takeInfinite(candidates);
}

/** What is infinitely likelier than the rest has all of the probability, in equal parts: 0 and -Infinity. */
function takeInfinite(candidates: Candidates): void {
  const { logits, size } = candidates;
  for (let i = 0; i < size; i++) logits[i] = logits[i] === Infinity ? 0 : -Infinity;
  candidates.sorted = 0;
  candidates.max = 0;
  candidates.mass = NaN;
}

/** Makes some tokens the candidates, which are in order: best first, equals by lower id. */
export function setBest(
  candidates: Candidates,
  { ids, logits, count }: {
    readonly ids: ArrayLike<number>;
    readonly logits: ArrayLike<number>;
    readonly count: number;
  },
): void {
  for (let i = 0; i < count; i++) {
    candidates.ids[i] = ids[i]!;
    candidates.logits[i] = logits[i]!;
  }
  candidates.size = count;
  candidates.sorted = count;
  candidates.dense = false;
  candidates.max = NaN;
  candidates.mass = NaN;
}

/**
 * The id of the greatest logit, the lowest of equals, in one pass.
 *
 * @throws {RangeError} If a logit is NaN, or all are -Infinity.
 */
export function bestToken(logits: Float32Array): number {
  let best = 0;
  let max = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (logit <= max) continue;
    if (logit !== logit) throw badLogit(id, logit);
    max = logit;
    best = id;
  }
  if (max === -Infinity) throw noCandidate();
  return best;
}

function badLogit(id: number, logit: number): RangeError {
  return new RangeError(`Cannot sample: the logit of token ${id} is ${logit}`);
}

function noCandidate(): RangeError {
  return new RangeError("Cannot sample: every token is excluded (all logits are -Infinity)");
}

/** To be called after logits were changed in a way that may change their order. */
export function logitsChanged(candidates: Candidates): void {
  candidates.sorted = 0;
  candidates.max = NaN;
  candidates.mass = NaN;
}

/**
 * Greatest logit, finite: see {@linkcode takeInfinite}.
 *
 * @throws {RangeError} If it is NaN or -Infinity.
 */
export function maxLogit(candidates: Candidates): number {
  if (Number.isNaN(candidates.max)) {
    const { logits, size, sorted } = candidates;
    let max = logits[0]!;
    if (sorted === 0) { for (let i = 1; i < size; i++) if (logits[i]! > max) max = logits[i]!; }
    if (max === -Infinity) throw noCandidate();
    if (Number.isNaN(max)) throw badLogit(candidates.ids[logits.indexOf(max)]!, max);
    candidates.max = max;
    if (max === Infinity) takeInfinite(candidates);
  }
  return candidates.max;
}

/** Σ exp(logit - max), at least 1. */
export function totalMass(candidates: Candidates): number {
  if (Number.isNaN(candidates.mass)) {
    const max = maxLogit(candidates);
    const { logits, size } = candidates;
    let mass = 0;
    for (let i = 0; i < size; i++) mass += expNegative(logits[i]! - max);
    candidates.mass = mass;
  }
  return candidates.mass;
}

/** Probability of the candidate at `index` among the candidates. */
export function probabilityAt(candidates: Candidates, index: number): number {
  const mass = totalMass(candidates);
  return expNegative(candidates.logits[index]! - candidates.max) / mass;
}

/**
 * How far a logit of exactly this probability is from the best one; negative. Distances are compared, not logits:
 * beside a logit of 1e30 a distance of 1 is nothing.
 */
export function distanceOfProbability(candidates: Candidates, probability: number): number {
  return Math.log(probability * totalMass(candidates));
}

/** Shannon entropy of the candidates in nats. */
export function entropy(candidates: Candidates): number {
  const mass = totalMass(candidates);
  const { logits, size, max } = candidates;
  let sum = 0;
  for (let i = 0; i < size; i++) {
    const logit = logits[i]! - max;
    if (logit !== -Infinity) sum += expNegative(logit) * logit;
  }
  return Math.log(mass) - sum / mass;
}

/** Keeps the best `count` (at least one), in order. */
export function keepBest(candidates: Candidates, count: number): void {
  const kept = Math.max(1, count);
  if (kept >= candidates.size) return;
  candidates.dense = false;
  sortTop(candidates, kept);
  candidates.size = kept;
  candidates.sorted = kept;
  candidates.max = NaN; // to be read, and checked, when asked for
  candidates.mass = NaN;
}

/**
 * Keeps the candidates whose logit is no further than `distance` from the best one, and in any case that.
 *
 * @param minimum At least so many of the best are kept.
 */
export function keepWithin(
  candidates: Candidates,
  { distance, minimum = 1 }: { readonly distance: number; readonly minimum?: number | undefined },
): void {
  const { ids, logits, size } = candidates;
  const max = maxLogit(candidates), limit = Math.min(distance, 0);
  if (minimum > 1) {
    orderTop(candidates, minimum);
    if (logits[Math.min(minimum, size) - 1]! - max < limit) return keepBest(candidates, minimum);
  }
  let kept = 0;
  let sorted = 0;
  for (let i = 0; i < size; i++) {
    if (!(logits[i]! - max >= limit)) continue;
    if (i < candidates.sorted) sorted++;
    ids[kept] = ids[i]!;
    logits[kept++] = logits[i]!;
  }
  if (kept === size) return;
  candidates.dense = false;
  candidates.size = kept;
  candidates.sorted = sorted;
  candidates.mass = NaN;
}

/** Keeps the candidate at `index` alone. */
export function keepOnly(candidates: Candidates, index: number): void {
  candidates.ids[0] = candidates.ids[index]!;
  candidates.logits[0] = candidates.logits[index]!;
  candidates.dense = false;
  candidates.size = 1;
  candidates.sorted = 1;
  candidates.max = NaN;
  candidates.mass = NaN;
}

/** Puts at least the best `count` in order. */
export function orderTop(candidates: Candidates, count: number): void {
  if (candidates.sorted >= Math.min(count, candidates.size)) return;
  candidates.dense = false;
  sortTop(candidates, count);
}

/**
 * The least number of best candidates that together have at least `share` of the probability. The
 * ordered prefix grows as the sum does, so a vocabulary is sorted whole only if the share lies in its
 * tail. Candidates of probability zero are never counted.
 */
export function countReaching(candidates: Candidates, share: number): number {
  const target = share * totalMass(candidates);
  const { logits, size, max } = candidates;
  let sum = 0;
  let count = 0;
  for (let prefix = 64; count < size; prefix *= 8) {
    orderTop(candidates, prefix);
    for (const end = Math.min(prefix, size); count < end; count++) {
      const weight = expNegative(logits[count]! - max);
      if (weight === 0) return count; // all that follow are zero too: rounding kept the sum short
      sum += weight;
      if (sum >= target) return count + 1;
    }
  }
  return size;
}
