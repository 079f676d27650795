// One request on its way through an endpoint: what it may use, what is noted of it for log and metrics, and what ends with
// it. A response that streams holds the call until its last byte is sent or its client has left.

import type { Engine } from "../engine.ts";
import type { Limits } from "./app_options.ts";
import type { Metrics } from "./metrics.ts";
import { apiErrorOf } from "./api_error.ts";
import type { FieldNames } from "./engine_words.ts";
import { type BodyLimits, readJsonObject } from "./request_body.ts";

/** What is known of a request when it has ended; goes into the log. No text of anybody's is among it. */
export interface CallNotes {
  model?: string;
  promptTokens?: number;
  cachedTokens?: number;
  answerTokens?: number;
  finishReason?: string;
  /** Of an error that the client was told: its code, and the path of the field that it is about. */
  code?: string;
  param?: string;
  /** What went wrong behind a status of 500, or in the middle of a stream. */
  error?: string;
  /** Whether the client left before the end. */
  hasLeft?: boolean;
}

/** What a call is made of. */
export interface CallOptions {
  readonly engine: Engine;
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly id: string;
  readonly version: string;
  /** Takes places for answers; see {@linkcode Admission}. */
  readonly admit: (answers: number) => () => void;
}

/** A request under way. */
export class Call {
  readonly notes: CallNotes = {};
  /** Fields that were read past, by their paths. */
  readonly unknown: string[] = [];
  /** Takes the path of such a field. */
  readonly noteUnknown = (path: string): void => void this.unknown.push(path);
  /** Unix time in seconds. */
  readonly created: number = Math.floor(Date.now() / 1000);
  /** For ids of what is made. */
  readonly uniqueId: string = crypto.randomUUID().replaceAll("-", "");
  /** Whether a stream will end the call. */
  isHeld = false;
  readonly #abort = new AbortController();
  readonly #ends: (() => void)[] = [];
  readonly #started = performance.now();
  readonly #leave = (): void => {
    this.notes.hasLeft = true;
    this.#abort.abort();
  };

  constructor(readonly request: Request, readonly options: CallOptions) {
    // Deno fires this when the client is gone, also before a first byte was sent. (Without `no-legacy-abort` in
    // deno.json also when all is sent, and then it complains.)
    request.signal.addEventListener("abort", this.#leave);
    this.onEnd(() => request.signal.removeEventListener("abort", this.#leave));
  }

  /** Fires when the answer is no longer wanted. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get engine(): Engine {
    return this.options.engine;
  }

  /** Milliseconds since the request came. */
  get ms(): number {
    return performance.now() - this.#started;
  }

  /** @throws {ApiError} See {@linkcode readJsonObject}. */
  readJson(limits: BodyLimits = this.options.limits): Promise<Readonly<Record<string, unknown>>> {
    return readJsonObject(this.request, limits);
  }

  /**
   * Takes places for answers until the end.
   *
   * @throws {ApiError} 429 if there are none.
   */
  admit(answers: number): void {
    this.onEnd(this.options.admit(answers));
  }

  /** Does something, with errors of the engine told in the names that fields have here. */
  async naming<T>(names: FieldNames, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      const told = apiErrorOf(error, names);
      // What is behind a fault of ours is for the log.
      if (told.status === 500) throw error;
      throw told;
    }
  }

  /** To be done at the end, once. */
  onEnd(act: () => void): void {
    this.#ends.push(act);
  }

  /** Ends what was asked of the engine, for what happens here. */
  abort(reason?: unknown): void {
    this.#abort.abort(reason);
  }

  /** The client has left. */
  leave(): void {
    this.#leave();
  }

  /** Everything is sent, or never will be. */
  end(): void {
    for (const act of this.#ends.splice(0).reverse()) act();
    // What is still asked for is no longer wanted.
    this.#abort.abort();
  }
}
