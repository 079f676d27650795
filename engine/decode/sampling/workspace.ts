// What the sampler of one sequence keeps between tokens: its state and the buffers that steps write in.
// Buffers are made when first needed and kept, so that a steady decode loop allocates none.

import type { Candidates } from "./candidates.ts";
import type { TokenHistory } from "./history.ts";
import { createRandom, nextDouble, type RandomState } from "./random.ts";
import type { BoundStep, SequenceBreakers, StepContext } from "./step.ts";
import { createTokenTable, type TokenTable } from "./token_table.ts";

/**
 * What a sampler may need to know of the model; a tokenizer has it all.
 * @category Sampling
 */
export interface SamplerModel {
  /** Number of tokens; logits beyond it (padding) are never taken. Absent: as many as there are logits. */
  readonly vocabSize?: number;
  /** Ids at which generation ends; needed by `eosBypassingMax`. */
  readonly endOfGenerationIds?: ReadonlySet<number>;
  /** UTF-8 bytes of a token; needed by sequence breakers that are texts. */
  tokenBytes?(id: number): Uint8Array;
}

/** State and buffers of one sampler. */
export interface Workspace {
  /** Bound steps in order. */
  readonly chain: readonly BoundStep[];
  /** What is known of the model. */
  readonly model: SamplerModel;
  /** State of the random numbers. */
  readonly random: RandomState;
  /** Which tokens were found to be breakers, by list of breakers. */
  readonly breakers: Map<SequenceBreakers, Map<number, boolean>>;
  /** Candidates of the last draw; absent before the first. */
  candidates: Candidates | undefined;
  /** `[vocab]`: probabilities handed out. */
  probabilities: Float64Array | undefined;
  /** `[vocab]`: logits without the ends of text. */
  masked: Float32Array | undefined;
  /** Scratch of steps: numbers by token id. */
  table: TokenTable | undefined;
  /** Scratch of steps. */
  integers: Int32Array;
  /** Scratch of steps. */
  doubles: Float64Array;
  /** Surprise limit of mirostat in bits; NaN before its first token. */
  mu: number;
  /** How many ends of text were replaced. */
  eosBypassed: number;
}

/** An empty workspace with its random numbers at the start of a seed's sequence. */
export function createWorkspace(
  chain: readonly BoundStep[],
  { model, seed }: { readonly model: SamplerModel; readonly seed: number },
): Workspace {
  return {
    chain,
    model,
    random: createRandom(seed),
    breakers: new Map(),
    candidates: undefined,
    probabilities: undefined,
    masked: undefined,
    table: undefined,
    integers: new Int32Array(0),
    doubles: new Float64Array(0),
    mu: NaN,
    eosBypassed: 0,
  };
}

/** What a step sees of the workspace, for one token. */
export function contextOf(work: Workspace, history: TokenHistory): StepContext {
  return {
    history,
    mu: work.mu,
    coin: () => nextDouble(work.random),
    table: () => work.table ??= createTokenTable(work.candidates!.ids.length),
    integers(length) {
      if (work.integers.length < length) work.integers = new Int32Array(2 * length);
      return work.integers;
    },
    doubles(length) {
      if (work.doubles.length < length) work.doubles = new Float64Array(2 * length);
      return work.doubles;
    },
    isBreaker: (id, breakers) => isBreaker(work, id, breakers),
  };
}

function isBreaker(work: Workspace, id: number, breakers: SequenceBreakers): boolean {
  const known = work.breakers.get(breakers) ?? new Map<number, boolean>();
  work.breakers.set(breakers, known);
  let answer = known.get(id);
  if (answer === undefined) {
    const bytes = work.model.tokenBytes?.(id);
    const text = bytes ? new TextDecoder().decode(bytes) : "";
    answer = breakers.some((b) => typeof b === "number" ? b === id : text.includes(b));
    known.set(id, answer);
  }
  return answer;
}
