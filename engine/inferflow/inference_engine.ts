// Inferflow's inference engine [§IF-20]: a pool of queries that a caller takes forward step by step. `infer` computes one
// step for all of them, new prompts and running answers side by side, `commitInferenceResult` says which token each goes
// on with. Whoever wants answers alone uses generate(), which joins its steps by itself; this is for callers that decide on
// every token: servers with a scheduler of their own, and prompts that are forced token by token [§LF-14].
//
// What Inferflow has besides and this has not: a limit on tokens below which a step goes on admitting. Prompts are cut
// instead (decode/steps/step_shares.ts), so a step never has more rows than the model's `batch`.

import { adapterScales } from "../decode/adapter_scales.ts";
import { coreOf } from "../decode/generate.ts";
import { type GenerateOptions, resolveGenerateOptions } from "../decode/generate_options.ts";
import { LoadedModel } from "../decode/loaded_model.ts";
import type { Model } from "../decode/model.ts";
import { createSampler, type Sampler } from "../decode/sampling/sampler.ts";
import { type Asking, shareStep } from "../decode/steps/step_shares.ts";
import type { SamplerOptions } from "../decode/sampling/sampler_options.ts";
import type { TimelineSession } from "../decode/timeline_session.ts";
import { ResourceError } from "../errors.ts";
import { MOST_BEST } from "../run/step.ts";

/** Most queries of an engine, as Inferflow has it. */
const MOST_QUERIES = 16;

/**
 * What `addQuery` gives instead of an id.
 * @category Text
 */
export const QUERY_ERRORS = {
  /** As many queries as may be are there. */
  busy: 0,
  /** The prompt is empty, or has an id that is no token. */
  badPrompt: -1,
  /** The prompt does not fit the context. */
  tooLong: -2,
  /** An option is wrong. */
  badOption: -3,
} as const;

/**
 * Options of a query; what it goes on with, and when it stops besides, its caller decides.
 * @category Text
 */
export type QueryOptions =
  & SamplerOptions
  & Pick<GenerateOptions, "maxTokens" | "ignoreEos" | "adapters" | "special" | "priority">;

/**
 * A token of an answer.
 * @category Text
 */
export interface NextToken {
  /** Its id. */
  readonly token: number;
  /** Whether the answer ends with it. */
  readonly isEnd: boolean;
}

/**
 * What a step gave.
 * @category Text
 */
export interface InferenceResult {
  /** Rows that were computed, of each query that took part. */
  readonly rows: ReadonlyMap<number, number>;
  /** What the sampler of each query would take next; of a prompt that is not read to its end there is nothing yet. */
  readonly next: ReadonlyMap<number, NextToken>;
  /** Queries that failed, and why; they are removed. */
  readonly failed: ReadonlyMap<number, unknown>;
}

interface Query extends Asking {
  rows: number;
  readonly id: number;
  readonly session: TimelineSession;
  readonly sampler: Sampler;
  readonly maxTokens: number;
  readonly ignoreEos: boolean;
  /** What an encoder has still to read. */
  source: readonly number[] | undefined;
  /** The whole text; the last `rows` of it are to be computed. */
  readonly tokens: number[];
  readonly promptLength: number;
  /** Given back when the query goes. */
  turn: Disposable | undefined;
}

/**
 * A pool of queries on a model.
 *
 * @example
 * ```ts
 * import { InferenceEngine, load } from "@troodon/troodon";
 * import { assertEquals } from "@std/assert";
 *
 * using model = await load("model.gguf", { sessions: 4 });
 * using engine = new InferenceEngine(model);
 * const query = engine.addQuery("Once", { maxTokens: 3 });
 * const ids: number[] = [];
 * for (let isEnd = false; !isEnd;) {
 *   const { next } = await engine.infer();
 *   engine.commitInferenceResult(next);
 *   ids.push(next.get(query)!.token);
 *   isEnd = next.get(query)!.isEnd;
 * }
 * engine.removeQuery(query);
 * assertEquals(ids.length, 3);
 * ```
 * @category Text
 */
export class InferenceEngine implements Disposable {
  readonly #core: LoadedModel;
  readonly #most: number;
  readonly #queries = new Map<number, Query>();
  #lastId = 0;
  #isRunning = false;

  /**
   * Over a model, whose sessions its queries take.
   *
   * @param maxConcurrentQueries At most so many at once, up to 16. Default 10.
   * @throws {RangeError} On another number. @throws {TypeError} If that is no model of `load`.
   */
  constructor(
    model: Model,
    { maxConcurrentQueries = 10 }: { readonly maxConcurrentQueries?: number } = {},
  ) {
    const most = maxConcurrentQueries;
    if (!Number.isInteger(most) || most < 1 || most > MOST_QUERIES) {
      throw new RangeError(
        `Cannot use maxConcurrentQueries ${most}: it is an integer from 1 to ${MOST_QUERIES}`,
      );
    }
    const core = coreOf(model);
    if (!(core instanceof LoadedModel)) {
      throw new TypeError("Cannot infer on a session: give a model");
    }
    this.#core = core;
    this.#most = most;
  }

