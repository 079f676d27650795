// Beam search: keeps the best few beginnings and lengthens all of them at once. A finished text counts
//
//   Σ log p(token) / length^lengthPenalty          (length in new tokens, the end token included)
//
// so that a penalty above 0 favours long texts; with one beam it is the greedy choice. The rules are those of
// Hugging Face's generate (arXiv 1609.08144 §7 has the idea): each step looks at the best 2·beams continuations;
// those that end are put aside if they are among the first `beams`; the search ends when `beams` texts are finished
// and `earlyStopping` says that no beginning is worth going on with.
//
// This file knows nothing of models: a step is a function from beams to logits.

import { logSumExp } from "./sampling/log_softmax.ts";

/** A beam of the next step: which beam it continues, and with which token. */
export interface BeamStep {
  readonly parent: number;
  readonly token: number;
}

/** A text, best first in results. */
export interface Hypothesis {
  /** New tokens; the end token, if one was chosen, is the last. */
  readonly ids: readonly number[];
  /** See above; higher is better. */
  readonly score: number;
}

/**
 * When a search ends that has `beams` finished texts: at once (true); when no beginning would count more than the
 * worst of them if it ended as long as it is (false); when none could at any length up to `maxTokens` ("never",
 * which with a penalty above 0 divides by the greatest length).
 * @category Encoders
 */
export type EarlyStopping = boolean | "never";

/** What a search needs. */
export interface BeamOptions {
  readonly beams: number;
  readonly maxTokens: number;
  readonly lengthPenalty: number;
  /** Default false. */
  readonly earlyStopping?: EarlyStopping | undefined;
  readonly endIds: ReadonlySet<number>;
  /** Logits of the first step. */
  readonly first: Float32Array;
  /**
   * Lengthens the beams.
   *
   * @returns Logits of each new beam, in order; may be views that the next step overwrites.
   */
  step(beams: readonly BeamStep[]): Promise<readonly Float32Array[]>;
  readonly signal?: AbortSignal | undefined;
}

interface Beam {
  readonly ids: readonly number[];
  /** Σ log p. */
  readonly sum: number;
}

interface Continuation extends BeamStep {
  readonly sum: number;
}

/** The best `beams` texts. */
export async function searchBeams(options: BeamOptions): Promise<Hypothesis[]> {
  const { beams: width, maxTokens, lengthPenalty, endIds, step, signal } = options;
  const { earlyStopping = false } = options;
  const finished: Hypothesis[] = [];
  let beams: Beam[] = [{ ids: [], sum: 0 }];
  let logits: readonly Float32Array[] = [options.first];

  function finish(ids: readonly number[], sum: number): void {
    finished.push({ ids, score: sum / ids.length ** lengthPenalty });
    finished.sort((a, b) => b.score - a.score);
    finished.length = Math.min(finished.length, width);
  }

  function isDone(length: number): boolean {
    if (finished.length < width) return false;
    if (earlyStopping === true) return true;
    const longest = earlyStopping === "never" && lengthPenalty > 0 ? maxTokens : length;
    return finished.at(-1)!.score >= beams[0]!.sum / longest ** lengthPenalty;
  }

  for (let length = 1; length <= maxTokens; length++) {
    signal?.throwIfAborted();
    const next: Continuation[] = [];
    const candidates = best(beams, logits, 2 * width);
    for (const [rank, one] of candidates.entries()) {
      if (endIds.has(one.token)) {
        if (rank < width) finish([...beams[one.parent]!.ids, one.token], one.sum);
      } else if (next.length < width) next.push(one);
    }
    beams = next.map(({ parent, token, sum }) => ({ ids: [...beams[parent]!.ids, token], sum }));
    if (length === maxTokens) break;
    if (beams.length === 0 || isDone(length)) return finished;
    logits = await step(next);
  }
  for (const { ids, sum } of beams) finish(ids, sum);
  return finished;
}

/** The best continuations of all beams, best first. */
function best(
  beams: readonly Beam[],
  logits: readonly Float32Array[],
  count: number,
): Continuation[] {
  const kept: Continuation[] = [];
  for (const [parent, { sum }] of beams.entries()) {
    const scores = logits[parent]!;
    const shift = sum - logSumExp(scores);
    for (let token = 0; token < scores.length; token++) {
      const total = scores[token]! + shift;
      if (kept.length === count && total <= kept.at(-1)!.sum) continue;
      const at = kept.findIndex((one) => one.sum < total);
      kept.splice(at < 0 ? kept.length : at, 0, { parent, token, sum: total });
      if (kept.length > count) kept.pop();
    }
  }
  return kept;
}
