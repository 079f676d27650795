// Contrastive search (Su et al. 2022, A Contrastive Framework for Neural Text Generation): of the k most probable tokens
// the one is taken that is probable and makes a state unlike all before it, which keeps small models from repeating
// themselves without any draw. Each candidate is computed in a session of its own, all of them in the same steps; a
// token costs about what 2 k rows do. States are those behind the model's last norm.

import { topAlternatives } from "../decode/sampling/log_softmax.ts";
import { coreOf } from "../decode/generate.ts";
import type { Model } from "../decode/model.ts";
import type { TimelineSession } from "../decode/timeline_session.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";

/**
 * Options of {@linkcode contrastiveSearch}.
 * @category Encoders
 */
export interface ContrastiveOptions {
  /** Candidates, for each of which the model needs a session; default 4. */
  readonly topK?: number;
  /** How much likeness counts against probability, 0 to 1; default 0.6. */
  readonly penaltyAlpha?: number;
  /** Most tokens to take; default 256. */
  readonly maxTokens?: number;
  /** Tokens that end the text and belong to it. Default: the model's own. */
  readonly endIds?: readonly number[];
  /** Whether texts of control tokens in the prompt become those tokens. Default false. */
  readonly special?: boolean;
  /** Stops before the next token; the promise rejects with its reason. */
  readonly signal?: AbortSignal;
}

const KEYS: OptionKeys<ContrastiveOptions> = {
  topK: true,
  penaltyAlpha: true,
  maxTokens: true,
  endIds: true,
  special: true,
  signal: true,
};

/**
 * Continues a text by contrastive search.
 *
 * @param model Loaded with `embeddings: true`, since states are compared.
 * @param prompt Text, or token ids, to which nothing is added.
 * @returns Ids of the tokens behind the prompt, an end token included.
 * @throws {RangeError | TypeError} On a bad option, an empty prompt, or a model that gives no states.
 * @throws {ResourceError} If fewer sessions are free than candidates are wanted, or the context is full.
 *
 * @example
 * ```ts
 * import { contrastiveSearch, load } from "@troodon/troodon";
 *
 * const path = "model.gguf";
 * using model = await load(path, { embeddings: true });
 * const ids = await contrastiveSearch(model, "Once", { topK: 4, penaltyAlpha: 0.6, maxTokens: 8 });
 * console.log(model.tokenizer.decode(ids));
 * ```
 * @category Encoders
 */
export async function contrastiveSearch(
  model: Model,
  prompt: string | readonly number[],
  options: ContrastiveOptions = {},
): Promise<number[]> {
  checkOptionKeys(options, { of: "contrastiveSearch()", known: KEYS });
  const { topK = 4, penaltyAlpha = 0.6, maxTokens = 256, special = false, signal } = options;
  const { runtime } = coreOf(model);
  checkNumber("topK", topK, { most: runtime.vocabulary, isWhole: true });
  checkNumber("penaltyAlpha", penaltyAlpha, { least: 0, most: 1 });
  checkNumber("maxTokens", maxTokens, { least: 0, most: 2 ** 31, isWhole: true });
  if (runtime.hidden === 0 || runtime.source) {
    throw new TypeError(
      "Cannot search contrastively: it takes a model that continues texts, loaded with embeddings: true",
    );
  }
  const text = typeof prompt === "string"
    ? runtime.tokenizer().encode(prompt, { special })
    : [...prompt];
  if (text.length === 0) throw new RangeError("Cannot continue an empty prompt");
  const ends = options.endIds ? new Set(options.endIds) : runtime.tokenizer().endOfGenerationIds;
  signal?.throwIfAborted();
  using stack = new DisposableStack();
  const sessions = Array.from(
    { length: topK },
    () => stack.use(model.createSession() as TimelineSession),
  );
  const states: Float32Array[] = [];
  let lead = sessions[0]!;
  const onHidden = (state: Float32Array) => void states.push(normalized(state));
  await lead.evalNow(text.slice(0, -1), { signal, onHidden });
  await lead.evalNow(text.slice(-1), { signal });
  const ids: number[] = [];
  while (ids.length < maxTokens) {
    states.push(normalized(lead.embedding()));
    const candidates = topAlternatives(lead.logits(), topK);
    await Promise.all(
      candidates.map(({ id }, i) => sessions[i]!.syncNow([...text, id], { signal })),
    );
    let best = 0, bestScore = -Infinity;
    for (const [i, { logProbability }] of candidates.entries()) {
      const likeness = mostAlike(normalized(sessions[i]!.embedding()), states);
      const score = (1 - penaltyAlpha) * Math.exp(logProbability) - penaltyAlpha * likeness;
      if (score > bestScore) [best, bestScore] = [i, score];
    }
    const { id } = candidates[best]!;
    lead = sessions[best]!;
    text.push(id);
    ids.push(id);
    if (ends.has(id)) break;
  }
  return ids;
}

function normalized(state: Float32Array): Float32Array {
  let sum = 0;
  for (const value of state) sum += value * value;
  const factor = 1 / Math.sqrt(sum || 1);
  return state.map((value) => value * factor);
}

/** The largest cosine between a state and others, all of length 1. */
function mostAlike(state: Float32Array, others: readonly Float32Array[]): number {
  let most = -1;
  for (const other of others) {
    let product = 0;
    for (let i = 0; i < state.length; i++) product += state[i]! * other[i]!;
    most = Math.max(most, product);
  }
  return most;
}

function checkNumber(
  name: string,
  value: number,
  { least = 1, most, isWhole = false }: {
    readonly least?: number;
    readonly most: number;
    readonly isWhole?: boolean;
  },
): void {
  if (value >= least && value <= most && (!isWhole || Number.isInteger(value))) return;
  const kind = isWhole ? "an integer" : "a number";
  throw new RangeError(`Cannot use ${name} ${value}: it is ${kind} from ${least} to ${most}`);
}
