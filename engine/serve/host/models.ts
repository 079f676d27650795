// Models by name: loaded when somebody asks for them, and kept while there is room. Who uses one holds it, and what is
// held is never unloaded; of the others the least recently used goes first. One model is loaded at a time, with all
// threads, and all who ask for it wait for the same load.
//
// Who asks for a model that is not there stands in line. While the first in line waits for room that others hold, those
// others are not handed out anew, so that they run dry; so each model comes in turn, however busy another one is, and
// with it all who waited for it. Where there is no limit nobody waits for anything but his own load.

import { ResourceError } from "../../errors.ts";
import type {
  LoadOptions,
  Model,
  ModelActivity,
  ModelDescription,
  ModelInfo,
} from "../../decode/model.ts";
import { inspectModel, load } from "../../models/load.ts";
import { nearest } from "../../nearest.ts";
import { failureOf, JobError } from "../job_error.ts";

/** A model that is served. */
export interface ModelEntry {
  readonly name: string;
  /** As `load` takes it. */
  readonly source: string;
  readonly options: LoadOptions;
}

/** A model in use; dispose of it to let it go. */
export interface UsedModel extends Disposable {
  readonly model: Model;
}

/** A model as it stands. */
export interface ModelState {
  readonly name: string;
  readonly model: Model | undefined;
  /** Those who use it, and those who wait for it. */
  readonly users: number;
  readonly waiting: number;
  /** Of earlier loads, together. */
  readonly past: Pick<ModelActivity, "steps" | "rows">;
}

/** What models are made of. */
export interface ModelsOptions {
  /** Most bytes that models may take together, as they say themselves. Default: no limit. */
  readonly maxMemory?: number | undefined;
  /** How a model is loaded, and what is known of it before. */
  readonly load?: (entry: ModelEntry, signal: AbortSignal) => Promise<Model>;
  readonly inspect?: (entry: ModelEntry) => Promise<Pick<ModelDescription, "info" | "memory">>;
}

interface Place {
  readonly entry: ModelEntry;
  model: Model | undefined;
  users: number;
  /** When it was last taken or let go: a number that grows. */
  usedAt: number;
  /** What is known of it: by its header, and when it was loaded. */
  known: { readonly info: ModelInfo; readonly bytes: number } | undefined;
  past: { steps: number; rows: number };
}

interface Waiting {
  readonly place: Place;
  resolve(used: UsedModel): void;
  reject(reason: unknown): void;
}

/** Models that are loaded on demand. */
export class Models implements AsyncDisposable {
  readonly #places: ReadonlyMap<string, Place>;
  readonly #options: Required<Omit<ModelsOptions, "maxMemory">>;
  readonly #maxMemory: number;
  readonly #line: Waiting[] = [];
  /** The load under way, for the first in line. */
  #load:
    | { readonly place: Place; readonly abort: AbortController; done: Promise<void> }
    | undefined;
  /** Whether the first in line waits for others to let go. */
  #isFull = false;
  #isClosed = false;
  #clock = 0;

