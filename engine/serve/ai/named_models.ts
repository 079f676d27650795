// Models of a provider: those that are given as they are, and those that are named, loaded when they are first used.

import { LoadedModel } from "../../decode/loaded_model.ts";
import type { LoadOptions, Model } from "../../decode/model.ts";
import { load } from "../../models/load.ts";

/** A model with the name by which logs know it. */
export interface NamedModel {
  readonly id: string;
  readonly model: () => Promise<Model>;
}

/** Models by name. */
export class NamedModels implements AsyncDisposable {
  readonly #options: LoadOptions;
  readonly #loaded = new Map<string, Promise<Model>>();

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** @throws {TypeError} If it is neither a name nor a model. */
  get(source: string | Model): NamedModel {
    if (source instanceof LoadedModel) {
      return { id: source.name, model: () => Promise.resolve(source) };
    }
    if (typeof source !== "string") {
      throw new TypeError("Cannot use the model: give a name, as load() takes it, or a model");
    }
    return { id: source, model: () => this.#load(source) };
  }

  /** Lets the models go that were loaded here. */
  async [Symbol.asyncDispose](): Promise<void> {
    const models = await Promise.allSettled(this.#loaded.values());
    this.#loaded.clear();
    for (const one of models) if (one.status === "fulfilled") one.value.dispose();
  }

  #load(source: string): Promise<Model> {
    const known = this.#loaded.get(source);
    if (known) return known;
    const loading = load(source, this.#options);
    this.#loaded.set(source, loading);
    // What failed may go well later.
    loading.catch(() => this.#loaded.delete(source));
    return loading;
  }
}
