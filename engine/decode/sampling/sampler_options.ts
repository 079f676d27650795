// The options object of a sampler, as people write it. What the options mean together (defaults, order,
// which of them exclude each other) is in options.ts.

import type { ChainEntry, NamedEntry } from "./chain.ts";
import type { SequenceBreakers } from "./step.ts";

/**
 * How the next token is chosen. Every field may be absent.
 * @category Sampling
 */
export interface SamplerOptions {
  /** Seed of the random numbers, a safe integer; absent or -1: taken from the system, see {@linkcode Sampler.seed}. */
  readonly seed?: number;
  /** Divides the logits; 0 is greedy. */
  readonly temperature?: number;
  /** Dynamic temperature: half the width of its range. */
  readonly dynatempRange?: number;
  /** Dynamic temperature: exponent of the relative entropy. */
  readonly dynatempExponent?: number;
  /** Keeps the k best tokens; 0 is off. */
  readonly topK?: number;
  /** Keeps the smallest set of best tokens with at least this probability; 1 is off. */
  readonly topP?: number;
  /** Keeps tokens of at least this share of the best one's probability; 0 is off. */
  readonly minP?: number;
  /** Locally typical sampling: probability to keep; 1 is off. */
  readonly typicalP?: number;
  /** Tail-free sampling: curvature to keep; 1 is off. */
  readonly tfsZ?: number;
  /** Keeps logits within so many standard deviations of the best; 0 or less is off. */
  readonly topNSigma?: number;
  /** Chance of excluding top choices; 0 is off. */
  readonly xtcProbability?: number;
  /** Probability from which a token is a top choice. */
  readonly xtcThreshold?: number;
  /** Divides positive and multiplies negative logits of tokens in the window; 1 is off. */
  readonly repeatPenalty?: number;
  /** Window of the repetition penalty in tokens, prompt included; 0 is off, -1 everything. */
  readonly penaltyLastN?: number;
  /** Taken from a logit for each time its token was generated. */
  readonly frequencyPenalty?: number;
  /** Taken from a logit if its token was generated. */
  readonly presencePenalty?: number;
  /** Added to logits, by token id; -Infinity or false excludes. */
  readonly logitBias?:
    | ReadonlyMap<number, number>
    | Readonly<Record<string, number | false>>
    | readonly (readonly [number, number | false])[];
  /** Tokens that are never taken. */
  readonly suppressTokens?: readonly number[];
  /** DRY: scale of the penalty; 0 is off. */
  readonly dryMultiplier?: number;
  /** DRY: base of the penalty. */
  readonly dryBase?: number;
  /** DRY: repetitions up to this length are free. */
  readonly dryAllowedLength?: number;
  /** DRY: window in tokens; 0 is off, -1 everything. */
  readonly dryPenaltyLastN?: number;
  /** DRY: texts or token ids across which no repetition reaches. */
  readonly drySequenceBreakers?: SequenceBreakers;
  /** 0 is off; 1 and 2 are the two versions. */
  readonly mirostat?: number;
  /** Mirostat: target surprise in bits. */
  readonly mirostatTau?: number;
  /** Mirostat: learning rate. */
  readonly mirostatEta?: number;
  /** Own order of steps, functions of one's own among them ({@linkcode SamplingFunction}). */
  readonly samplers?: readonly ChainEntry[];
  /** One strategy by name or record: greedy, top_p, top_k, fsd, random_fsd, typical, mirostat, …. */
  readonly strategy?: NamedEntry;
  /** Only so many best tokens are looked at; 0 (default) is all. Faster, and a different distribution. */
  readonly poolSize?: number;
  /** How many times the end of the text is replaced by the best other token. */
  readonly eosBypassingMax?: number;
}
