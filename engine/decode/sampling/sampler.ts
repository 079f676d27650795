// The sampler of one sequence: a chain of steps, its random numbers and its state, over buffers that are
// made once for a vocabulary. It never looks at a model: logits and history go in, a token comes out.
// `sample` is `probabilities` + a draw + `accept`; a speculative loop uses the parts, since it needs the
// distribution that a token would be drawn from.
// All randomness comes from the seed: the same seed, logits and history give the same tokens anywhere.

import {
  bestToken,
  type Candidates,
  countReaching,
  createCandidates,
  fillCandidates,
  keepBest,
  probabilityAt,
  setBest,
} from "./candidates.ts";
import { EMPTY_HISTORY, type TokenHistory } from "./history.ts";
import { type ResolvedOptions, resolveOptions } from "./options.ts";
import { nextDouble, type RandomState } from "./random.ts";
import type { SamplerOptions } from "./sampler_options.ts";
import type { BoundStep } from "./step.ts";
import { contextOf, createWorkspace, type SamplerModel, type Workspace } from "./workspace.ts";

export type { SamplerModel } from "./workspace.ts";

/**
 * What a sampler remembers between tokens; plain data.
 * @category Sampling
 */
export interface SamplerState {
  /** State of the random numbers. */
  readonly random: Readonly<RandomState>;
  /** Surprise limit of mirostat in bits, or null before its first token. */
  readonly mu: number | null;
  /** How many ends of text were replaced. */
  readonly eosBypassed: number;
}

/**
 * A distribution over tokens; the arrays are the sampler's, valid until its next call.
 * @category Sampling
 */
export interface TokenDistribution {
  /** Token ids, most probable first. */
  readonly ids: Int32Array;
  /** Probabilities, parallel to `ids`, summing to 1. */
  readonly probabilities: Float64Array;
}

/**
 * Chooses tokens for one sequence.
 * @category Sampling
 */
export interface Sampler {
  /** The seed in use, also when it was not given. */
  readonly seed: number;
  /** The chain in use: names and parameters of all steps that are on. */
  readonly chain: readonly { readonly name: string; readonly parameters: object }[];
  /** Whether it takes the greatest logit as it is: no history, no chance. */
  readonly isGreedy: boolean;
  /** So many of the best logits settle what it takes: see {@linkcode Sampler.sampleBest}. Infinity: all. */
  readonly bestNeeded: number;
  /**
   * Takes a token.
   *
   * @param logits `[vocab]`, not changed.
   * @throws {RangeError} If a logit is NaN, or no token is left.
   */
  sample(logits: Float32Array, history: TokenHistory): number;
  /**
   * Takes the token that `sample` would take, from the best logits alone.
   *
   * @param best Best first, equal logits by lower id; at least `bestNeeded` of them, unless the vocabulary has fewer.
   * @returns Undefined, with nothing changed, where `sample` must decide: too few are given, or one of them is NaN,
   * +Infinity or no token of the model, or the best is -Infinity.
   */
  sampleBest(
    best: {
      readonly ids: ArrayLike<number>;
      readonly logits: ArrayLike<number>;
      readonly count: number;
    },
    history: TokenHistory,
  ): number | undefined;
  /**
   * The distribution that `sample` would draw from. Random steps of the chain (XTC, random FSD) take
   * their random numbers here; the draw itself does not happen. Call {@linkcode Sampler.accept} with
   * the token that was then taken.
   *
   * @throws {RangeError} As `sample`.
   */
  probabilities(logits: Float32Array, history: TokenHistory): TokenDistribution;
  /** The same in no order, and with tokens of no probability: what takes no sorting of a vocabulary. */
  distribution(logits: Float32Array, history: TokenHistory): TokenDistribution;
  /**
   * Tells which token of the last distribution was taken (mirostat learns from it).
   *
   * @throws {RangeError} If the distribution did not have it.
   */
  accept(token: number): void;
  /** Next random number in [0, 1) of the sampler's sequence. */
  random(): number;
  /** State to come back to. */
  save(): SamplerState;
  /** Goes back to a saved state. */
  restore(state: SamplerState): void;
}