  constructor(entries: readonly ModelEntry[], options: ModelsOptions = {}) {
    const { maxMemory = Infinity, load = loadEntry, inspect = inspectEntry } = options;
    this.#maxMemory = maxMemory;
    this.#options = { load, inspect };
    this.#places = new Map(entries.map((entry) => [entry.name, {
      ...{ entry, model: undefined, users: 0, usedAt: 0, known: undefined },
      past: { steps: 0, rows: 0 },
    }]));
  }

  /**
   * A model, when it is there.
   *
   * @throws {JobError} 404 if there is none of that name; 503 if it cannot be loaded, or not now.
   * @throws The signal's reason, if that fires before.
   */
  async use(name: string, signal: AbortSignal): Promise<UsedModel> {
    const place = this.#places.get(name);
    if (!place) {
      const known = [...this.#places.keys()], near = nearest(name, known);
      const hint = near === undefined ? "" : `. Did you mean ${near}?`;
      const message = `The model ${JSON.stringify(name)} does not exist: there are ${
        known.join(", ")
      }${hint}`;
      throw new JobError({ status: 404, message, param: "model", code: "model_not_found" });
    }
    signal.throwIfAborted();
    if (this.#isClosed) throw closing();
    if (place.model && !this.#isFull) return this.#take(place);
    return await new Promise((resolve, reject) => {
      const leave = () => {
        this.#line.splice(this.#line.indexOf(one), 1);
        signal.removeEventListener("abort", abort);
      };
      const abort = () => {
        leave();
        reject(signal.reason);
        this.#leaveLoad();
        this.#next();
      };
      const one: Waiting = {
        place,
        resolve: (used) => (leave(), resolve(used)),
        reject: (reason) => (leave(), reject(reason)),
      };
      signal.addEventListener("abort", abort);
      this.#line.push(one);
      this.#next();
    });
  }

  /** All models, in the order in which they were given. */
  states(): ModelState[] {
    return [...this.#places.values()].map((place) => {
      const { entry: { name }, model, users, past } = place;
      const waiting = this.#line.filter((one) => one.place === place).length;
      return { name, model, users, waiting, past };
    });
  }

  /** Facts about all, in their order; of one that was never loaded by its header, undefined where that cannot be read. */
  async infos(): Promise<(ModelInfo | undefined)[]> {
    return await Promise.all([...this.#places.values()].map(async (place) => {
      if (!place.known) await this.#inspect(place).catch(() => {});
      return place.known?.info;
    }));
  }

  /** Turns away who waits, and unloads all; nobody may use a model any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#load?.abort.abort(closing());
    for (const one of [...this.#line]) one.reject(closing());
    await this.#load?.done;
    for (const place of this.#places.values()) this.#unload(place);
  }

  #take(place: Place): UsedModel {
    place.users++;
    place.usedAt = ++this.#clock;
    let isHeld = true;
    return {
      model: place.model!,
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        place.users--;
        place.usedAt = ++this.#clock;
        this.#next();
      },
    };
  }

  /** Serves the first in line, and all who wait for the same. */
  #next(): void {
    this.#isFull = false;
    while (this.#line.length > 0 && !this.#load) {
      const { place } = this.#line[0]!;
      if (!place.model) return this.#begin(place);
      this.#handOut(place);
    }
  }

  #handOut(place: Place): void {
    for (const one of this.#line.filter((one) => one.place === place)) {
      one.resolve(this.#take(place));
    }
  }

  /** Loads a model, unless there is no room for it now; who lets go of another one comes here again. */
  #begin(place: Place): void {
    if (this.#maxMemory < Infinity && !place.known) {
      return this.#run(place, () => this.#inspect(place));
    }
    const { bytes = 0 } = place.known ?? {};
    if (bytes > this.#maxMemory) {
      return this.#refuse(place, tooLarge(place.entry.name, bytes, this.#maxMemory));
    }
    if (!this.#makeRoom(bytes)) {
      this.#isFull = true;
      return;
    }
    this.#run(place, async (signal) => {
      const model = await this.#options.load(place.entry, signal);
      if (signal.aborted) return model.dispose();
      place.model = model;
      place.usedAt = ++this.#clock;
      place.known = { info: model.info, bytes: model.memory.total };
      this.#handOut(place);
    });
  }

  async #inspect(place: Place): Promise<void> {
    const { info, memory } = await this.#options.inspect(place.entry);
    place.known ??= { info, bytes: memory.total };
  }

  /** Does something for the first in line that takes time. */
  #run(place: Place, work: (signal: AbortSignal) => Promise<void>): void {
    const abort = new AbortController();
    const run = async () => {
      try {
        await work(abort.signal);
      } catch (error) {
        if (!abort.signal.aborted) this.#refuse(place, notLoaded(place.entry.name, error));
      } finally {
        this.#load = undefined;
        if (!this.#isClosed) this.#next();
      }
    };
    this.#load = { place, abort, done: Promise.resolve() };
    this.#load.done = run();
  }

  /** Stops the load for which nobody waits any more. */
  #leaveLoad(): void {
    const { place, abort } = this.#load ?? {};
    if (place && !this.#line.some((one) => one.place === place)) {
      abort!.abort(new DOMException("Nobody waits for the model any more", "AbortError"));
    }
  }

  #makeRoom(bytes: number): boolean {
    const there = [...this.#places.values()].filter(({ model }) => model);
    let used = there.reduce((sum, { model }) => sum + model!.memory.total, 0);
    const idle = there.filter(({ users }) => users === 0).sort((a, b) => a.usedAt - b.usedAt);
    const gone: Place[] = [];
    while (used + bytes > this.#maxMemory && idle.length > 0) {
      const place = idle.shift()!;
      gone.push(place);
      used -= place.model!.memory.total;
    }
    if (used + bytes > this.#maxMemory) return false;
    for (const place of gone) this.#unload(place);
    return true;
  }

  #unload(place: Place): void {
    const { model, past } = place;
    if (!model) return;
    const { steps, rows } = model.activity;
    place.past = { steps: past.steps + steps, rows: past.rows + rows };
    place.model = undefined;
    model.dispose();
  }

  #refuse(place: Place, error: JobError): void {
    for (const one of this.#line.filter((one) => one.place === place)) one.reject(error);
  }
}

async function loadEntry({ source, options }: ModelEntry, signal: AbortSignal): Promise<Model> {
  return await load(source, { ...options, signal });
}

async function inspectEntry({ source, options }: ModelEntry): Promise<ModelDescription> {
  return await inspectModel(source, options);
}

function closing(): JobError {
  return new JobError({ status: 503, message: "The server is shutting down", code: "closing" });
}

function tooLarge(name: string, needed: number, most: number): JobError {
  const [need, limit] = [needed, most].map((bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`);
  const message =
    `The model ${name} needs ${need} of memory, and models may take ${limit} together`;
  return new JobError({ status: 503, message, param: "model", code: "model_too_large" });
}

function notLoaded(name: string, cause: unknown): JobError {
  const { message } = failureOf(cause);
  const retry = cause instanceof ResourceError && { retryAfter: 10 };
  return new JobError({
    ...{ status: 503, param: "model", code: "model_not_loaded", ...retry },
    message: `The model ${name} cannot be loaded: ${message}`,
  }, { cause });
}
