// An engine on models of this thread: jobs find their model by name, answers of all jobs share its steps, and what goes
// wrong becomes a JobError.

import { isReasonOf } from "../../pause.ts";
import { LoadedModel } from "../../decode/loaded_model.ts";
import type { Model, ModelInfo } from "../../decode/model.ts";
import type {
  AnswerEvent,
  AnswerJob,
  Engine,
  EngineCalls,
  EngineFigures,
  ServedModel,
} from "../engine.ts";
import { failureOf, JobError } from "../job_error.ts";
import { answerEvents } from "./answer_events.ts";
import { MODEL_CALLS, type ModelCall, tasksOf } from "./model_calls.ts";
import { type ModelEntry, Models, type ModelsOptions, type ModelState } from "./models.ts";

/** Options of an engine besides its models. */
export interface LocalEngineOptions extends ModelsOptions {
  /** Processor time of this thread in ms, for the figures. Default: not known. */
  readonly busyMs?: () => number;
}

/** Counts of a model since the start. */
interface Counts {
  promptTokens: number;
  cachedTokens: number;
  answerTokens: number;
  proposedTokens: number;
  acceptedTokens: number;
}

/** Computes on the thread that calls it. */
export class LocalEngine implements Engine {
  readonly #models: Models;
  readonly #busyMs: (() => number) | undefined;
  readonly #counts: ReadonlyMap<string, Counts>;
  readonly #created = Math.floor(Date.now() / 1000);
  readonly #closing = new AbortController();
  /** Jobs under way, by their ends. */
  readonly #jobs = new Set<Promise<void>>();

  constructor(entries: readonly ModelEntry[], options: LocalEngineOptions = {}) {
    this.#models = new Models(entries, options);
    this.#busyMs = options.busyMs;
    this.#counts = new Map(entries.map(({ name }) => [name, {
      ...{ promptTokens: 0, cachedTokens: 0, answerTokens: 0 },
      ...{ proposedTokens: 0, acceptedTokens: 0 },
    }]));
  }

  async *answer(job: AnswerJob, signal: AbortSignal): AsyncGenerator<AnswerEvent, void, void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#jobs.add(promise);
    const either = AbortSignal.any([signal, this.#closing.signal]);
    try {
      using used = await this.#models.use(job.model, either);
      for await (const event of answerEvents(used.model, { ...job, signal: either })) {
        this.#count(job.model, event);
        // An answer that the end of the engine cut is no answer.
        if (event.kind === "end") this.#closing.signal.throwIfAborted();
        yield event;
      }
    } catch (error) {
      // Who aborted knows it.
      if (!signal.aborted) throw jobError(error);
    } finally {
      this.#jobs.delete(promise);
      resolve();
    }
  }

  async call<K extends keyof EngineCalls>(
    kind: K,
    argument: EngineCalls[K]["argument"],
    signal: AbortSignal,
  ): Promise<EngineCalls[K]["result"]> {
    const work = this.#call(kind, argument, AbortSignal.any([signal, this.#closing.signal]));
    const end = work.then(() => {}, () => {});
    this.#jobs.add(end);
    try {
      return await work;
    } catch (error) {
      if (isReasonOf(signal, error)) throw error;
      throw jobError(error);
    } finally {
      this.#jobs.delete(end);
    }
  }

  /** Ends what is under way, with errors, and unloads all models. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(
      new JobError({ status: 503, message: "The server is shutting down", code: "closing" }),
    );
    await Promise.all(this.#jobs);
    await this.#models[Symbol.asyncDispose]();
  }

  async #call<K extends keyof EngineCalls>(
    kind: K,
    argument: EngineCalls[K]["argument"],
    signal: AbortSignal,
  ): Promise<EngineCalls[K]["result"]> {
    // The compiler does not see that kind, argument and result go together.
    if (kind === "models") return await this.#served() as EngineCalls[K]["result"];
    if (kind === "figures") return this.#figures() as EngineCalls[K]["result"];
    const { model: name } = argument as { readonly model: string };
    using used = await this.#models.use(name, signal);
    if (kind === "describe") return this.#describe(name, used.model) as EngineCalls[K]["result"];
    const call = MODEL_CALLS[kind as ModelCall] as (
      model: Model,
      argument: EngineCalls[K]["argument"],
      signal: AbortSignal,
    ) => Promise<EngineCalls[K]["result"]>;
    return await call(used.model, argument, signal);
  }

  async #served(): Promise<ServedModel[]> {
    const infos = await this.#models.infos();
    return this.#models.states().map((state, index) => this.#servedModel(state, infos[index]));
  }

  #servedModel(
    { name, model }: Pick<ModelState, "name" | "model">,
    info: ModelInfo | undefined,
  ): ServedModel {
    return {
      ...{ name, tasks: info ? tasksOf(info) : [], created: this.#created },
      isLoaded: model !== undefined,
      ...info && { contextLength: info.contextLength },
      ...model && { memoryBytes: model.memory.total },
      ...model instanceof LoadedModel && model.runtime.sight && { sees: true },
    };
  }

  #describe(name: string, model: Model): EngineCalls["describe"]["result"] {
    const { chatTemplate, info, device } = model;
    return {
      ...this.#servedModel({ name, model }, info),
      ...chatTemplate && { chatTemplate: chatTemplate.source },
      vocabularySize: info.vocabulary,
      device,
    };
  }

  #figures(): EngineFigures {
    return {
      models: this.#models.states().map((state) => this.#figuresOf(state)),
      ...this.#busyMs && { busyMs: this.#busyMs() },
    };
  }

  #figuresOf({ name, model, users, waiting, past }: ModelState): EngineFigures["models"][number] {
    const { activity, memory } = model ?? {};
    const atDoor = activity?.waiting ?? 0;
    return {
      ...{ name, running: users - atDoor, waiting: waiting + atDoor },
      steps: past.steps + (activity?.steps ?? 0),
      rows: past.rows + (activity?.rows ?? 0),
      ...this.#counts.get(name)!,
      cacheRows: activity?.cacheRows ?? 0,
      cacheCapacity: memory?.cacheTokens ?? 0,
      memoryBytes: memory?.total ?? 0,
    };
  }

  #count(name: string, event: AnswerEvent): void {
    const counts = this.#counts.get(name)!;
    if (event.kind === "start") counts.promptTokens += event.promptTokens;
    if (event.kind === "part") counts.answerTokens += event.tokens.length;
    if (event.kind !== "end") return;
    counts.cachedTokens += event.cachedTokens;
    counts.proposedTokens += event.drafts?.proposed ?? 0;
    counts.acceptedTokens += event.drafts?.accepted ?? 0;
  }
}

function jobError(error: unknown): JobError {
  return error instanceof JobError ? error : new JobError(failureOf(error), { cause: error });
}