/**
 * Makes a sampler.
 *
 * @example
 * ```ts
 * const sampler = createSampler({ seed: 1, temperature: 0.7, topP: 0.9 });
 * const history = { tokens: [3, 1], length: 2, promptLength: 2 };
 * const token = sampler.sample(Float32Array.of(0.5, 2, -1, 1.5), history);
 * ```
 *
 * @param options How to choose; see {@linkcode SamplerOptions} for the rules of defaults and order.
 * @param model The tokenizer, or what is known of it.
 * @throws {RangeError} For unknown options, steps and parameters, and values outside their limits.
 * @throws {TypeError} For values of the wrong kind.
 * @category Sampling
 */
export function createSampler(options: SamplerOptions = {}, model: SamplerModel = {}): Sampler {
  const resolved = resolvedFor(options, model);
  const { chain, eosBypassingMax } = resolved;
  checkModel(chain, eosBypassingMax, model);
  const seed = resolved.seed ?? seedFromSystem();
  const work = createWorkspace(chain, { model, seed });
  const isGreedy = startsGreedy(chain);
  if (model.vocabSize !== undefined && !isGreedy) {
    work.candidates = createCandidates(model.vocabSize);
  }
  const endIds = model.endOfGenerationIds;
  const bestNeeded = eosBypassingMax > 0 ? Infinity : isGreedy ? 1 : leadingTopK(chain);

  function sample(logits: Float32Array, history: TokenHistory): number {
    const scores = checkedLogits(work, logits);
    const token = isGreedy ? bestToken(scores) : sampleFrom(work, scores, history);
    if (work.eosBypassed >= eosBypassingMax || !endIds!.has(token)) return token;
    const other = bestOther(work, scores, history);
    if (other === undefined) return token;
    work.eosBypassed++;
    return other;
  }

  return {
    seed,
    chain: chain.map(({ name, parameters }) => ({ name, parameters: { ...parameters } })),
    isGreedy: isGreedy && eosBypassingMax === 0,
    bestNeeded,
    sample,
    sampleBest(best, history) {
      const count = Math.min(bestNeeded, best.count);
      if (count < Math.min(bestNeeded, model.vocabSize ?? Infinity)) return undefined;
      for (let i = 0; i < count; i++) {
        const logit = best.logits[i]!;
        const isUsable = logit < Infinity && (i > 0 || logit > -Infinity);
        if (!isUsable || best.ids[i]! >= (model.vocabSize ?? Infinity)) return undefined;
      }
      return isGreedy ? best.ids[0]! : sampleAmong(work, { best, count, history });
    },
    probabilities(logits, history) {
      const candidates = narrow(work, checkedLogits(work, logits), history);
      // Orders all that have any probability, and drops the rest.
      keepBest(candidates, countReaching(candidates, 1));
      return distributionOf(work, candidates);
    },
    distribution: (logits, history) =>
      distributionOf(work, narrow(work, checkedLogits(work, logits), history)),
    accept: (token) => acceptToken(work, token),
    random: () => nextDouble(work.random),
    save: () => ({
      random: { ...work.random },
      mu: Number.isNaN(work.mu) ? null : work.mu,
      eosBypassed: work.eosBypassed,
    }),
    restore(state) {
      Object.assign(work.random, state.random);
      work.mu = state.mu ?? NaN;
      work.eosBypassed = state.eosBypassed;
    },
  };
}

/** By model, options of numbers that were resolved last: those of answers behind each other are alike, as a rule. */
const lastOf = new WeakMap<
  SamplerModel,
  { readonly key: string; readonly resolved: ResolvedOptions }
>();

function resolvedFor(options: SamplerOptions, model: SamplerModel): ResolvedOptions {
  const values = Object.values(options);
  if (!values.every((value) => typeof value === "number")) return resolveOptions(options);
  const key = JSON.stringify(Object.keys(options)) + values;
  let last = lastOf.get(model);
  if (last?.key !== key) lastOf.set(model, last = { key, resolved: resolveOptions(options) });
  return last.resolved;
}

function checkModel(
  chain: readonly BoundStep[],
  eosBypassingMax: number,
  model: SamplerModel,
): void {
  if (eosBypassingMax > 0 && !model.endOfGenerationIds) {
    throw new RangeError("Cannot use eosBypassingMax without the end tokens: pass the tokenizer");
  }
  const step = chain.find(({ needsTexts }) => needsTexts);
  if (step && !model.tokenBytes) {
    throw new RangeError(
      `Cannot use texts as sequence breakers of ${step.name} without the tokens' texts: ` +
        "pass the tokenizer, or give token ids",
    );
  }
}

