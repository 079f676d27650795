// What a running generation looks like to its user, and how it is driven. Steps are made by an async
// generator that advances only when somebody wants the next chunk, so nothing runs ahead of its reader and
// breaking out of a loop ends the work. Chunks are kept, so that text(), result and any number of readers
// see the same text whoever drove it.

import type { ModelMemory } from "./memory.ts";
import type { SpeculationStats } from "./speculate/speculation.ts";
import type { TokenAlternative } from "./sampling/log_softmax.ts";

/**
 * One token that was taken.
 * @category Text
 */
export interface TokenInfo {
  /** Token id. */
  readonly id: number;
  /**
   * Natural logarithm of its probability by the model, before any sampling step; with `logprobs` only.
   */
  readonly logProbability?: number;
  /** The most probable tokens at its place, best first; with `logprobs` above 0 only. */
  readonly alternatives?: readonly TokenAlternative[];
}

/**
 * Text that may be shown now, and the tokens taken since the last chunk.
 * @category Text
 */
export interface Chunk {
  /** Whole characters; may be empty while a character or a stop text is in the balance. */
  readonly text: string;
  /** Tokens taken since the last chunk. */
  readonly tokens: readonly TokenInfo[];
}

/**
 * Why a generation ended: the model's end of text or turn, a stop text or the end of its grammar,
 * `maxTokens`, the AbortSignal or its user's leaving, a context that is full and is to be left so, or, in a chat, calls of tools that are
 * the caller's.
 * @category Text
 */
export type FinishReason = "eos" | "stop" | "length" | "abort" | "context" | "tool_calls";

/**
 * Figures of a generation.
 * @category Text
 */
export interface GenerationStats {
  /** Time that loading the model took. */
  readonly loadMs: number;
  /** From the first wish for text to the first token. */
  readonly firstTokenMs: number;
  /** Tokens of the prompt, those that an encoder reads among them. */
  readonly promptTokens: number;
  /** Tokens of the prompt that were computed; those found in the session are left out. */
  readonly prefillTokens: number;
  /** Prompt tokens computed per second. */
  readonly prefillPerSecond: number;
  /** Tokens that were taken. */
  readonly decodeTokens: number;
  /** Steps after the first token, per second. */
  readonly decodePerSecond: number;
  /** Memory of the model. */
  readonly memory: ModelMemory;
  /** What came of proposed tokens; with `draft` only. */
  readonly speculation?: SpeculationStats;
}

/**
 * A whole answer.
 * @category Text
 */
export interface GenerationResult {
  /** The text, without what a stop text cut off. */
  readonly text: string;
  /** Ids taken, an end token included. */
  readonly ids: readonly number[];
  /** Why it ended. */
  readonly finishReason: FinishReason;
  /** Seed of the random numbers, for doing it again. */
  readonly seed: number;
  /** Times and speeds. */
  readonly stats: GenerationStats;
}

/**
 * What a schema adds to a whole answer.
 * @category Text
 */
export interface Structured<Value> {
  /**
   * With a schema, the value that the answer writes as JSON; without one undefined. Reading it throws a ResourceError
   * where the answer was cut before it was whole, and a FormatError where the schema's library refuses it.
   */
  readonly value: Value;
}

/**
 * A running generation: iterate over it, or await `text()` or `result`.
 * @category Text
 */
export interface Generation<C extends Chunk = Chunk, R extends GenerationResult = GenerationResult>
  extends AsyncIterable<C>, Disposable, AsyncDisposable {
  /** The whole text. Rejects with what went wrong. */
  text(): Promise<string>;
  /** Text, ids, reason and figures at the end. Reading it drives the generation to its end. */
  readonly result: Promise<R>;
}

/**
 * A running generation whose answer a schema may bind.
 * @category Text
 */
export type StructuredGeneration<Value = unknown> = Generation<
  Chunk,
  GenerationResult & Structured<Value>
>;

/** What is known at the end of a generation besides what it gave; with a text where that is not all that was shown. */
export type GenerationFacts<R extends GenerationResult = GenerationResult> =
  & Omit<R, "text" | "ids" | "value">
  & {
    readonly text?: string;
    /** Whether the answer is a whole one of its grammar. */
    readonly isWhole: boolean;
    /** Gives the value of the answer. */
    readonly getValue?: (() => unknown) | undefined;
  };

/** Steps of a generation. */
export type GenerationSteps<
  C extends Chunk = Chunk,
  R extends GenerationResult = GenerationResult,
> = AsyncGenerator<C, GenerationFacts<R>, void>;

/**
 * Makes a generation of its steps.
 *
 * @param start Gets a signal that fires when the user leaves; called at the first wish.
 */
export function createGeneration<C extends Chunk, R extends GenerationResult>(
  start: (leave: AbortSignal) => GenerationSteps<C, R>,
): Generation<C, R> {
  const chunks: C[] = [];
  const leave = new AbortController();
  let steps: GenerationSteps<C, R> | undefined;
  let pending: Promise<void> | undefined;
  let outcome: { readonly value: R } | { readonly error: unknown } | undefined;
  let whole: Promise<R> | undefined;

  async function step(): Promise<void> {
    try {
      steps ??= start(leave.signal);
      const next = await steps.next();
      if (!next.done) {
        chunks.push(next.value);
        return;
      }
      const ids = chunks.flatMap(({ tokens }) => tokens.map(({ id }) => id));
      const text = chunks.map((chunk) => chunk.text).join("");
      const { isWhole: _, getValue = () => undefined, ...facts } = next.value;
      const value = { text, ids, ...facts };
      // Not among what is copied or printed, since reading it may throw.
      Object.defineProperty(value, "value", { get: getValue });
      outcome = { value: value as unknown as R };
    } catch (error) {
      outcome = { error };
    } finally {
      pending = undefined;
    }
  }

  // Readers share one step at a time.
  function advance(): Promise<void> {
    return pending ??= step();
  }

  async function drain(): Promise<R> {
    while (!outcome) await advance();
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  async function* read(): AsyncGenerator<C, void, void> {
    try {
      for (let index = 0;; index++) {
        while (index >= chunks.length && !outcome) await advance();
        if (index < chunks.length) yield chunks[index]!;
        else break;
      }
      if (outcome && "error" in outcome) throw outcome.error;
    } finally {
      // Left early: nobody else may be waiting for the rest.
      if (!outcome && !whole) await stop();
    }
  }

  async function stop(): Promise<void> {
    leave.abort();
    // The last step sees the signal and gives back the session.
    while (steps && !outcome) await advance();
  }

  return {
    [Symbol.asyncIterator]: read,
    async text() {
      return (await (whole ??= drain())).text;
    },
    get result() {
      return whole ??= drain();
    },
    [Symbol.dispose]() {
      void stop();
    },
    [Symbol.asyncDispose]: stop,
  };
}