  /**
   * Adds a query; the next `infer` begins with it.
   *
   * @param prompt Text, or token ids. Of an encoder-decoder it is what the encoder reads.
   * @returns Its id, above 0; or one of {@linkcode QUERY_ERRORS}.
   */
  addQuery(prompt: string | readonly number[], options: QueryOptions = {}): number {
    if (this.#queries.size >= this.#most) return QUERY_ERRORS.busy;
    const { runtime } = this.#core;
    const given = typeof prompt === "string"
      ? runtime.tokenizer().encode(prompt, { special: options.special ?? false })
      : prompt;
    const isToken = (id: number) => Number.isInteger(id) && id >= 0 && id < runtime.vocabulary;
    if (given.length === 0 || !given.every(isToken)) return QUERY_ERRORS.badPrompt;
    const { source: memory } = runtime;
    if (given.length > (memory?.capacity ?? runtime.capacity)) return QUERY_ERRORS.tooLong;
    const made = this.#prepare(options);
    if (typeof made === "number") return made;
    const id = ++this.#lastId;
    const tokens = [...memory ? memory.start : given];
    this.#queries.set(id, {
      ...{ ...made, id, tokens, promptLength: tokens.length, source: memory && [...given] },
      ...{ rows: tokens.length, wanted: 1, waited: 0, taken: 0, turn: undefined },
    });
    return id;
  }

  /**
   * Computes one step for all queries that have tokens to compute: prompts, or what was committed. A query that is
   * saturated (its context or `maxTokens` is full) gets the end of the text without computing.
   *
   * @throws {TypeError} If a step is still running.
   */
  async infer(): Promise<InferenceResult> {
    if (this.#isRunning) throw new TypeError("Cannot infer: a step is still running");
    this.#isRunning = true;
    try {
      const { batch, logitRows } = this.#core.runtime;
      const asking = [...this.#queries.values()].filter(({ rows }) => rows > 0)
        .sort((a, b) => b.priority - a.priority);
      shareStep(asking, { rows: batch, wanted: logitRows });
      const rows = new Map<number, number>(), next = new Map<number, NextToken>();
      const failed = new Map<number, unknown>();
      await Promise.all(
        asking.filter(({ taken }) => taken > 0).map(async (query) => {
          try {
            rows.set(query.id, query.taken);
            const token = await this.#advance(query);
            if (token) next.set(query.id, token);
          } catch (error) {
            failed.set(query.id, error);
            this.removeQuery(query.id);
          }
        }),
      );
      return { rows, next, failed };
    } finally {
      this.#isRunning = false;
    }
  }

  /**
   * Says which token each query goes on with: what `infer` proposed, or another one, which forces the text. A query that
   * ends is removed.
   *
   * @throws {RangeError} For a query that is not there, or has tokens that are not computed yet.
   */
  commitInferenceResult(tokens: ReadonlyMap<number, NextToken>): void {
    for (const [id, { token, isEnd }] of tokens) {
      const query = this.#queries.get(id);
      if (!query || query.rows > 0) {
        throw new RangeError(`Cannot commit token ${token} of query ${id}: it waits for none`);
      }
      query.tokens.push(token);
      query.rows = 1;
      if (isEnd) this.removeQuery(id);
    }
  }

  /** Ends a query; whether it was there. */
  removeQuery(id: number): boolean {
    const query = this.#queries.get(id);
    if (!query) return false;
    this.#queries.delete(id);
    query.turn?.[Symbol.dispose]();
    query.session.dispose();
    return true;
  }

  /** Removes all queries. */
  [Symbol.dispose](): void {
    for (const id of [...this.#queries.keys()]) this.removeQuery(id);
  }

  /** What a query needs besides its prompt, or an error's number. */
  #prepare(options: QueryOptions) {
    const { runtime } = this.#core;
    try {
      const { maxTokens, ignoreEos, adapters, special, priority, ...chain } = options;
      const own = { maxTokens, ignoreEos, adapters, special, priority };
      const given = Object.entries(own).filter(([, value]) => value !== undefined);
      const resolved = resolveGenerateOptions(Object.fromEntries(given));
      const scales = adapterScales(runtime, adapters);
      const sampler = createSampler(chain, runtime.tokenizer());
      const session = this.#core.createSession() as TimelineSession;
      session.useScales(scales);
      const { maxTokens: most, ignoreEos: isEndless, priority: level } = resolved;
      return { session, sampler, maxTokens: most, ignoreEos: isEndless, priority: level };
    } catch (error) {
      if (error instanceof ResourceError) return QUERY_ERRORS.busy;
      if (error instanceof RangeError || error instanceof TypeError) return QUERY_ERRORS.badOption;
      throw error;
    }
  }

  /** Computes the rows that a query has in the step; the next token, if there is one. */
  async #advance(query: Query): Promise<NextToken | undefined> {
    const { session, sampler, tokens, promptLength, taken } = query;
    query.turn ??= await session.acquire();
    if (query.source) await session.encodeNow(query.source);
    query.source = undefined;
    const { endOfGenerationIds } = this.#core.runtime.tokenizer();
    const written = tokens.length - promptLength;
    if (written >= query.maxTokens || session.length + taken > session.capacity) {
      query.rows = 0;
      return { token: [...endOfGenerationIds][0] ?? tokens.at(-1)!, isEnd: true };
    }
    const from = tokens.length - query.rows;
    const best = sampler.bestNeeded <= MOST_BEST ? sampler.bestNeeded : undefined;
    await session.evalNow(tokens.slice(from, from + taken), { best, priority: query.priority });
    query.rows -= taken;
    if (query.rows > 0) return undefined;
    const history = { tokens, length: tokens.length, promptLength };
    const found = session.bestLogits();
    let token = found && sampler.sampleBest(found, history);
    if (token === undefined) {
      await session.settle();
      token = sampler.sample(session.logits(), history);
    }
    const isLast = written + 1 >= query.maxTokens;
    return { token, isEnd: isLast || !query.ignoreEos && endOfGenerationIds.has(token) };
  }
}