function seedFromSystem(): number {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high! & 0xffff) * 2 ** 32 + low!;
}

// Steps before the first greedy one change nothing if the best token stays the best.
function startsGreedy(chain: readonly BoundStep[]): boolean {
  const first = chain.findIndex((step) => step.isGreedy);
  return first >= 0 && chain.slice(0, first).every((step) => step.keepsBest);
}

/** How many tokens the first step leaves, if it is top-k. */
function leadingTopK([first]: readonly BoundStep[]): number {
  return first?.name === "top_k" ? first.parameters.k as number : Infinity;
}

function checkedLogits({ model }: Workspace, logits: Float32Array): Float32Array {
  const size = model.vocabSize ?? logits.length;
  if (logits.length === 0 || logits.length < size) {
    throw new RangeError(`Cannot sample: ${logits.length} logits for ${size} tokens`);
  }
  return logits.length === size ? logits : logits.subarray(0, size);
}

function candidatesOf(work: Workspace, length: number): Candidates {
  if (work.candidates?.ids.length !== length) {
    work.candidates = createCandidates(length);
    work.probabilities = undefined;
    work.table = undefined;
  }
  return work.candidates;
}

function narrow(work: Workspace, logits: Float32Array, history: TokenHistory): Candidates {
  const candidates = candidatesOf(work, logits.length);
  fillCandidates(candidates, logits);
  return applyChain(work, candidates, history);
}

function applyChain(work: Workspace, candidates: Candidates, history: TokenHistory): Candidates {
  const context = contextOf(work, history);
  for (const step of work.chain) step.apply(candidates, context);
  work.mu = context.mu;
  return candidates;
}

function sampleFrom(work: Workspace, logits: Float32Array, history: TokenHistory): number {
  const candidates = narrow(work, logits, history);
  const index = countReaching(candidates, nextDouble(work.random)) - 1;
  return take(work, candidates, index);
}

// What a leading top-k makes of all logits is what is given here.
function sampleAmong(
  work: Workspace,
  { best, count, history }: {
    readonly best: { readonly ids: ArrayLike<number>; readonly logits: ArrayLike<number> };
    readonly count: number;
    readonly history: TokenHistory;
  },
): number {
  const length = work.model.vocabSize ?? work.candidates?.ids.length ?? 0;
  const candidates = candidatesOf(work, Math.max(length, count));
  setBest(candidates, { ...best, count });
  applyChain(work, candidates, history);
  return take(work, candidates, countReaching(candidates, nextDouble(work.random)) - 1);
}

function take(work: Workspace, candidates: Candidates, index: number): number {
  const token = candidates.ids[index]!;
  const context = contextOf(work, EMPTY_HISTORY);
  for (const step of work.chain) step.accept(probabilityAt(candidates, index), context);
  work.mu = context.mu;
  return token;
}

function acceptToken(work: Workspace, token: number): void {
  const { candidates } = work;
  const index = candidates ? candidates.ids.subarray(0, candidates.size).indexOf(token) : -1;
  if (index < 0) {
    throw new RangeError(`Cannot accept token ${token}: the last distribution does not have it`);
  }
  take(work, candidates!, index);
}

// The best token that does not end the text, by the same chain; undefined if there is none.
function bestOther(
  work: Workspace,
  logits: Float32Array,
  history: TokenHistory,
): number | undefined {
  if (work.masked?.length !== logits.length) work.masked = new Float32Array(logits.length);
  const { masked } = work;
  masked.set(logits);
  for (const id of work.model.endOfGenerationIds!) masked[id] = -Infinity;
  if (masked.every((logit) => logit === -Infinity)) return undefined;
  const candidates = narrow(work, masked, history);
  keepBest(candidates, 1);
  return candidates.ids[0]!;
}

function distributionOf(work: Workspace, candidates: Candidates): TokenDistribution {
  const { ids, size } = candidates;
  const probabilities = work.probabilities ??= new Float64Array(ids.length);
  for (let i = 0; i < size; i++) probabilities[i] = probabilityAt(candidates, i);
  return { ids: ids.subarray(0, size), probabilities: probabilities.subarray(0, size) };
}
